// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/CommandLine.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mtp;

namespace {
struct Parsed {
  bool ok;
  Options options;
  Error error;
};
} // namespace

static Parsed parse(Tool tool, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tool");
  std::vector<const char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  Parsed parsed;
  parsed.ok = parseCommandLine(tool, int(argv.size()), argv.data(),
                               parsed.options, parsed.error);
  return parsed;
}

static void expectRefusal(int exitCode, const std::string &part,
                          const std::vector<std::string> &arguments,
                          Tool tool = Tool::Run) {
  Parsed parsed = parse(tool, arguments);
  EXPECT_FALSE(parsed.ok) << part;
  EXPECT_EQ(parsed.error.exitCode, exitCode) << parsed.error.message;
  EXPECT_NE(parsed.error.message.find(part), std::string::npos)
      << parsed.error.message;
  EXPECT_EQ(parsed.error.message.find('\n'), std::string::npos);
}

TEST(CommandLine, HasTheDefaults) {
  Parsed parsed = parse(Tool::Run, {"m.onnx"});
  ASSERT_TRUE(parsed.ok) << parsed.error.message;
  const Options &options = parsed.options;
  EXPECT_EQ(options.compile.mesh, "tp=1");
  EXPECT_EQ(options.compile.device, "cpu");
  EXPECT_EQ(options.compile.objective, "parallel");
  EXPECT_EQ(options.compile.precision, "f32");
  EXPECT_EQ(options.session.comm, ""); // that of the device
  EXPECT_EQ(options.session.collectiveTimeout, 60);
  EXPECT_EQ(options.session.seed, 0);
  EXPECT_EQ(options.rtol, 1e-4);
  EXPECT_EQ(options.atol, 0);
  EXPECT_FALSE(options.hasData());
  EXPECT_EQ(parse(Tool::Run, {"m.onnx", "--precision", "f64"}).options.rtol,
            1e-11);
  EXPECT_EQ(parse(Tool::Run, {"m.onnx", "--precision=bf16"}).options.rtol,
            2e-2);
}

TEST(CommandLine, OptionalValuesNeedAnEqualsSign) {
  Options bare =
      parse(Tool::Run, {"--bench", "--random-inputs", "m.onnx"}).options;
  EXPECT_EQ(bare.model, "m.onnx");
  EXPECT_EQ(bare.benchSeconds, 3);
  EXPECT_EQ(bare.randomSeed, 0u);
  Options given =
      parse(Tool::Run, {"m.onnx", "--bench=0.5", "--random-inputs=7"}).options;
  EXPECT_EQ(given.benchSeconds, 0.5);
  EXPECT_EQ(given.randomSeed, 7u);
}

TEST(CommandLine, SplitsInputsAtTheLastEqualsSign) {
  Options options =
      parse(Tool::Run, {"m.onnx", "--input", "a=b=x.npy", "--input", "c=y.pb",
                        "--inputs", "1.npz", "--inputs", "2.npz"})
          .options;
  ASSERT_EQ(options.inputFiles.size(), 2u);
  EXPECT_EQ(options.inputFiles[0].first, "a=b");
  EXPECT_EQ(options.inputFiles[0].second, "x.npy");
  EXPECT_EQ(options.inputArchives.size(), 2u);
}

TEST(CommandLine, ReadsDimsAndPins) {
  Options options =
      parse(Tool::Run, {"m.onnx", "--dim", "seq=16,32", "--dim=batch=2",
                        "--pin", "h.0.w=tp = S(1)"})
          .options;
  ASSERT_EQ(options.dims.size(), 2u);
  EXPECT_EQ(options.dims[0].second, (std::vector<int64_t>{16, 32}));
  ASSERT_EQ(options.compile.pins.size(), 1u);
  EXPECT_EQ(options.compile.pins[0].first, "h.0.w");
  EXPECT_EQ(options.compile.pins[0].second, "tp = S(1)");
}

TEST(CommandLine, PinsSplitWhereALayoutBegins) {
  using Pin = std::pair<std::string, std::string>;
  EXPECT_EQ(parsePin("a=b=tp = R"), (Pin{"a=b", "tp = R"}));
  EXPECT_EQ(parsePin("w=tp.0=S(1, unit 64), dp = P(sum)"),
            (Pin{"w", "tp.0=S(1, unit 64), dp = P(sum)"}));
  EXPECT_EQ(parsePin("w="), (Pin{"w", ""}));
  for (const char *text : {"w", "w=S(1)", "w=tp = X", "=tp = R", "="})
    EXPECT_FALSE(parsePin(text)) << text;
}

TEST(CommandLine, WrongUseIsExit2AndNamesTheThing) {
  expectRefusal(2, "no model", {});
  expectRefusal(2, "--foo", {"m.onnx", "--foo"});
  expectRefusal(2, "n.onnx", {"m.onnx", "n.onnx"});
  expectRefusal(2, ".onnx", {"m.txt"});
  expectRefusal(2, "size 0", {"m.onnx", "--mesh", "tp=0"});
  expectRefusal(2, "--mesh", {"m.onnx", "--mesh", "tp=2", "--mesh", "tp=2"});
  expectRefusal(2, "--mesh", {"m.onnx", "--mesh"});
  expectRefusal(2, "f31", {"m.onnx", "--precision", "f31"});
  expectRefusal(2, "--device", {"m.onnx", "--device", "gpu"});
  expectRefusal(2, "--dim", {"m.onnx", "--dim", "seq"});
  expectRefusal(2, "'x'", {"m.onnx", "--dim", "seq=x"});
  expectRefusal(2, "'seq' is given twice",
                {"m.onnx", "--dim", "seq=1", "--dim", "seq=2"});
  expectRefusal(2, "'a' is given twice",
                {"m.onnx", "--input", "a=x.npy", "--input", "a=y.npy"});
  expectRefusal(2, "--input", {"m.onnx", "--input", "a"});
  expectRefusal(2, "--pin", {"m.onnx", "--pin", "a=b"});
  expectRefusal(2, "random:SEED", {"m.onnx", "--plan", "random:x"});
  expectRefusal(2, "--random-inputs", {"m.onnx", "--random-inputs=x"});
  expectRefusal(2, "--bench", {"m.onnx", "--bench=0"});
  expectRefusal(2, "--rtol", {"m.onnx", "--rtol", "nan"});
  expectRefusal(2, "--threads-per-rank", {"m.onnx", "--threads-per-rank", "0"});
  expectRefusal(2, "--collective-timeout",
                {"m.onnx", "--collective-timeout", "-1"});
  expectRefusal(2, "-o", {"m.onnx"}, Tool::Compile);
  expectRefusal(2, "artifact already", {"m.mtp", "-o", "n.mtp"}, Tool::Compile);
}

TEST(CommandLine, AnArtifactTakesNoCompileOptions) {
  EXPECT_TRUE(parse(Tool::Run, {"m.mtp", "--weights", "dir"}).ok);
  expectRefusal(2, "--mesh", {"m.mtp", "--mesh", "tp=2"});
  expectRefusal(2, "--no-raise", {"m.mtp", "--no-raise"});
  expectRefusal(2, "--check", {"m.mtp", "--check"});
}

TEST(CommandLine, TopologyIsReadAndRefused) {
  Parsed parsed = parse(Tool::Run, {"m.onnx", "--topology", "nodes:2,ranks:4"});
  ASSERT_TRUE(parsed.ok);
  EXPECT_EQ(parsed.options.compile.topology, "nodes:2,ranks:4");
  expectRefusal(2, "ranks is missing", {"m.onnx", "--topology", "nodes:2"});
  expectRefusal(2, "can be read", {"m.onnx", "--topology", "none.json"});
}

TEST(CommandLine, SimulatorAndCalibrationRunNoModel) {
  Parsed parsed = parse(Tool::Run, {"--simulate", "--cluster", "h100", "--job",
                                    "layers=1", "--mesh", "pp=64,tp=64"});
  ASSERT_TRUE(parsed.ok);
  EXPECT_TRUE(parsed.options.predict.simulate);
  EXPECT_TRUE(parsed.options.predict.meshGiven);
  EXPECT_EQ(parsed.options.predict.job, "layers=1");
  parsed = parse(Tool::Run, {"--calibrate"});
  ASSERT_TRUE(parsed.ok);
  EXPECT_TRUE(parsed.options.predict.calibrate);
  EXPECT_EQ(parsed.options.predict.calibrateTo, "");
  parsed = parse(Tool::Run, {"--calibrate=a/b.json", "--json", "j"});
  ASSERT_TRUE(parsed.ok);
  EXPECT_EQ(parsed.options.predict.calibrateTo, "a/b.json");
  expectRefusal(2, "needs --cluster", {"--simulate", "--job", "layers=1"});
  expectRefusal(2, "needs --job", {"--simulate", "--cluster", "h100"});
  parsed = parse(Tool::Run, {"m.onnx", "--simulate", "--cluster", "h100",
                             "--job", "batch=8", "--dim", "seq=128"});
  ASSERT_TRUE(parsed.ok);
  EXPECT_EQ(parsed.options.compile.model, "m.onnx");
  ASSERT_EQ(parsed.options.dims.size(), 1u);
  expectRefusal(
      2, "--dim has no meaning",
      {"--simulate", "--cluster", "h100", "--job", "x", "--dim", "seq=128"});
  expectRefusal(2, "runs no model", {"m.onnx", "--calibrate"});
  expectRefusal(2, "--seed has no meaning", {"--calibrate", "--seed", "1"});
  expectRefusal(2, "option of --simulate", {"m.onnx", "--cluster", "h100"});
  expectRefusal(2, "two runs", {"--calibrate", "--simulate"});
}

TEST(CommandLine, LaunchedProcessesAreRanks) {
  expectRefusal(2, "there are 3 processes, but the mesh tp=2 has 2 ranks",
                {"m.onnx", "--mesh", "tp=2", "--launch", "3", "--comm", "nccl",
                 "--device", "cuda-emulated"});
  expectRefusal(2, "communicator threads has all ranks in one",
                {"m.onnx", "--mesh", "tp=2", "--launch", "2"});
  expectRefusal(2, "--launch '0'", {"m.onnx", "--launch", "0"});
}

TEST(CommandLine, WhatIsNotInThisBuildIsExit6) {
  for (const char *flag : {"--save", "--load", "--trace"})
    expectRefusal(6, std::string(flag) + ": not in this build",
                  {"m.onnx", flag, "1"});
  setenv("MTP_MPI_LIBRARY", "/nowhere/libmtp-mpi.so", 1);
  expectRefusal(6, "MPI is not present here: /nowhere/libmtp-mpi.so",
                {"m.onnx", "--comm", "mpi"});
  unsetenv("MTP_MPI_LIBRARY");
  expectRefusal(6, "tf32", {"m.onnx", "--precision", "tf32"});
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  expectRefusal(6, "CUDA", {"m.onnx", "--device", "cuda"});
  expectRefusal(2, "--comm nccl is not of --device cpu",
                {"m.onnx", "--comm", "nccl"});
  expectRefusal(2, "--gpu-arch is of --device cuda",
                {"m.onnx", "-o", "m.mtp", "--gpu-arch", "sm_90"},
                Tool::Compile);
}

static constexpr const char *kLoss =
    "cross_entropy:logits=logits,labels=labels";

TEST(CommandLine, BudgetsArePowersOf1024AndOpenWhatIsComputedAgain) {
  auto budgetOf = [](const char *text) {
    Parsed parsed = parse(Tool::Run, {"m.onnx", "--memory-budget", text});
    EXPECT_TRUE(parsed.ok) << text;
    return parsed.options.compile.memoryBudget;
  };
  EXPECT_EQ(budgetOf("12345"), 12345);
  EXPECT_EQ(budgetOf("3K"), 3 << 10);
  EXPECT_EQ(budgetOf("5M"), 5 << 20);
  EXPECT_EQ(budgetOf("2G"), int64_t(2) << 30);
  expectRefusal(2, "no tensor fits into 0 bytes",
                {"m.onnx", "--memory-budget", "0"});
  for (const char *text : {"-1", "K", "1.5G", "1T", "1 G", "2g", "G2",
                           "9999999999G", "99999999999999999999"})
    expectRefusal(2, "a whole number of bytes, with K, M or G",
                  {"m.onnx", std::string("--memory-budget=") + text});
  expectRefusal(2, "--memory-budget is a compile option",
                {"m.mtp", "--memory-budget", "1G"});

  auto recomputeOf = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"m.onnx", "--train", "--loss", kLoss});
    Parsed parsed = parse(Tool::Run, flags);
    EXPECT_TRUE(parsed.ok);
    return std::pair(parsed.options.compile.train->recompute,
                     parsed.options.compile.memoryBudget);
  };
  EXPECT_EQ(recomputeOf({}), std::pair(std::string("none"), int64_t(0)));
  EXPECT_EQ(recomputeOf({"--memory-budget", "1"}),
            std::pair(std::string("auto"), int64_t(1)));
  EXPECT_EQ(recomputeOf({"--memory-budget", "1", "--recompute", "none"}),
            std::pair(std::string("none"), int64_t(1)));
  // Without a budget: a rank's part of the memory that there is.
  int64_t whole = recomputeOf({"--recompute", "auto"}).second;
  EXPECT_GT(whole, 0);
  EXPECT_EQ(recomputeOf({"--recompute", "auto", "--mesh", "tp=4"}).second,
            whole / 4);
}

TEST(CommandLine, TrainingHasTorchsDefaults) {
  Parsed parsed =
      parse(Tool::Run, {"m.onnx", "--train", "--loss", kLoss, "--steps", "3"});
  ASSERT_TRUE(parsed.ok);
  const TrainRequest &train = *parsed.options.compile.train;
  EXPECT_EQ(train.optimizer, "adamw");
  EXPECT_EQ(train.weightDecay, 0.01);
  EXPECT_EQ(train.eps, 1e-8);
  EXPECT_EQ(train.loss.ignoreIndex, -100);
  EXPECT_EQ(parsed.options.training.rate, 1e-3);
  EXPECT_EQ(parsed.options.training.steps, 3);
  parsed = parse(Tool::Run, {"m.onnx", "--train", "--loss", kLoss,
                             "--optimizer", "sgd", "--lr", "0.5"});
  ASSERT_TRUE(parsed.ok);
  EXPECT_EQ(parsed.options.compile.train->weightDecay, 0);
  EXPECT_EQ(parsed.options.training.rate, 0.5);
}

TEST(CommandLine, TrainingIsAskedForAndHasALoss) {
  expectRefusal(2, "--lr needs --train", {"m.onnx", "--lr", "1"});
  expectRefusal(2, "--train needs --loss", {"m.onnx", "--train"});
  auto refusal = [](const char *words, std::vector<std::string> more) {
    std::vector<std::string> all{"m.onnx", "--train", "--loss", kLoss};
    all.insert(all.end(), more.begin(), more.end());
    expectRefusal(2, words, all);
  };
  refusal("--momentum is of sgd", {"--momentum", "0.9"});
  refusal("--beta1 is of adamw", {"--optimizer", "sgd", "--beta1", "0.5"});
  refusal("--beta1 '1'", {"--beta1", "1"});
  refusal("--zero '4'", {"--zero", "4"});
  refusal("--steps '0'", {"--steps", "0"});
  refusal("--accumulate 'x'", {"--accumulate", "x"});
  expectRefusal(2, "--optimizer is a compile option",
                {"m.mtp", "--train", "--optimizer", "sgd"});
  EXPECT_TRUE(parse(Tool::Run, {"m.mtp", "--train", "--lr", "1"}).ok);
}

TEST(CommandLine, WhatIsWrongWithALossIsNamed) {
  auto refusal = [](const char *words, const std::string &loss) {
    expectRefusal(2, words, {"m.onnx", "--train", "--loss", loss});
  };
  std::string entropy = kLoss;
  for (const char *kind : {"foo", "foo:bar", "foo:a=b", "cross-entropy:a=b"})
    refusal("is no loss; there are cross_entropy, mse and output", kind);
  refusal("needs labels=NAME", "cross_entropy:logits=x");
  refusal("cross_entropy: 'x' is not of the form KEY=VALUE", "cross_entropy:x");
  refusal("output needs a name, output:NAME", "output:");
  for (const char *smoothing : {"nan", "inf", "-0.1", "1.5", "x", ""})
    refusal((std::string("label_smoothing '") + smoothing +
             "': a number from 0 to 1 is needed")
                .c_str(),
            entropy + ",label_smoothing=" + smoothing);
  for (const char *index : {"1.5", "99999999999999999999", ""})
    refusal((std::string("ignore_index '") + index +
             "': a whole number of 64 bits is needed")
                .c_str(),
            entropy + ",ignore_index=" + index);
  refusal("cross_entropy has no 'reduction'", entropy + ",reduction=sum");
}

TEST(CommandLine, PinsEndWithALayout) {
  using Pin = std::pair<std::string, std::string>;
  EXPECT_EQ(parsePin("a=b=tp = S(1)"), Pin("a=b", "tp = S(1)"));
  EXPECT_EQ(parsePin("w=dp=S( 0 ),tp.0 = S(2, unit 64)"),
            Pin("w", "dp=S( 0 ),tp.0 = S(2, unit 64)"));
  EXPECT_EQ(parsePin("w=tp = P(max), dp = R"), Pin("w", "tp = P(max), dp = R"));
  EXPECT_EQ(parsePin("w="), Pin("w", ""));
  EXPECT_EQ(parsePin("a=b#2=<>"), Pin("a=b#2", "<>"));
  EXPECT_EQ(parsePin("w=<tp = S(1)>"), Pin("w", "<tp = S(1)>"));
  EXPECT_EQ(parsePin("w=<tp = R>, * -> <>,*"), Pin("w", "<tp = R>, * -> <>,*"));
  for (const char *text :
       {"w", "=tp = I", "w=tp", "w=tp = S", "w=tp = S(1", "w=tp = S(unit 2)",
        "w=tp = P(mean)", "w=tp = I,", "w=tp = R R", "w=3 = R", "w=<tp = R",
        "w=<tp = R>>", "w=*", "w=<> ->", "w=-> <>", "w=<>, <>", "w=tp = R -> *",
        "w=* -> * -> *"})
    EXPECT_FALSE(parsePin(text)) << text;
  // However long.
  std::string layout = "tp = S(1)";
  for (int i = 0; i < 100000; ++i)
    layout += ", tp = S(1)";
  EXPECT_EQ(parsePin("w=" + layout), Pin("w", layout));
}

TEST(CommandLine, LearningRatesFollowTheSchedule) {
  TrainOptions options;
  options.rate = 2;
  options.warmup = 4;
  EXPECT_EQ(learningRate(options, 0, 12), 0.5);
  EXPECT_EQ(learningRate(options, 3, 12), 2);
  EXPECT_EQ(learningRate(options, 11, 12), 2);
  options.schedule = "linear";
  EXPECT_EQ(learningRate(options, 4, 12), 2);
  EXPECT_EQ(learningRate(options, 8, 12), 1);
  options.schedule = "cosine";
  EXPECT_NEAR(learningRate(options, 8, 12), 1, 1e-15);
  EXPECT_NEAR(learningRate(options, 6, 12), 1 + std::sqrt(0.5), 1e-15);
}

TEST(CommandLine, FindsJsonOfABrokenCommandLine) {
  EXPECT_EQ(parse(Tool::Run, {"--foo", "--json", "r.json"}).options.json,
            "r.json");
  EXPECT_EQ(parse(Tool::Run, {"--json=r.json", "--mesh"}).options.json,
            "r.json");
}
