// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/UserCalibration.h"

#include "runtime/loader/CpuFeatures.h"
#include "runtime/support/Sha256.h"
#include "runtime/support/System.h"

#include <cstdlib>
#include <filesystem>
#include <unistd.h>

using namespace mtp;

std::string mtp::machineDescription() {
  int cores = usableCores();
  return cpuName() + ", " + std::to_string(cores) +
         (cores == 1 ? " core" : " cores");
}

std::string mtp::machineFingerprint() {
  std::string text = machineDescription();
  for (int level :
       {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE})
    text += "/" + std::to_string(sysconf(level));
  return Sha256::hex(text.data(), text.size()).substr(0, 16);
}

std::string mtp::userCalibrationPath() {
  const char *config = std::getenv("XDG_CONFIG_HOME"),
             *home = std::getenv("HOME");
  std::filesystem::path folder;
  if (config && *config)
    folder = config;
  else if (home && *home)
    folder = std::filesystem::path(home) / ".config";
  else
    return "";
  return folder / "mtp" / ("calibration-" + machineFingerprint() + ".json");
}

std::optional<plan::Calibration> mtp::userCalibration(std::string &warning) {
  std::string path = userCalibrationPath();
  std::error_code failure;
  if (path.empty() || !std::filesystem::exists(path, failure))
    return std::nullopt;
  auto calibration = plan::readCalibration(path, warning);
  if (calibration && calibration->fingerprint != machineFingerprint()) {
    warning = "calibration '" + path +
              "': it was measured on another machine (" + calibration->machine +
              ")";
    calibration.reset();
  }
  if (!calibration)
    warning += "; default costs are used, `mtp-run --calibrate` measures again";
  return calibration;
}
