// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ModelsBench.cpp - what is proven of the plan of every model --------===//
//
//   planner-models-bench [--models DIR] [--model NAME] [--mesh MESH]...
//                        [--train] [--budget SHARE]
//
// One line a model, mesh and objective: method, proven or the gap, processor
// time. With a budget: that share of the bytes that the plan without one has.
//
//===----------------------------------------------------------------------===//
#include "ModelFile.h"

#include "compiler/plan/Memory.h"

#include "mlir/IR/Diagnostics.h"

#include <cstdio>
#include <ctime>

using namespace mlir;
using namespace mtp;
using namespace mtp::plan;

namespace {

struct Options {
  std::string models = MTP_MODELS, model;
  std::vector<std::string> meshes;
  bool training = false;
  double share = 0;
};

int usage() {
  std::fprintf(stderr, "planner-models-bench [--models DIR] [--model NAME] "
                       "[--mesh MESH]... [--train] [--budget SHARE]\n");
  return 2;
}

/// A weight; when training also its gradient and two states.
int64_t weightBytes(Operation *op, const Layout &layout, const MeshShape &mesh,
                    bool training) {
  return arenaBytes(tensorInfo(op->getResult(0)), layout, mesh) *
         (training ? 4 : 1);
}

void planOne(ModuleOp module, const std::string &name, const std::string &mesh,
             Objective objective, const Options &given) {
  std::vector<std::pair<std::string, int64_t>> axes;
  std::string error;
  if (!parseMesh(mesh, axes, error)) {
    std::printf("%s\n", error.c_str());
    return;
  }
  PlanBudget budget;
  budget.bytes = INT64_MAX;
  budget.training = given.training;
  budget.parameterBytes = [&](Operation *op, const Layout &layout,
                              const MeshShape &shape) {
    return weightBytes(op, layout, shape, given.training);
  };
  PlanOptions options;
  options.objective = objective;
  if (given.share > 0) {
    options.budget = &budget;
    auto whole = choosePlan(module, axes, options);
    if (succeeded(whole))
      budget.bytes = int64_t(double(whole->bytes) * given.share);
  }
  std::clock_t start = std::clock();
  auto plan = choosePlan(module, axes, options);
  double ms = 1e3 * double(std::clock() - start) / CLOCKS_PER_SEC;
  if (failed(plan)) {
    std::printf("%-24s %-16s no plan\n", name.c_str(), mesh.c_str());
    return;
  }
  std::string proof = "proven";
  if (plan->lowerBound < plan->cost)
    proof = std::to_string(100.0 * double(plan->cost - plan->lowerBound) /
                           double(plan->cost))
                .substr(0, 5) +
            " %";
  std::printf("%-24s %-16s %-8s %-28s %8s %9.1f ms  %12.3f us", name.c_str(),
              mesh.c_str(), objective == Objective::Time ? "time" : "parallel",
              plan->method.c_str(), proof.c_str(), ms,
              double(plan->cost) / 1e6);
  if (given.share > 0)
    std::printf("  %lld of %lld bytes", (long long)plan->bytes,
                (long long)budget.bytes);
  std::printf("\n");
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    bool hasValue = i + 1 < argc;
    if (flag == "--train")
      options.training = true;
    else if (flag == "--models" && hasValue)
      options.models = argv[++i];
    else if (flag == "--model" && hasValue)
      options.model = argv[++i];
    else if (flag == "--mesh" && hasValue)
      options.meshes.push_back(argv[++i]);
    else if (flag == "--budget" && hasValue)
      options.share = std::atof(argv[++i]);
    else
      return usage();
  }
  if (options.meshes.empty())
    options.meshes = {"tp=2",      "tp=8",           "dp=2,tp=2",
                      "dp=2,tp=4", "dp=2,tp=2,ep=2", "a=2,b=2,c=2"};
  for (const std::string &name : modelNames(options.models)) {
    if (!options.model.empty() && name != options.model)
      continue;
    MLIRContext context(MLIRContext::Threading::DISABLED);
    loadDialects(context);
    std::string error;
    auto module = readModel(options.models + "/" + name, context,
                            options.training, error);
    if (!module) {
      std::printf("%-24s %s\n", name.c_str(), error.substr(0, 100).c_str());
      continue;
    }
    for (const std::string &mesh : options.meshes)
      for (Objective objective : {Objective::Parallel, Objective::Time})
        planOne(*module, name, mesh, objective, options);
  }
  return 0;
}
