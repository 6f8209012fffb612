// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CompilerLibrary.h - libmtp-compiler.so, opened when needed ---------===//
#ifndef MTP_TOOLS_COMMON_COMPILERLIBRARY_H
#define MTP_TOOLS_COMMON_COMPILERLIBRARY_H

#include "compiler/driver/CompilerApi.h"
#include "runtime/support/Error.h"

#include <string>

namespace mtp {

/// The compiler, which the tools don't link: it is looked for in the file that
/// MTP_COMPILER_LIBRARY names, else as ../lib/libmtp-compiler.so beside the
/// folder of the running program.
class CompilerLibrary {
public:
  /// Opens the library; exit 6 in `error` if it is not there.
  bool open(Error &error);
  /// Compiles; false if that failed, with `error` from the result.
  bool compile(const CompileRequest &request, CompileResult &result,
               Error &error) const;
  /// Names of the operators that the compiler reads.
  std::vector<std::string> operators() const;

private:
  decltype(&::mtpCompile) compileFunction = nullptr;
  decltype(&::mtpOperators) operatorsFunction = nullptr;
};

} // namespace mtp

#endif // MTP_TOOLS_COMMON_COMPILERLIBRARY_H
