// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/calibrate/Measure.h"
#include "tools/calibrate/PredictStep.h"
#include "tools/common/UserCalibration.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace mtp;

namespace {

/// A configuration folder of its own for each test.
class UserCalibration : public testing::Test {
protected:
  UserCalibration()
      : folder(std::filesystem::temp_directory_path() /
               ("mtp-config-" + std::to_string(getpid()))) {
    setenv("XDG_CONFIG_HOME", folder.c_str(), 1);
  }
  ~UserCalibration() override { std::filesystem::remove_all(folder); }

  void write(const std::string &text) {
    std::filesystem::create_directories(folder / "mtp");
    std::ofstream(userCalibrationPath()) << text;
  }
  static plan::Calibration measured() {
    MeasureOptions options;
    options.secondsPerPoint = 0.001;
    options.largestBytes = 4096;
    double last = -1;
    options.progress = [&](const std::string &what, double fraction) {
      EXPECT_FALSE(what.empty());
      EXPECT_GT(fraction, last);
      EXPECT_LE(fraction, 1);
      last = fraction;
    };
    plan::Calibration result;
    Error error;
    EXPECT_TRUE(measureMachine(options, result, error)) << error.message;
    return result;
  }

  std::filesystem::path folder;
};

TEST_F(UserCalibration, IsWhatWasMeasuredAndWritten) {
  std::string warning;
  EXPECT_FALSE(userCalibration(warning));
  EXPECT_EQ(warning, "");
  plan::Calibration calibration = measured();
  EXPECT_EQ(calibration.fingerprint, machineFingerprint());
  EXPECT_GT(calibration.f32, 1e6);
  EXPECT_GT(calibration.f64, 1e6);
  EXPECT_GT(calibration.bf16, 1e6);
  EXPECT_GT(calibration.memoryBytesPerSecond, 1e6);
  EXPECT_EQ(calibration.collectives.size(), 5 * measuredRanks().size());
  write(toJson(calibration).dump());
  auto read = userCalibration(warning);
  ASSERT_TRUE(read) << warning;
  EXPECT_EQ(warning, "");
  EXPECT_EQ(toJson(*read), toJson(calibration));
}

TEST_F(UserCalibration, OfAnotherMachineOrDamagedIsNamedAndNotUsed) {
  plan::Calibration calibration;
  calibration.fingerprint = "0123456789abcdef";
  calibration.f32 = calibration.f64 = calibration.bf16 = 1e9;
  calibration.memoryBytesPerSecond = 1e9;
  calibration.launch = calibration.link.alpha = 1'000'000;
  calibration.link.psPerKiB = 1000;
  write(toJson(calibration).dump());
  std::string warning;
  EXPECT_FALSE(userCalibration(warning));
  EXPECT_NE(warning.find(userCalibrationPath()), std::string::npos) << warning;
  EXPECT_NE(warning.find("another machine"), std::string::npos) << warning;
  write("{\"format\": \"mtp-calib");
  EXPECT_FALSE(userCalibration(warning));
  EXPECT_NE(warning.find(userCalibrationPath()), std::string::npos) << warning;
  EXPECT_NE(warning.find("default costs"), std::string::npos) << warning;
}

TEST_F(UserCalibration, NeedsAHome) {
  EXPECT_EQ(userCalibrationPath(),
            folder / "mtp" / ("calibration-" + machineFingerprint() + ".json"));
  unsetenv("XDG_CONFIG_HOME");
  std::string home = getenv("HOME") ? getenv("HOME") : "";
  setenv("HOME", "someone", 1);
  EXPECT_EQ(userCalibrationPath(), "someone/.config/mtp/calibration-" +
                                       machineFingerprint() + ".json");
  unsetenv("HOME");
  EXPECT_EQ(userCalibrationPath(), "");
  if (!home.empty())
    setenv("HOME", home.c_str(), 1);
}

TEST(PredictStep, AddsUpTheInstructions) {
  Artifact artifact;
  artifact.axes.axes = {{"tp", 2}};
  artifact.librarySites = {{"matmul",
                            nlohmann::json::object(),
                            {{DType::F32, {4, 64, 32}, {}},
                             {DType::F32, {32, 16}, {}},
                             {DType::F32, {4, 64, 16}, {}}},
                            1}};
  CollectiveSite site;
  site.kind = CollectiveSite::Kind::AllReduce;
  site.axes = {0};
  site.inShape = site.outShape = {256, 1024};
  artifact.collectiveSites = {site};
  auto instruction = [](Instruction::Kind kind, int64_t count = 1) {
    Instruction result{kind, 0, {}, count, 1, ""};
    if (kind == Instruction::Kind::Kernel)
      result.buffers = {{BufferRef::Space::Arena, 0, 0, 1 << 20}};
    return result;
  };
  using Kind = Instruction::Kind;
  Entry entry;
  entry.program = {instruction(Kind::LoopBegin, 3), instruction(Kind::Library),
                   instruction(Kind::LoopEnd),      instruction(Kind::Kernel),
                   instruction(Kind::Start),        instruction(Kind::Done)};
  plan::Calibration calibration;
  calibration.cores = 2;
  calibration.f32 = 1e9;
  calibration.memoryBytesPerSecond = 1024e6;
  calibration.kernelUs = 1;
  calibration.launch = 5'000'000;
  calibration.link = {1'000'000, 1000};
  PredictedStep step = predictStep(artifact, entry, calibration);
  EXPECT_EQ(step.products, plan::Time(3) * 2 * 4 * 64 * 32 * 16 * 1000);
  EXPECT_EQ(step.kernels, plan::Time(1024) * 1'000'000);
  EXPECT_EQ(step.collectives, 5'000'000 + 2 * 1'000'000 + 1024 * 1000);
  EXPECT_EQ(step.total(), step.products + step.kernels + step.collectives);
}

} // namespace
