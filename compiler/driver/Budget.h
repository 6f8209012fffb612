// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Budget.h - the fastest program that fits a memory budget -----------===//
//
// What a request leaves open is searched for the program with the least
// predicted time (StepTime.h) whose bytes a rank, counted on the program itself
// as the runtime allocates them (Footprint.h), are within the budget:
//
//   layouts x stage of ZeRO x how many layers are computed again
//
// A program is made as far as its buffers are planned; no kernel is compiled.
// For each pair of layouts and stage, the fastest first, the program that keeps
// everything is tried, then the one that computes all layers again, and by
// bisection the fewest layers that suffice (more layers, fewer bytes is
// assumed in between; what is accepted was counted). A pair is passed over once
// a program is known that is faster than its fastest.
//
// If none fits, the bytes of the smallest program take the place of the budget,
// until no search finds a smaller one: those bytes are the least budget that
// would do.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_DRIVER_BUDGET_H
#define MTP_COMPILER_DRIVER_BUDGET_H

#include "compiler/driver/CompilerApi.h"
#include "compiler/driver/LargestTensors.h"
#include "compiler/plan/BudgetPlans.h"
#include "runtime/artifact/Footprint.h"

#include <deque>
#include <map>
#include <set>

namespace mtp {

/// Layouts that may be chosen.
struct BudgetLayouts {
  plan::Plan plan;
  plan::PlanOptions options; ///< that the plan was asked for with
  std::string text;          ///< "weights split"
  bool again = false;        ///< `options` alone give the plan once more
  /// Of a plan within so many bytes of the planner's model; else 0.
  int64_t limit = 0;
  bool bounded = false; ///< by the sum that bounds what a program takes
  int zero = 0;         ///< the stage that the sum is for
};

/// A program that was tried.
struct BudgetTrial {
  size_t layouts = 0;
  int zero = 0;
  int64_t layers = 0; ///< computed again; -1: all
  plan::Time time = plan::kIllegal;
  int64_t bytes = 0;
  std::string failure; ///< why there is no such program; "" if there is
  bool fits(int64_t budget) const { return failure.empty() && bytes <= budget; }
};

class BudgetSearch {
public:
  /// `module` is the graph before a plan is applied; it stays as it is.
  BudgetSearch(mlir::ModuleOp module, const CompileRequest &request);

  void add(BudgetLayouts layouts) { choices.push_back(std::move(layouts)); }
  /// Adds the plan of `options`; run() may add others that need less memory.
  /// Fails with a diagnostic if it doesn't exist.
  mlir::LogicalResult
  addLayouts(llvm::ArrayRef<std::pair<std::string, int64_t>> axes,
             const plan::PlanOptions &options);
  /// True if a program fits.
  bool run();
  /// False if none of the programs can be made at all.
  bool isSound() const { return result().failure.empty(); }

  /// The fastest program that fits, or the one with the fewest bytes.
  const BudgetTrial &result() const { return trials[chosen]; }
  const BudgetLayouts &layouts() const { return choices[result().layouts]; }
  /// The plan that was chosen, with the reasons for its layouts.
  mlir::FailureOr<plan::Plan> explained() const;
  /// What is to be trained in the way that was chosen.
  std::optional<TrainRequest> train() const;
  /// `plan.budget` of --json.
  nlohmann::json json() const;
  /// A sentence about the choice, or why there is none.
  std::string message() const;
  /// Names of the largest tensors of the program with the fewest bytes.
  std::vector<std::string> largestNames() const {
    std::vector<std::string> names;
    for (const ResidentTensor &tensor : largest)
      names.push_back(tensor.name);
    return names;
  }

private:
  struct Pair;
  void search(std::vector<Pair> &pairs);
  /// Chooses among the trials for a budget of `bytes`.
  void choose(int64_t bytes);
  int64_t fewestBytes() const; ///< of all trials; -1: there is none
  TrainRequest trainOf(const BudgetTrial &trial) const;
  std::string describe(const BudgetTrial &trial) const;
  int64_t microBatches() const {
    return request.train ? request.train->accumulate : 1;
  }
  void addSmallerLayouts();
  std::vector<int> stages() const;
  std::optional<Pair> makePair(size_t layouts, int zero);
  void searchLayouts(int zero);
  /// Layouts that were planned within a limit, and their bytes by the planner's
  /// model.
  struct Planned {
    size_t layouts;
    int64_t bytes;
  };
  size_t knownLayouts(const plan::Plan &plan, int zero) const;
  std::optional<Planned> layoutsWithin(int64_t bytes, int zero);
  /// Layouts that were planned within a limit, and their program.
  struct LayoutPoint {
    int64_t limit = 0;
    int64_t bytes = 0;      ///< by the planner's model; 0: no plan
    int64_t allocated = -1; ///< by the program that keeps everything, if made
    bool fits = false;      ///< or is slower than one that does
  };
  LayoutPoint tryLimit(int64_t bytes, int zero);
  bool narrow(LayoutPoint good, LayoutPoint bad, int zero, bool byLine);
  void tryBounded(int zero);
  void searchPair(Pair &pair);
  size_t attempt(Pair &pair, int64_t layers);
  void emitTrial(mlir::OwningOpRef<mlir::ModuleOp> module, BudgetTrial &trial);

  mlir::ModuleOp module;
  const CompileRequest &request;
  /// Set if layouts may be chosen.
  std::optional<std::vector<std::pair<std::string, int64_t>>> axes;
  std::optional<plan::PlanOptions> freeOptions;
  std::deque<BudgetLayouts> choices;
  std::vector<BudgetTrial> trials;
  int64_t limit; ///< the bytes that are searched for
  size_t chosen = 0;
  bool found = false;
  std::unique_ptr<plan::BudgetPlans> plans;           ///< by stage
  std::map<std::pair<int, int64_t>, Planned> planned; ///< by stage and limit
  /// Pairs of layouts and stage, with the limit that they were searched for.
  std::set<std::tuple<size_t, int, int64_t>> searched;
  /// Of pairs that were made: what the program takes that keeps everything.
  std::map<std::pair<size_t, int>, plan::Time> leastTimes;
  /// By stage, a lower bound on the cost of layouts whose bound of bytes is
  /// within the budget; kIllegal: there are none.
  std::map<int, plan::Time> boundedCosts;
  std::string unsearched; ///< why layouts were not searched, "" if they were
  /// The program with the fewest bytes, and its largest tensors if none fits.
  mlir::OwningOpRef<mlir::ModuleOp> smallest;
  Artifact smallestArtifact;
  std::vector<ResidentTensor> largest;
};

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_BUDGET_H
