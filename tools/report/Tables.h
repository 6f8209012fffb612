// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Tables.h - the tables of a report ----------------------------------===//
#ifndef MTP_TOOLS_REPORT_TABLES_H
#define MTP_TOOLS_REPORT_TABLES_H

#include "runtime/artifact/Artifact.h"

namespace mtp::report {

/// Every weight with shape, layout and bytes, in the order of `order` (names;
/// others follow as they come). Rows that differ in the numbers
/// of their names only, as those of equal layers do, are one row that opens.
std::string weightSection(const Artifact &artifact,
                          const nlohmann::json &explain,
                          const std::vector<std::string> &order);

/// Every collective with bytes, time, reason, runner-up and regret; folded
/// alike. Of a training step those of all phases, with their conjugates.
std::string collectiveSection(const Artifact &artifact,
                              const nlohmann::json &explain);

/// Largest parts of the time, what stayed whole and why.
std::string reasonSection(const nlohmann::json &explain);

/// The layout as coloured chips, one a mesh axis.
std::string layoutChips(const std::string &layout);

} // namespace mtp::report

#endif // MTP_TOOLS_REPORT_TABLES_H
