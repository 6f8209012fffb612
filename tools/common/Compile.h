// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Compile.h - a compilation as the tools ask for it ------------------===//
#ifndef MTP_TOOLS_COMMON_COMPILE_H
#define MTP_TOOLS_COMMON_COMPILE_H

#include "tools/common/CommandLine.h"
#include "tools/common/CompilerLibrary.h"
#include "tools/common/Report.h"

namespace mtp {

/// Opens the compiler, compiles with progress on standard error, records stages
/// and warnings in `report`, prints warnings.
bool compileModel(const char *tool, const Options &options,
                  CompilerLibrary &compiler, const CompileRequest &request,
                  CompileResult &result, Report &report, Error &error);

/// Prints --explain and writes --explain-json.
bool deliverExplanation(const Options &options, const CompileResult &result,
                        Error &error);

/// "mtp-run 0.1.0".
std::string versionText(const char *tool);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_COMPILE_H
