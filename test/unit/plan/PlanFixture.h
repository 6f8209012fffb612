// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PlanFixture.h - models and calls for the tests of the planner ------===//
#ifndef MTP_TEST_UNIT_PLAN_PLANFIXTURE_H
#define MTP_TEST_UNIT_PLAN_PLANFIXTURE_H

#include "compiler/plan/Memory.h"
#include "compiler/plan/Model.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace mtp::plan {

/// A GPT-2: token and position table, layers, tied head.
struct GptOptions {
  int layers = 2, hidden = 64, heads = 4, keyHeads = 0, vocabulary = 101,
      sequence = 12, batch = 2;
  bool shared = false; ///< all layers use the weights of one
};
std::string gpt(const GptOptions &options);

class PlanTest : public testing::Test {
protected:
  PlanTest();
  void parse(const std::string &text);
  Plan choose(const std::string &mesh, const PlanOptions &options = {});
  Plan random(const std::string &mesh, uint64_t seed);
  mlir::FailureOr<Plan> load(const std::string &mesh,
                             const nlohmann::json &file,
                             const std::string &hash);
  /// The diagnostic of a plan that must not exist.
  std::string refusal(const std::string &mesh, const PlanOptions &options);
  /// Visits every layout that the space allows for a named value, with the
  /// least cost of the whole plan that has it.
  void forEachAlternative(
      const std::string &mesh,
      llvm::function_ref<void(const std::string &, const Layout &, Time,
                              const MeshShape &)>
          visit);

  /// The cost model that the planner solves, with what `freedom` allows.
  Problem problemOf(const std::string &mesh, Objective objective,
                    Freedom freedom);

  /// Fixes the runner-up of every op and parameter, one at a time: the plan
  /// costs as much more as was said, or needs as many bytes.
  void comparePlansWithRunnersUp(const std::string &mesh, int atLeast,
                                 PlanOptions options = {});
  /// The same under limits of bytes between those of the smallest plan and of
  /// the cheapest; of all limits together at least so many have a cost.
  void compareWithinBudgets(const std::string &mesh, bool training,
                            int atLeast);

  mlir::MLIRContext context;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string messages;

private:
  /// Visits the model that the planner solves, built.
  void withModel(const std::string &mesh, Objective objective, Freedom freedom,
                 llvm::function_ref<void(Model &, const MeshShape &)> visit);
  /// What the tables count for plans under a budget.
  std::vector<Time> costsInModel(const std::string &mesh,
                                 const std::vector<Plan> &plans);

  /// Runners-up that were compared: by a cost, a bound of it, or bytes.
  int exact = 0, bounds = 0, large = 0;
};

} // namespace mtp::plan

#endif // MTP_TEST_UNIT_PLAN_PLANFIXTURE_H
