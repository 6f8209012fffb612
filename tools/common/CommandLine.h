// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CommandLine.h - the options of mtp-run and mtp-compile -------------===//
//
// Grammar, defaults and exit codes are those of `--help`. Options of work that
// this build doesn't have are read like the others and then refused by name
// with exit 6.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_COMMON_COMMANDLINE_H
#define MTP_TOOLS_COMMON_COMMANDLINE_H

#include "compiler/driver/CompilerApi.h"
#include "runtime/session/Session.h"
#include "tools/common/PredictOptions.h"
#include "tools/common/TrainOptions.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtp {

enum class Tool { Run, Compile };

struct Options {
  std::string model;
  bool isArtifact = false; ///< the model ends with .mtp
  Mesh mesh;

  /// Compile options. `dims` stands below, `inputs` come with the data.
  CompileRequest compile;
  /// --dim NAME=N[,N...], in the order given.
  std::vector<std::pair<std::string, std::vector<int64_t>>> dims;
  std::string explainJson, explainAgainst, report;
  /// The compiler is to say why, for one of the options above.
  bool wantsReasons() const {
    return compile.explain || !explainJson.empty() || !explainAgainst.empty() ||
           !report.empty();
  }

  SessionOptions session;
  int launch =
      0; ///< processes to start, 0: this is the only one or one of them
  /// Each rank is a process: by --comm mpi, or because MPI has started several.
  bool inProcesses() const;

  PredictOptions predict;
  TrainOptions training; ///< its program: compile.train

  std::vector<std::pair<std::string, std::string>> inputFiles; ///< NAME, FILE
  std::vector<std::string> inputArchives;
  std::optional<uint64_t> randomSeed;
  std::string saveInputs, outputs, outputDirectory;

  bool check = false;
  double rtol = 0, atol = 0;
  std::optional<double> benchSeconds;

  std::string json, artifactFile;
  bool quiet = false, verbose = false;
  bool version = false, capabilities = false, help = false;
  std::string helpText;

  bool hasData() const {
    return !inputFiles.empty() || !inputArchives.empty() || randomSeed ||
           !training.data.empty();
  }
};

/// False, with `error`, if a file that the options name for results can't be
/// written: said before the work, not after it.
bool canWriteResults(const Options &options, Error &error);

/// Reads the command line. On failure `error` has exit 2 (wrong use) or 6 (not
/// in this build) and `options.json` is set where it could be read.
bool parseCommandLine(Tool tool, int argc, const char *const *argv,
                      Options &options, Error &error);

/// Whether --launch can start the ranks of a program for that device and mesh
/// (also as text), with the communicator that was given or is the device's.
Error checkLaunch(const Options &options, const std::string &device,
                  const Mesh &mesh, const std::string &meshText);

/// Splits VALUE=LAYOUT of --pin: at the first '=' behind which the text is what
/// a pin may ask for ("h.0.mlp.weight=tp = S(1)"); "VALUE=" pins an invariant
/// value.
std::optional<std::pair<std::string, std::string>>
parsePin(const std::string &text);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_COMMANDLINE_H
