// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/cost/Target.h"

#include "compiler/cost/Calibration.h"
#include "compiler/cost/Cluster.h"

#include <mutex>

namespace mtp::plan {
namespace {
struct Target {
  std::optional<Calibration> calibration;
  std::optional<Topology> topology;
  std::string text = "default";
};
std::mutex mutex;
Target current;
} // namespace

static Machine machineOf(const Target &target, const MeshAxes &mesh,
                         std::string &error) {
  Machine machine = target.calibration ? machineFor(*target.calibration, mesh)
                                       : Machine::cpuThreads(mesh);
  if (target.topology)
    applyTopology(machine, *target.topology, error);
  return machine;
}

bool setTarget(const std::string &calibration, const std::string &topology,
               const MeshAxes &mesh, std::string &error) {
  error.clear();
  Target target;
  if (!calibration.empty()) {
    auto file = nlohmann::json::parse(calibration, nullptr, false);
    target.calibration = parseCalibration(file, error);
    if (!target.calibration)
      return false;
    target.text = "calibration of " + target.calibration->measured + " on " +
                  target.calibration->machine;
  }
  if (!topology.empty()) {
    target.topology = parseTopology(topology, error);
    if (!target.topology)
      return false;
    target.text =
        (target.calibration ? target.text + ", " : "") + "topology " + topology;
  }
  (void)machineOf(target, mesh, error);
  if (!error.empty())
    return false;
  std::lock_guard lock(mutex);
  current = std::move(target);
  return true;
}

Machine targetMachine(const MeshAxes &mesh) {
  std::lock_guard lock(mutex);
  std::string error; // setTarget() refused a mesh that does not fit
  return machineOf(current, mesh, error);
}

std::string targetText() {
  std::lock_guard lock(mutex);
  return current.text;
}

} // namespace mtp::plan
