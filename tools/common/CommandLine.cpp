// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/CommandLine.h"

#include "compiler/cost/Cluster.h"
#include "runtime/cuda/Libraries.h"
#include "runtime/processes/Processes.h"
#include "runtime/support/ByteCount.h"
#include "runtime/support/System.h"
#include "tools/common/GpuArch.h"
#include "tools/common/LaterOptions.h"
#include "tools/common/LayoutText.h"
#include "tools/common/MeshSpec.h"
#include "tools/common/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>

using namespace mtp;

namespace {

/// Ends parsing with a message; caught in parseCommandLine.
struct Refusal {
  int exitCode;
  std::string message;
};

[[noreturn]] void refuse(const std::string &message) {
  throw Refusal{kUsage, message};
}

/// What CLI11 fills as text; `finish` turns it into Options.
struct RawOptions {
  std::vector<std::string> dims, pins, inputs;
  std::string seed = "0", threads, timeout = "60", launch;
  std::string random, bench; ///< "true" without a value
  std::string rtol, atol;
  std::optional<std::string> budget;
  TrainFlags train;
};

} // namespace

std::optional<std::pair<std::string, std::string>>
mtp::parsePin(const std::string &text) {
  // The longest layout at the end: the first '=' that leaves one.
  for (size_t i = 1; i < text.size(); ++i)
    if (text[i] == '=' && isPinText(text.substr(i + 1)))
      return std::pair{text.substr(0, i), text.substr(i + 1)};
  if (text.size() > 1 && text.back() == '=')
    return std::pair{text.substr(0, text.size() - 1), std::string()};
  return std::nullopt;
}

static void addCompileOptions(CLI::App &app, Tool tool, Options &options,
                              RawOptions &raw) {
  CompileRequest &request = options.compile;
  const char *group = "Compile";
  app.add_option("--mesh", request.mesh,
                 "Axes and sizes, slowest first: dp=2,tp=4 (default tp=1)")
      ->type_name("AXES")
      ->group(group);
  app.add_option("--device", request.device, "Where it runs (default cpu)")
      ->type_name("cpu|cuda|cuda-emulated")
      ->check(CLI::IsMember({"cpu", "cuda", "cuda-emulated"}).description(""))
      ->group(group);
  app.add_option("--objective", request.objective,
                 "parallel: split every weight and never the batch but on dp; "
                 "time: the fastest plan (default parallel)")
      ->type_name("parallel|time")
      ->check(CLI::IsMember({"parallel", "time"}).description(""))
      ->group(group);
  app.add_option("--precision", request.precision,
                 "f64 computes every float in double; bf16 takes bf16 operands "
                 "in matrix products; tf32 needs a GPU (default f32)")
      ->type_name("f32|f64|bf16|f16|tf32")
      ->check(
          CLI::IsMember({"f32", "f64", "bf16", "f16", "tf32"}).description(""))
      ->group(group);
  app.add_option("--memory-budget", raw.budget,
                 "Most bytes of a rank (K, M, G: powers of 1024); layouts, and "
                 "with --train ZeRO, sequence parallelism and recomputation, "
                 "where not given, are chosen to fit")
      ->type_name("BYTES[K|M|G]")
      ->group(group);
  app.add_option("--topology", request.topology,
                 "Hosts and links that the plan is made for: "
                 "nodes:2,ranks:4[,inner:5G,outer:1G,inner-step:1us,"
                 "outer-step:20us,launch:2us] or a .json file")
      ->type_name("TOPOLOGY")
      ->group(group);
  app.add_option("--dim", raw.dims,
                 "Size of a dynamic dimension; several sizes make one program "
                 "each, and the inputs choose (repeatable)")
      ->type_name("NAME=N[,N...]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  app.add_option("--plan", request.plan,
                 "Take the plan from a file, or a random legal one")
      ->type_name("FILE|random:SEED")
      ->group(group);
  app.add_option("--save-plan", request.savePlan, "Write the plan")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--pin", raw.pins,
                 "Fix the layout of a value: on the axes that are named "
                 "('h.0.mlp.weight=tp = S(1)') or on all ('w=<tp = S(1)>'), or "
                 "a strategy as --explain prints it (repeatable)")
      ->type_name("VALUE=LAYOUT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  app.add_flag("--explain", request.explain,
               "Say why each collective is there and why each whole value is "
               "whole")
      ->group(group);
  app.add_option("--explain-json", options.explainJson,
                 "Write the explanation as JSON")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--explain-against", options.explainAgainst,
                 "Say how the plan differs from that of another run: what "
                 "--explain-json or --save-plan wrote")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--dump-dir", request.dumpDir,
                 "Write the program after every stage: 00-import.mlir, ...")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--cache-dir", request.cacheDir,
                 "Where compiled objects are kept (default: the user's cache)")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--no-cache", request.noCache,
               "Neither read nor write the cache")
      ->group(group);
  app.add_flag("--no-raise", request.noRaise,
               "Compile decomposed LayerNorm, attention, ... as they stand")
      ->group(group);
  if (tool == Tool::Compile)
    app.add_option("-o,--output", options.artifactFile, "The artifact to write")
        ->type_name("FILE.mtp")
        ->group(group);
  if (tool == Tool::Compile)
    app.add_option("--gpu-arch", request.gpuArch,
                   "Of --device cuda: least compute capability (default: that "
                   "of the GPU here)")
        ->type_name("sm_XX")
        ->group(group);
}

static void addRunOptions(CLI::App &app, Options &options, RawOptions &raw) {
  SessionOptions &session = options.session;
  const char *group = "Run";
  app.add_option("--comm", session.comm,
                 "How ranks talk (default threads; nccl for GPUs)")
      ->type_name("threads|mpi|nccl|loopback")
      ->check(
          CLI::IsMember({"threads", "mpi", "nccl", "loopback"}).description(""))
      ->group(group);
  app.add_option("--launch", raw.launch,
                 "Start a process for each rank on this machine: of --comm mpi "
                 "and nccl")
      ->type_name("N")
      ->group(group);
  app.add_option("--collective-timeout", raw.timeout,
                 "A collective that takes longer ends the run (default 60)")
      ->type_name("SECONDS")
      ->group(group);
  app.add_option("--threads-per-rank", raw.threads,
                 "Default max(1, usable cores / ranks)")
      ->type_name("N")
      ->group(group);
  app.add_option("--seed", raw.seed, "Seed of random operators (default 0)")
      ->type_name("N")
      ->group(group);
  app.add_flag("--poison", session.poison,
               "Fill padding and fresh memory with NaN and infinity: results "
               "must not change")
      ->group(group);
  app.add_option("--weights", session.weightsDir,
                 "Folder of the weight files, if they moved")
      ->type_name("DIR")
      ->group(group);

  group = "Data";
  app.add_option("--input", raw.inputs,
                 "One input, .npy or .pb, split at the last '=' (repeatable)")
      ->type_name("NAME=FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  app.add_option("--inputs", options.inputArchives,
                 "Inputs by name (repeatable)")
      ->type_name("FILE.npz")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  app.add_flag("--random-inputs", raw.random,
               "Draw valid inputs: --random-inputs[=SEED] (default seed 0)")
      ->group(group);
  app.add_option("--save-inputs", options.saveInputs, "Write the inputs used")
      ->type_name("FILE.npz")
      ->group(group);
  app.add_option("--outputs", options.outputs, "Write the outputs")
      ->type_name("FILE.npz")
      ->group(group);
  app.add_option("--output-dir", options.outputDirectory,
                 "Write one .npy an output ('/' as %2F) and index.json")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--check", options.check,
               "Compare with one rank in float64; exit 3 on a mismatch")
      ->group(group);
  app.add_option("--rtol", raw.rtol,
                 "Bound on max|a-b| / max|b| (default f32 1e-4, f64 1e-11, "
                 "bf16, f16 and tf32 2e-2)")
      ->type_name("R")
      ->group(group);
  app.add_option("--atol", raw.atol, "Absolute bound, added (default 0)")
      ->type_name("A")
      ->group(group);

  group = "Measure";
  app.add_flag("--bench", raw.bench,
               "Repeat the step after a warm-up: --bench[=SECONDS] (default 3)")
      ->group(group);
}

static void addOtherOptions(CLI::App &app, Tool tool, Options &options) {
  app.add_option("--report", options.report,
                 "Write the plan as one page to look at: the model with its "
                 "layouts, collectives, memory over time")
      ->type_name("FILE.html")
      ->group("Measure");
  app.add_option("--json", options.json,
                 "Write everything measured as JSON, also on failure")
      ->type_name("FILE")
      ->group("Measure");
  const char *group = "Other";
  app.add_flag("--version", options.version, "Print the version")->group(group);
  app.add_flag("--quiet", options.quiet, "Print errors only")->group(group);
  app.add_flag("--verbose", options.verbose, "Print more")->group(group);
  if (tool == Tool::Run)
    app.add_flag("--capabilities", options.capabilities,
                 "Print devices, communicators and operators as JSON")
        ->group(group);
}

static int64_t integerOption(const char *flag, const std::string &text,
                             int64_t least) {
  std::optional<int64_t> value = parseInteger(text);
  if (!value || *value < least)
    refuse(std::string(flag) + " '" + text + "': a whole number, at least " +
           std::to_string(least) + ", is needed");
  return *value;
}

static double numberOption(const char *flag, const std::string &text,
                           bool zeroAllowed) {
  std::optional<double> value = parseNumber(text);
  if (!value || *value < 0 || (*value == 0 && !zeroAllowed))
    refuse(std::string(flag) + " '" + text + "': a number " +
           (zeroAllowed ? "not below 0" : "above 0") + " is needed");
  return *value;
}

static uint64_t seedOption(const char *flag, const std::string &text) {
  return uint64_t(integerOption(flag, text, 0));
}

/// NAME=TEXT at the last '='.
static std::pair<std::string, std::string>
splitAssignment(const char *flag, const std::string &text, const char *form) {
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    refuse(std::string(flag) + " '" + text + "' is not of the form " + form);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

static void finishDims(Options &options, const RawOptions &raw) {
  for (const std::string &text : raw.dims) {
    auto [name, sizes] = splitAssignment("--dim", text, "NAME=N[,N...]");
    for (auto &other : options.dims)
      if (other.first == name)
        refuse("--dim '" + name + "' is given twice");
    std::vector<int64_t> values;
    for (const std::string &size : split(sizes, ','))
      values.push_back(
          integerOption(("--dim " + name + " =").c_str(), size, 0));
    options.dims.push_back({name, values});
  }
}

static int64_t budgetOption(const std::string &text) {
  std::optional<int64_t> bytes = parseByteCount(text);
  if (!bytes)
    refuse("--memory-budget '" + text +
           "': a whole number of bytes, with K, M or G for powers of 1024, is "
           "needed");
  if (*bytes == 0)
    refuse("--memory-budget '" + text +
           "': no tensor fits into 0 bytes; leave the option out for no "
           "budget");
  return *bytes;
}

static void finishCompile(Options &options, const RawOptions &raw) {
  CompileRequest &request = options.compile;
  std::string error;
  if (!parseMesh(request.mesh, options.mesh, error))
    refuse(error);
  if (!request.topology.empty() && !plan::readTopology(request.topology, error))
    refuse(error);
  finishDims(options, raw);
  if (raw.budget)
    request.memoryBudget = budgetOption(*raw.budget);
  if (request.plan.rfind("random:", 0) == 0)
    seedOption("--plan random:SEED", request.plan.substr(7));
  for (const std::string &text : raw.pins) {
    auto pin = parsePin(text);
    if (!pin)
      refuse("--pin '" + text +
             "' is not of the form VALUE=LAYOUT, for example "
             "'h.0.mlp.weight=tp = S(1)', or VALUE=STRATEGY as --explain "
             "prints it");
    for (auto &other : request.pins)
      if (other.first == pin->first)
        refuse("--pin '" + pin->first + "' is given twice");
    request.pins.push_back(*pin);
  }
}

bool Options::inProcesses() const {
  std::string comm =
      session.comm.empty() ? defaultCommunicator(compile.device) : session.comm;
  bool open = isArtifact && session.comm.empty(); // the artifact knows
  return comm == "mpi" || ((comm == "nccl" || open) && launchedProcesses() > 1);
}

Error mtp::checkLaunch(const Options &options, const std::string &device,
                       const Mesh &mesh, const std::string &meshText) {
  const std::string &given = options.session.comm;
  std::string comm = given.empty() ? defaultCommunicator(device) : given;
  if (comm == "threads" || comm == "loopback")
    return {kUsage,
            "usage",
            "--launch starts processes, and communicator " + comm +
                " has all ranks in one: give --comm mpi" +
                (device == "cpu" ? "" : " or nccl"),
            {}};
  Error wrong = checkWorld(options.launch, mesh, meshText);
  if (wrong)
    wrong.message =
        "--launch " + std::to_string(options.launch) + ": " + wrong.message;
  return wrong;
}

static void finishLaunch(Options &options, const std::string &text) {
  options.launch =
      int(std::min<int64_t>(integerOption("--launch", text, 1), 1 << 16));
  if (options.isArtifact) // which has the device and the mesh
    return;
  const std::string &mesh = options.compile.mesh;
  if (Error wrong = checkLaunch(options, options.compile.device, options.mesh,
                                mesh.empty() ? "tp=1" : mesh))
    refuse(wrong.message);
}

static void finishRun(Options &options, const RawOptions &raw) {
  SessionOptions &session = options.session;
  session.collectiveTimeout =
      numberOption("--collective-timeout", raw.timeout, false);
  if (!raw.threads.empty())
    session.threadsPerRank = int(std::min<int64_t>(
        integerOption("--threads-per-rank", raw.threads, 1), 4096));
  session.seed = integerOption("--seed", raw.seed, INT64_MIN);
  for (const std::string &text : raw.inputs) {
    auto input = splitAssignment("--input", text, "NAME=FILE");
    for (auto &other : options.inputFiles)
      if (other.first == input.first)
        refuse("--input '" + input.first + "' is given twice");
    options.inputFiles.push_back(input);
  }
  if (!raw.random.empty())
    options.randomSeed =
        raw.random == "true" ? 0 : seedOption("--random-inputs", raw.random);
  if (!raw.bench.empty())
    options.benchSeconds =
        raw.bench == "true" ? 3 : numberOption("--bench", raw.bench, false);
  const std::string &precision = options.compile.precision;
  options.rtol = precision == "f64" ? 1e-11
                 : precision == "f32"
                     ? 1e-4
                     : 2e-2; // operands of products are rounded
  if (!raw.rtol.empty())
    options.rtol = numberOption("--rtol", raw.rtol, true);
  if (!raw.atol.empty())
    options.atol = numberOption("--atol", raw.atol, true);
}

static bool endsWith(const std::string &text, const std::string &end) {
  return text.size() > end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

static void finishModel(Tool tool, const CLI::App &app, Options &options) {
  if (options.model.empty())
    refuse("no model is given; see --help");
  options.compile.model = options.model;
  options.isArtifact = endsWith(options.model, ".mtp");
  if (tool == Tool::Compile && options.isArtifact)
    refuse("'" + options.model + "' is an artifact already");
  if (!options.isArtifact && !endsWith(options.model, ".onnx") &&
      !endsWith(options.model, ".mlir"))
    refuse("'" + options.model + "': a model ends with .onnx, .mlir" +
           (tool == Tool::Run ? " or .mtp" : ""));
  if (tool == Tool::Compile && options.artifactFile.empty())
    refuse("-o FILE.mtp is missing");
  if (!options.isArtifact)
    return;
  for (const CLI::Option *option : app.get_options())
    if (option->count() && option->get_group() == "Compile")
      refuse(option->get_name() + " is a compile option; '" + options.model +
             "' is compiled already");
  if (options.check)
    refuse("--check compiles the model in float64, which an artifact does not "
           "contain; give the model itself");
}

/// Before anything is compiled: whether the GPUs are here, and their libraries.
static void checkGpus(const Options &options) {
  const std::string &comm = options.session.comm;
  Error missing = cuda::checkMachine(
      comm.empty() ? defaultCommunicator(options.compile.device) : comm,
      launchedProcesses() > 1 ? launchedOnThisHost() : options.mesh.ranks());
  if (missing)
    throw Refusal{missing.exitCode, missing.message};
}

static void refuseAbsent(Tool tool, const CLI::App &app,
                         const Options &options) {
  auto absent = [](const std::string &message) {
    throw Refusal{kNotPresent, message};
  };
  for (const CLI::Option *option : app.parse_order())
    if (isLaterOption(option->get_name()))
      absent(option->get_name() + ": not in this build");
  const CompileRequest &request = options.compile;
  if (request.precision == "tf32" && request.device == "cpu")
    absent("--precision tf32: device cpu has no tf32, only GPUs have");
  if (request.device == "cuda" && tool == Tool::Run)
    checkGpus(options);
  const std::string &comm = options.session.comm;
  if (comm.empty())
    return;
  if (Error missing; comm == "mpi" && !canJoinProcesses(missing))
    absent("--comm mpi: " + missing.message);
  bool isArtifact = options.model.size() > 4 &&
                    options.model.rfind(".mtp") == options.model.size() - 4;
  bool onHost = comm == "threads" || comm == "mpi";
  if (!isArtifact && onHost != (request.device == "cpu"))
    refuse("--comm " + comm + " is not of --device " + request.device);
}

/// What is recomputed is open under a budget; `auto` without one is within the
/// memory that this machine has for a rank.
static void finishRecompute(Options &options) {
  CompileRequest &request = options.compile;
  std::string &recompute = request.train->recompute;
  if (recompute.empty())
    recompute = request.memoryBudget ? "auto" : "none";
  if (recompute == "auto" && !request.memoryBudget)
    request.memoryBudget = availableMemory() / options.mesh.ranks();
}

/// CUDA programs are made for an architecture: the one that is named, or that
/// of the GPU here.
static void finishGpuArch(Options &options) {
  CompileRequest &request = options.compile;
  if (request.device == "cpu" && !request.gpuArch.empty())
    refuse("--gpu-arch is of --device cuda");
  // What is emulated has the code of a device that has all that is used.
  if (request.device == "cuda-emulated" && request.gpuArch.empty())
    request.gpuArch = "sm_90";
  if (request.device != "cuda" || !request.gpuArch.empty())
    return;
  request.gpuArch = gpuArchitecture();
  if (request.gpuArch.empty())
    refuse("--device cuda: there is no GPU here to compile for; name one, for "
           "example --gpu-arch sm_90");
}

/// --json of a command line that could not be read to its end.
static std::string findJsonFlag(int argc, const char *const *argv) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--json" && i + 1 < argc)
      return argv[i + 1];
    if (argument.rfind("--json=", 0) == 0)
      return argument.substr(7);
  }
  return {};
}

static std::string oneLine(std::string text) {
  for (char &c : text)
    if (c == '\n')
      c = ' ';
  while (!text.empty() && text.back() == ' ')
    text.pop_back();
  return text;
}

bool mtp::parseCommandLine(Tool tool, int argc, const char *const *argv,
                           Options &options, Error &error) {
  bool run = tool == Tool::Run;
  CLI::App app(
      run ? "Runs a transformer on several ranks: compiles a model, or "
            "takes an artifact of mtp-compile, and runs it."
          : "Compiles a model into an artifact for mtp-run.",
      run ? "mtp-run" : "mtp-compile");
  app.get_formatter()->column_width(34);
  app.footer(
      "Exit codes: 0 ok, 1 bad input or compile error, 2 usage, 3 mismatch\n"
      "against the reference, 4 rank or communication failure, 5 internal\n"
      "error, 6 device or backend not present here.");
  app.set_help_flag("--help", "Print this text")->group("Other");
  RawOptions raw;
  app.add_option("MODEL", options.model,
                 run ? ".onnx, .mlir or .mtp" : ".onnx or .mlir")
      ->type_name("");
  addCompileOptions(app, tool, options, raw);
  if (run)
    addRunOptions(app, options, raw);
  if (run)
    addPredictOptions(app, options.predict);
  raw.train.add(app, run);
  if (run)
    addLaterOptions(app);
  addOtherOptions(app, tool, options);

  try {
    app.parse(argc, argv);
    if (options.version || options.capabilities)
      return true;
    if (run) {
      std::string wrong = finishPredictOptions(app, options.predict);
      if (!wrong.empty())
        refuse(wrong);
      if (options.predict.wanted()) {
        finishDims(options, raw);
        options.compile.model = options.model;
        return true;
      }
    }
    finishCompile(options, raw);
    if (run)
      finishRun(options, raw);
    refuseAbsent(tool, app, options);
    finishGpuArch(options);
    finishModel(tool, app, options);
    if (!raw.launch.empty())
      finishLaunch(options, raw.launch);
    raw.train.finish(app, options.isArtifact, options.training,
                     options.compile.train);
    if (options.compile.train) {
      finishRecompute(options);
      options.compile.train->keepGradients |= options.check;
      options.compile.train->keepOutputs =
          !options.outputs.empty() || !options.outputDirectory.empty();
    }
    return true;
  } catch (const CLI::CallForHelp &) {
    options.help = true;
    options.helpText = app.help();
    return true;
  } catch (const CLI::ParseError &failure) {
    error = {kUsage, "usage", oneLine(failure.what()), {}};
  } catch (const TrainFlags::UsageError &wrong) {
    error = {wrong.exitCode,
             wrong.exitCode == kUsage ? "usage" : "not-present",
             wrong.message,
             {}};
  } catch (const Refusal &refusal) {
    error = {refusal.exitCode,
             refusal.exitCode == kUsage ? "usage" : "not-present",
             refusal.message,
             {}};
  }
  options.json = findJsonFlag(argc, argv);
  return false;
}
