// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/CompilerLibrary.h"

#include "runtime/support/System.h"
#include "tools/common/Text.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace mtp;

static std::string libraryPath() {
  if (const char *given = std::getenv("MTP_COMPILER_LIBRARY"))
    return given;
  return installedFile("lib/libmtp-compiler.so");
}

bool CompilerLibrary::open(Error &error) {
  if (compileFunction)
    return true;
  std::string path = libraryPath();
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = dlerror();
    error = {kNotPresent,
             "compiler",
             "the compiler is not present here: " + (reason ? reason : path) +
                 " (an artifact made by mtp-compile runs without it; "
                 "MTP_COMPILER_LIBRARY names another place)",
             {}};
    return false;
  }
  compileFunction =
      reinterpret_cast<decltype(compileFunction)>(dlsym(handle, "mtpCompile"));
  operatorsFunction = reinterpret_cast<decltype(operatorsFunction)>(
      dlsym(handle, "mtpOperators"));
  auto interface = reinterpret_cast<decltype(&::mtpInterface)>(
      dlsym(handle, "mtpInterface"));
  bool fits = interface && interface() == compilerInterface();
  if (compileFunction && operatorsFunction && fits)
    return true;
  std::string reason = !compileFunction     ? "it lacks mtpCompile"
                       : !operatorsFunction ? "it lacks mtpOperators"
                                            : "its interface is another";
  error = {kNotPresent,
           "compiler",
           path + " is not the compiler of this build: " + reason,
           {}};
  compileFunction = nullptr;
  return false;
}

bool CompilerLibrary::compile(const CompileRequest &request,
                              CompileResult &result, Error &error) const {
  compileFunction(&request, &result);
  if (result.exitCode == kOk)
    return true;
  error = {result.exitCode,
           result.errorKind.empty() ? "compile" : result.errorKind,
           result.message, result.nodes};
  return false;
}

std::vector<std::string> CompilerLibrary::operators() const {
  std::vector<std::string> names = split(operatorsFunction(), '\n');
  while (!names.empty() && names.back().empty())
    names.pop_back();
  return names;
}
