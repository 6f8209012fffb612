// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/CommandLine.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(options.session.comm, "threads");
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

TEST(CommandLine, WhatIsNotInThisBuildIsExit6) {
  for (const char *flag :
       {"--train", "--sequence-parallel", "--calibrate", "--calibrate=file"})
    expectRefusal(6, "not in this build", {"m.onnx", flag});
  for (const char *flag :
       {"--loss", "--optimizer", "--lr", "--steps", "--zero", "--save",
        "--load", "--memory-budget", "--report", "--trace", "--launch"})
    expectRefusal(6, std::string(flag) + ": not in this build",
                  {"m.onnx", flag, "1"});
  expectRefusal(6, "--comm mpi", {"m.onnx", "--comm", "mpi"});
  expectRefusal(6, "tf32", {"m.onnx", "--precision", "tf32"});
  expectRefusal(6, "CUDA", {"m.onnx", "--device", "cuda"});
  expectRefusal(6, "--gpu-arch: not in this build",
                {"m.onnx", "-o", "m.mtp", "--gpu-arch", "sm_90"},
                Tool::Compile);
}

TEST(CommandLine, FindsJsonOfABrokenCommandLine) {
  EXPECT_EQ(parse(Tool::Run, {"--foo", "--json", "r.json"}).options.json,
            "r.json");
  EXPECT_EQ(parse(Tool::Run, {"--json=r.json", "--mesh"}).options.json,
            "r.json");
}
