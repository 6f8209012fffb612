// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Report.h - what --json writes --------------------------------------===//
//
// Every key stands in every report; what a run did not come to is null or
// empty. docs: the section on --json of the command line.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_COMMON_REPORT_H
#define MTP_TOOLS_COMMON_REPORT_H

#include "tools/common/CommandLine.h"
#include "tools/common/Compare.h"

#include <nlohmann/json.hpp>

namespace mtp {

class Report {
public:
  /// `options` must have been parsed; on a usage error only the error counts.
  explicit Report(const Options &options);

  /// `milliseconds`: the whole compilation. Several add up.
  void addCompile(const CompileResult &result, double milliseconds);
  /// Facts that stand in the artifact: plan, collectives as predicted.
  void addArtifact(const Artifact &artifact);
  /// What `session` counted and allocated.
  void addSession(const Session &session) {
    addSession(session, session.counters());
  }
  /// The same with `counts` of several entries that make one step.
  void addSession(const Session &session, const std::vector<SiteCount> &counts);
  /// Loss and norm of every step.
  void addTraining(const std::vector<double> &losses,
                   const std::vector<double> &norms);
  void addTimes(const StepTimes &times);
  void addCheck(const std::vector<Difference> &differences);
  void addWarning(const std::string &text);
  /// A fact of a run that is none of a model.
  void add(const char *key, nlohmann::json value);
  void setPeakMemory();
  void setError(const Error &error);

  const nlohmann::json &value() const { return root; }
  /// Writes the file of --json, if one is asked for.
  bool write(const std::string &path, Error &error) const;

private:
  nlohmann::json root;
  std::vector<size_t> entryOfSite; ///< in root["collectives"]
};

} // namespace mtp

#endif // MTP_TOOLS_COMMON_REPORT_H
