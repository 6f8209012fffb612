// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Difference.h - how two plans differ --------------------------------===//
#ifndef MTP_TOOLS_REPORT_DIFFERENCE_H
#define MTP_TOOLS_REPORT_DIFFERENCE_H

#include <nlohmann/json.hpp>

namespace mtp::report {

/// What differs from `before` (an explanation or a plan file, as
/// readExplanation gives it) to `now` (an
/// explanation): layouts, collectives that came and went, time and memory with
/// the parts that differ most. Alike rows of equal layers are one. A plan file
/// has layouts only.
std::string differenceText(const nlohmann::json &before,
                           const nlohmann::json &now);

} // namespace mtp::report

#endif // MTP_TOOLS_REPORT_DIFFERENCE_H
