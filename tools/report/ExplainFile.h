// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ExplainFile.h - explanations and plans that were saved -------------===//
#ifndef MTP_TOOLS_REPORT_EXPLAINFILE_H
#define MTP_TOOLS_REPORT_EXPLAINFILE_H

#include "runtime/support/Error.h"

#include <nlohmann/json.hpp>

namespace mtp::report {

/// Whether the file is what --explain-json writes, and no plan file.
bool isExplanation(const nlohmann::json &file);

/// Reads `path`, what --explain-json or --save-plan wrote. Anything else, and a
/// file in which a key that is compared is missing, of another kind or at odds
/// with the others, is an error that names the file and the key.
bool readExplanation(const std::string &path, nlohmann::json &explain,
                     Error &error);

} // namespace mtp::report

#endif // MTP_TOOLS_REPORT_EXPLAINFILE_H
