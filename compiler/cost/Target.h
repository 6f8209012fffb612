// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Target.h - the machine that plans are made for ---------------------===//
//
// One a process: a compilation sets it before it plans, and every Machine that
// the planner makes comes from here.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_COST_TARGET_H
#define MTP_COMPILER_COST_TARGET_H

#include "compiler/plan/Cost.h"

#include <string>
#include <utility>
#include <vector>

namespace mtp::plan {

using MeshAxes = std::vector<std::pair<std::string, int64_t>>;

/// Plans are made with what was measured (`calibration`, the JSON of a
/// Calibration, "" for none) on hosts laid out as `topology` says (text of
/// --topology, "" for one host); without either with Machine::cpuThreads. False
/// and `error` if one is malformed or the mesh has more ranks than the
/// topology.
bool setTarget(const std::string &calibration, const std::string &topology,
               const MeshAxes &mesh, std::string &error);

/// Costs on the target.
Machine targetMachine(const MeshAxes &mesh);

/// Where the costs come from, for people: "default", "calibration of 2026-01-31
/// on x86-64 (...), 2 cores", "topology nodes:2,ranks:4".
std::string targetText();

} // namespace mtp::plan

#endif // MTP_COMPILER_COST_TARGET_H
