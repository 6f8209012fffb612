// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- UserCalibration.h - what was measured on this machine --------------===//
//
// $XDG_CONFIG_HOME/mtp/calibration-FINGERPRINT.json, or ~/.config/mtp/...: one
// file a machine, so that several may share a home folder. Written by `mtp-run
// --calibrate`, read whenever a plan is made.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_COMMON_USERCALIBRATION_H
#define MTP_TOOLS_COMMON_USERCALIBRATION_H

#include "compiler/cost/Calibration.h"

#include <optional>
#include <string>

namespace mtp {

/// Processor, caches and usable cores, hashed; and the same for people.
std::string machineFingerprint();
std::string machineDescription();

/// The file of this machine; "" if there is neither XDG_CONFIG_HOME nor HOME.
std::string userCalibrationPath();

/// The calibration of this machine, if there is one. A file that is damaged, or
/// of another machine, is not used: `warning` names it.
std::optional<plan::Calibration> userCalibration(std::string &warning);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_USERCALIBRATION_H
