// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/StageRunner.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>

using namespace mlir;
using namespace mtp;

StageRunner::StageRunner(const CompileRequest &request, CompileResult &result,
                         MLIRContext *context)
    : diagnostics(context), request(request), result(result), context(context) {
}

bool StageRunner::fail(int exitCode, llvm::StringRef kind, std::string message,
                       std::vector<std::string> nodes) {
  if (result.exitCode != kOk)
    return false;
  result.exitCode = exitCode;
  result.errorKind = kind.str();
  result.message = std::move(message);
  result.nodes = std::move(nodes);
  return false;
}

bool StageRunner::failWithDiagnostics(llvm::StringRef stage, int exitCode,
                                      llvm::StringRef kind) {
  std::string text = diagnostics.takeErrors();
  if (text.empty())
    text = "the stage failed without a reason";
  return fail(exitCode, kind,
              exitCode == kInternal ? (stage + ": " + text).str() : text,
              diagnostics.nodes);
}

bool StageRunner::run(llvm::StringRef name, llvm::function_ref<bool()> body,
                      int exitCode, llvm::StringRef kind) {
  if (request.progress)
    request.progress(name.str(), std::min(1.0, double(started) / expected));
  ++started;
  auto start = std::chrono::steady_clock::now();
  bool good = body();
  std::chrono::duration<double, std::milli> time =
      std::chrono::steady_clock::now() - start;
  result.stageMs.push_back({name.str(), time.count()});
  return good || failWithDiagnostics(name, exitCode, kind);
}

bool StageRunner::runPasses(llvm::StringRef name, ModuleOp module,
                            llvm::function_ref<void(OpPassManager &)> add,
                            int exitCode, llvm::StringRef kind) {
  return run(
      name,
      [&] {
        PassManager passes(context);
        passes.enableVerifier(false);
        add(passes);
        return succeeded(passes.run(module)) && gate(name, module);
      },
      exitCode, kind);
}

bool StageRunner::gate(llvm::StringRef name, ModuleOp module, int exitCode,
                       llvm::StringRef kind) {
  bool dumpedWell = dump(name, module);
  if (succeeded(verify(module)))
    return dumpedWell;
  return failWithDiagnostics(("the program after " + name).str(), exitCode,
                             kind);
}

bool StageRunner::dump(llvm::StringRef name, ModuleOp module) {
  if (request.dumpDir.empty())
    return true;
  std::error_code error = llvm::sys::fs::create_directories(request.dumpDir);
  std::string path = llvm::formatv("{0}/{1,0+2}-{2}.mlir", request.dumpDir,
                                   llvm::utostr(dumped++), name);
  if (!error) {
    llvm::raw_fd_ostream file(path, error);
    if (!error)
      module->print(
          file,
          OpPrintingFlags().enableDebugInfo(true, false).assumeVerified());
    file.close();
    if (file.has_error())
      error = file.error();
    file.clear_error();
  }
  return !error || fail(kBadInput, "input",
                        "cannot write " + path + ": " + error.message());
}
