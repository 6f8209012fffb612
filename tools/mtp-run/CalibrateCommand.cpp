// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/io/Npz.h"
#include "tools/calibrate/Measure.h"
#include "tools/common/Table.h"
#include "tools/common/Terminal.h"
#include "tools/common/Text.h"
#include "tools/common/UserCalibration.h"
#include "tools/mtp-run/SimulateCommand.h"

#include <filesystem>

using namespace mtp;

static std::string gigaText(double value, const char *unit) {
  return numberText(value * 1e-9) + " " + unit;
}

static void print(const plan::Calibration &c, const std::string &path) {
  printf("Machine: %s\n", c.machine.c_str());
  printf("A core, all busy: products %s in f32, %s in f64, %s in bf16; memory "
         "%s\n",
         gigaText(c.f32, "GFLOP/s").c_str(), gigaText(c.f64, "GFLOP/s").c_str(),
         gigaText(c.bf16, "GFLOP/s").c_str(),
         gigaText(c.memoryBytesPerSecond, "GB/s").c_str());
  Table table({{"collective"},
               {"ranks", true},
               {"64 KiB", true},
               {"1 MiB", true},
               {"16 MiB", true}});
  for (const plan::MeasuredCollective &m : c.collectives) {
    std::vector<std::string> row = {name(m.kind), std::to_string(m.ranks)};
    for (int64_t bytes :
         {int64_t(64) << 10, int64_t(1) << 20, int64_t(16) << 20})
      for (const auto &[size, time] : m.points)
        if (size == bytes)
          row.push_back(time < 1'000'000'000
                            ? numberText(double(time) * 1e-6) + " us"
                            : timeText(double(time) * 1e-9));
    row.resize(5);
    table.add(row);
  }
  printf("%s", table.text().c_str());
  printf("Written to %s; %s\n", path.c_str(),
         path == userCalibrationPath()
             ? "plans on this machine are made with it from now on"
             : "plans are made with what --calibrate without a file writes");
}

bool mtp::calibrateCommand(const Options &options, Report &report,
                           Error &error) {
  std::string path = options.predict.calibrateTo;
  if (path.empty())
    path = userCalibrationPath();
  if (path.empty()) {
    error = {kUsage,
             "usage",
             "neither XDG_CONFIG_HOME nor HOME is set; say where to write: "
             "--calibrate=FILE",
             {}};
    return false;
  }
  installSignalHandlers();
  Progress progress(options.quiet);
  MeasureOptions measure;
  measure.progress = [&](const std::string &what, double fraction) {
    progress.show("calibrate: " + what, fraction);
  };
  plan::Calibration calibration;
  if (!measureMachine(measure, calibration, error))
    return false;
  progress.clear();
  std::error_code failure;
  if (auto folder = std::filesystem::path(path).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, failure);
  nlohmann::json file = toJson(calibration);
  if (!writeFileAtomically(path, file.dump(1) + "\n", error))
    return false;
  report.add("calibration", file);
  if (!options.quiet)
    print(calibration, path);
  return true;
}
