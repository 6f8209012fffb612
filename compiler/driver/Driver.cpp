// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Driver.cpp - the entry of libmtp-compiler.so -----------------------===//

#include "compiler/driver/Cache.h"
#include "compiler/driver/Compilation.h"
#include "compiler/driver/CompilerApi.h"
#include "compiler/driver/Guard.h"
#include "compiler/frontend/onnx/import/OnnxImport.h"

#include <chrono>

using namespace mtp;

static void setError(CompileResult &result, int exitCode, std::string kind,
                     std::string message) {
  result.exitCode = exitCode;
  result.errorKind = std::move(kind);
  result.message = std::move(message);
}

/// Files that a compile writes beside the artifact need its stages.
static bool needsStages(const CompileRequest &request) {
  return !request.dumpDir.empty() || !request.savePlan.empty();
}

static void compile(const CompileRequest &request, CompileResult &result) {
  auto start = std::chrono::steady_clock::now();
  std::optional<std::string> modelHash = hashFile(request.model);
  if (!modelHash)
    return setError(result, kBadInput, "input", "cannot read " + request.model);
  std::vector<std::string> warnings;
  Cache cache(request, warnings);
  std::optional<std::string> key;
  if (cache.usable())
    key = Cache::key(request, *modelHash, KernelModule::hostFeatures());
  if (key && !needsStages(request) && cache.load(*key, result, warnings)) {
    std::chrono::duration<double, std::milli> time =
        std::chrono::steady_clock::now() - start;
    result.stageMs.push_back({"cache", time.count()});
  } else {
    std::vector<ReadFile> files;
    if (Compilation(request, result, *modelHash).run(files) && key)
      cache.store(*key, files, result, warnings);
  }
  result.warnings.insert(result.warnings.begin(), warnings.begin(),
                         warnings.end());
}

extern "C" void mtpCompile(const CompileRequest *request,
                           CompileResult *result) {
  std::string error;
  *result = CompileResult();
  if (runGuarded([&] { compile(*request, *result); }, error))
    return;
  *result = CompileResult();
  setError(*result, kInternal, "internal",
           error + ". This is a bug of mtp, not of your model: please report "
                   "it with the model's name, the "
                   "command line and the files of --dump-dir");
}

extern "C" uint64_t mtpInterface(void) { return compilerInterface(); }

extern "C" const char *mtpOperators(void) {
  static const std::string text = [] {
    std::string lines;
    for (const std::string &name : onnx::supportedOperators())
      lines += name + "\n";
    return lines;
  }();
  return text.c_str();
}
