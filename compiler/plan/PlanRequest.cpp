// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PlanRequest.cpp - plans as options of passes ask for them ----------===//
#include "compiler/cost/Target.h"
#include "compiler/plan/Pins.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mtp::plan {

bool parseMesh(StringRef text,
               std::vector<std::pair<std::string, int64_t>> &axes,
               std::string &error) {
  SmallVector<StringRef> entries;
  text.split(entries, ',');
  for (StringRef entry : entries) {
    auto [name, sizeText] = entry.split('=');
    name = name.trim();
    int64_t size = 0;
    if (name.empty() || sizeText.trim().getAsInteger(10, size) || size < 1) {
      error = ("mesh axis '" + entry + "' is not NAME=SIZE").str();
      return false;
    }
    for (const auto &axis : axes)
      if (axis.first == name) {
        error = ("mesh axis '" + name + "' is given twice").str();
        return false;
      }
    axes.push_back({name.str(), size});
  }
  int64_t ranks = 1;
  for (const auto &axis : axes)
    if (__builtin_mul_overflow(ranks, axis.second, &ranks) || ranks > 65536) {
      error = "the mesh has more than 65536 ranks";
      return false;
    }
  return true;
}

using Axes = std::vector<std::pair<std::string, int64_t>>;

static FailureOr<Plan> readPlan(ModuleOp module, const Axes &axes,
                                const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return module.emitError() << "cannot read the plan " << path << ": "
                              << buffer.getError().message(),
           failure();
  auto json = nlohmann::json::parse((*buffer)->getBuffer().str(), nullptr,
                                    /*exceptions=*/false);
  auto hash = module->getAttrOfType<StringAttr>("mtp.hash");
  return loadPlan(module, axes, json, hash ? hash.getValue() : "");
}

static FailureOr<Plan> choose(ModuleOp module, const Axes &axes,
                              const PlanRequest &request) {
  PlanOptions options;
  if (request.objective != "parallel" && request.objective != "time")
    return module.emitError() << "objective is parallel or time, not '"
                              << request.objective << "'",
           failure();
  if (request.objective == "time")
    options.objective = Objective::Time;
  options.sequenceParallel = request.sequenceParallel;
  options.explain = request.explain;
  SmallVector<StringRef> entries;
  StringRef(request.pins).split(entries, ';', -1, /*KeepEmpty=*/false);
  for (StringRef pin : entries) {
    auto [value, layout] = pin.split('=');
    options.pins.push_back({value.str(), layout.str()});
  }
  return choosePlan(module, axes, options);
}

FailureOr<Plan> makePlan(ModuleOp module, const PlanRequest &request) {
  Axes axes;
  std::string error, mesh = request.mesh;
  // On one rank, the default, annotations would mean nothing.
  if (std::string annotated = annotatedMesh(module);
      mesh == "tp=1" && !annotated.empty())
    mesh = annotated;
  if (!parseMesh(mesh, axes, error) ||
      !setTarget("", request.topology, axes, error))
    return module.emitError() << error, failure();
  FailureOr<Plan> plan = failure();
  StringRef text = request.plan;
  if (text.consume_front("random:")) {
    uint64_t seed = 0;
    if (text.getAsInteger(10, seed))
      return module.emitError()
                 << "random:SEED needs a number, not '" << text << "'",
             failure();
    plan = randomPlan(module, axes, seed);
  } else {
    plan = text.empty() ? choose(module, axes, request)
                        : readPlan(module, axes, request.plan);
  }
  if (succeeded(plan) && request.explain)
    llvm::errs() << explainText(*plan);
  return plan;
}

} // namespace mtp::plan
