// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ReportPage.h - a plan as one page of HTML --------------------------===//
//
// Self-contained: styles and pictures are inline, nothing is loaded and no
// script runs, so the page reads in any browser without a network. All names
// are escaped. The same plan gives the same bytes.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_REPORT_REPORTPAGE_H
#define MTP_TOOLS_REPORT_REPORTPAGE_H

#include "tools/common/CommandLine.h"

namespace mtp::report {

/// The page. `explain` is an explanation (docs/explain-json.md); without one
/// (a program that was loaded) the page has no picture and no alternatives.
std::string reportPage(const Artifact &artifact, const nlohmann::json &explain);

/// Everything that is asked for of a plan: --explain-against on standard
/// output, --report. `artifact` is the compiled program.
bool deliverReports(const Options &options, const Artifact &artifact,
                    const nlohmann::json &explain, Error &error);

} // namespace mtp::report

#endif // MTP_TOOLS_REPORT_REPORTPAGE_H
