// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PlanRequest.cpp - plans as options of passes ask for them ----------===//
#include "compiler/cost/Target.h"
#include "compiler/plan/Pins.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mtp::plan {

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
