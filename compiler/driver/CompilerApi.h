// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CompilerApi.h - how the tools call the compiler --------------------===//
//
// `mtp-run` links the runtime only. For a model it opens `libmtp-compiler.so`
// and calls `mtpCompile`. No LLVM type crosses this border.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_DRIVER_COMPILERAPI_H
#define MTP_COMPILER_DRIVER_COMPILERAPI_H

#include "compiler/training/LossSpec.h"
#include "runtime/artifact/Artifact.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtp {

/// Exit codes of the tools (CLI.md).
enum ExitCode {
  kOk = 0,
  kBadInput = 1,
  kUsage = 2,
  kMismatch = 3,
  kRankFailure = 4,
  kInternal = 5,
  kNotPresent = 6
};

/// Type and shape of an input that the user gave.
struct GivenInput {
  DType type = DType::F32;
  std::vector<int64_t> shape;
};

/// How to train, as far as the program depends on it. Learning rate and bias
/// corrections are inputs of the program, which the tool computes each step.
struct TrainRequest {
  LossSpec loss;
  DType labelType = DType::I64;    ///< I64 or I32
  std::string optimizer = "adamw"; ///< sgd | adamw
  double momentum = 0, weightDecay = 0.01, beta1 = 0.9, beta2 = 0.999,
         eps = 1e-8;
  double clipNorm = 0;    ///< 0: none
  int64_t accumulate = 1; ///< micro-batches a step; inputs are of all of them
  int zero = 0;           ///< stage
  bool sequenceParallel = false;
  std::string recompute = "none";             ///< none | layers | auto
  /// Of `layers`: so many of them, from the first; -1: all.
  int64_t recomputeLayers = -1;
  std::string dropout = "model";              ///< model | on | off
  bool lossScale = false;                     ///< "mtp.loss_scale" is an input
  std::vector<std::string> freeze, trainOnly; ///< globs
  std::vector<std::string> ties;              ///< "A,B" or "A,B:transposed"
  bool keepGradients = false;  ///< in states "gradient", before clipping
  bool inputGradients = false; ///< results "mtp.input_gradient:NAME"
  bool keepOutputs = false;    ///< the model's outputs stay results
};

/// What to compile, from the compile options of the command line.
struct CompileRequest {
  std::string model;
  std::string mesh = "tp=1";
  std::string device = "cpu";
  std::string objective = "parallel";  ///< parallel | time
  std::string precision = "f32";       ///< f32 | f64 | bf16 | f16 | tf32
  std::map<std::string, int64_t> dims; ///< --dim, one value a name
  std::map<std::string, GivenInput>
      inputs; ///< bind dynamic dims where --dim doesn't
  bool randomInputs =
      false; ///< unbound dims get defaults (batch 1, others 16), reported
  std::string plan; ///< "", a file, or "random:SEED"
  std::string savePlan;
  std::vector<std::pair<std::string, std::string>> pins; ///< VALUE, LAYOUT
  bool explain = false; ///< fill CompileResult::explain
  std::string dumpDir;
  std::string cacheDir; ///< "" = the default of the user
  bool noCache = false, noRaise = false;
  std::string topology;    ///< hosts that plans are made for, as --topology
  std::string calibration; ///< JSON of what was measured here; "" for defaults
  /// Most bytes of a rank (Footprint::total), 0: any. What the request leaves
  /// open is then chosen so that they suffice: layouts, and when training
  /// sequence parallelism if false, the stage of ZeRO if 0, recomputation if
  /// `auto`.
  int64_t memoryBudget = 0;
  std::optional<TrainRequest> train; ///< nothing: the forward pass alone
  std::string gpuArch;
  /// Progress: stage name, fraction done; may be empty.
  std::function<void(const std::string &, double)> progress;
};

/// A row of the plan's table of weights.
struct PlannedWeight {
  std::string name, layout,
      how; ///< "tp = S(1)", "column parallel: 2 blocks of [768, 1536]"
  std::vector<int64_t> shape;
  int64_t bytes = 0, bytesPerRank = 0;
};

struct CompileResult {
  int exitCode = kOk;
  std::string errorKind,
      message; ///< errorKind: "unsupported", "input", "usage", ...
  std::vector<std::string> nodes; ///< ONNX nodes the error is about
  std::vector<std::string> warnings;
  Artifact artifact;
  bool cacheHit = false;
  std::vector<std::pair<std::string, double>> stageMs;
  std::vector<PlannedWeight> weights;
  nlohmann::json parameters; ///< `parameters` of --json
  nlohmann::json explainJson;
  std::string explain; ///< text for people
};

/// Names the structures above: tool and compiler of different builds, in which
/// they differ, refuse each other. Raised when a meaning changes.
constexpr uint64_t compilerInterface() {
  uint64_t hash = 1;
  for (uint64_t size :
       {sizeof(CompileRequest), sizeof(TrainRequest), sizeof(CompileResult),
        sizeof(PlannedWeight), sizeof(GivenInput), sizeof(Artifact),
        sizeof(Entry), sizeof(Instruction), sizeof(Parameter),
        sizeof(CollectiveSite), sizeof(LibrarySite)})
    hash = hash * 1099511628211u + size;
  return hash;
}

} // namespace mtp

extern "C" {
/// compilerInterface() of the compiler's build.
uint64_t mtpInterface(void);
/// Compiles; never throws and never exits. Everything it has to say stands in
/// `result`.
void mtpCompile(const mtp::CompileRequest *request, mtp::CompileResult *result);
/// Names of the ONNX operators that the front end reads, sorted, one a line,
/// for
/// --capabilities. The text lives as long as the library.
const char *mtpOperators(void);
}

#endif // MTP_COMPILER_DRIVER_COMPILERAPI_H
