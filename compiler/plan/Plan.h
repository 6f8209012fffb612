// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Plan.h - a layout for every value: the planner's answer ------------===//
//
// A plan is data: the layouts of operands and results of every op of @main, and
// for values with several uses the layout of one shared converted copy. It
// refers to ops by position and names them for people. From a plan follow the
// conversion ops (Realization): the same object predicts the collectives and,
// in mtp-apply-plan, inserts them.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_PLAN_H
#define MTP_COMPILER_PLAN_PLAN_H

#include "compiler/plan/Conversions.h"
#include "compiler/plan/Space.h"

#include "mlir/IR/BuiltinOps.h"

#include <nlohmann/json.hpp>

namespace mtp::plan {

/// Layouts of one op, in the order of its operands and results. A constant has
/// none: each use gets it in the layout that the use needs.
struct PlannedOp {
  std::string name, kind; ///< value name, "mtp.matmul"
  llvm::SmallVector<Layout, 3> operands, results;
  llvm::SmallVector<std::optional<Layout>, 1> copies; ///< one for each result
  Time time = 0; ///< compute, forward and backward; filled by describe()
};

/// A collective that the plan needs, predicted before partition.
struct PredictedCollective {
  std::string op;          ///< "reduce_from"
  std::string kind;        ///< "all_reduce"
  std::string axis;        ///< "tp"
  std::string phase;       ///< "forward", "backward"
  std::string value, node; ///< converted value; op that needs it
  std::string dtype;
  std::string reason;
  std::string from, to;  ///< layouts of the value that is converted
  std::string conjugate; ///< what stands for it in the other phase
  int64_t bytes = 0, wireBytes = 0;
  Time time = 0;
  std::string runnerUp; ///< the best plan without it, in words; "" if not asked
  std::string runnerUpPin; ///< --pin that gives it; "" if there is none
  Time regret = 0;      ///< how much more that plan costs
  bool regretIsBound = false; ///< it costs at least so much more
};

/// How a parameter is stored.
struct PredictedWeight {
  std::string name, layout, how;
  llvm::SmallVector<int64_t, 4> shape;
  int64_t bytes = 0, bytesPerRank = 0;
};

/// A value that is whole on an axis although the mesh could split it.
struct WholeValue {
  std::string value, axis, why;
  bool isParameter = false;
};

/// Everything that an op (or the storage of an input or a parameter) could be,
/// and how much more the whole plan would cost with it: its global regret,
/// among the plans that fit where there is a limit of bytes.
struct OpChoices {
  struct Choice {
    llvm::SmallVector<Layout, 3> operands, results;
    Time regret = 0;
    std::string why;            ///< why it is out, if no time says so
    bool regretIsBound = false; ///< it costs at least so much more
    /// If no plan that fits has it: what the smallest that has it needs, or at
    /// least needs; else 0.
    int64_t neededBytes = 0;
  };
  std::string name, kind;
  std::string pinName;     ///< name that pins it alone (PinNames)
  std::vector<Choice> all; ///< the chosen one first, then by regret
};

struct Plan {
  std::string origin = "chosen";                     ///< chosen | random | file
  std::vector<std::pair<std::string, int64_t>> axes; ///< as the user wrote them
  MeshShape mesh;
  std::vector<PlannedOp> arguments; ///< only results[0], copies[0]
  std::vector<PlannedOp> ops; ///< all ops of @main but the terminator, in order

  /// Forward and backward, without the penalties of the objective.
  Time cost = 0, lowerBound = 0, allReplicated = 0, megatron = 0;
  /// What the lower bound follows from; "" of a plan that was not searched for.
  /// A bound that equals the cost proves the plan.
  std::string method;
  int64_t bytes = 0; ///< of a rank, by the model of PlanOptions::budget
  int64_t limit = 0; ///< of these bytes; 0: there was none
  double solveMs = 0;
  int width = 0;
  std::vector<PredictedCollective> collectives;
  std::vector<PredictedWeight> weights;
  std::vector<std::string> notes; ///< sentences for people
  std::vector<WholeValue> whole;  ///< filled with PlanOptions::explain
  std::vector<OpChoices> choices; ///< likewise
};

struct PlanBudget;

struct PlanOptions {
  Objective objective = Objective::Parallel;
  /// Norms, dropout and residuals are cut by tokens on axes besides dp.
  bool sequenceParallel = false;
  std::vector<std::pair<std::string, std::string>>
      pins;                ///< VALUE (glob), LAYOUT
  bool annotations = true; ///< attributes mtp.pin and mtp.plan are pins, too
  bool explain = false;    ///< fill runner-up and regret
  /// The cheapest plan within it, or that of the fewest bytes; tokens may be
  /// split to get there.
  const PlanBudget *budget = nullptr;
  /// Under the budget, of several plans of least cost this one.
  const Plan *prefer = nullptr;
};

/// Parses "dp=2,tp=4"; false and `error` if an axis is malformed or given
/// twice.
bool parseMesh(llvm::StringRef text,
               std::vector<std::pair<std::string, int64_t>> &axes,
               std::string &error);

/// The cheapest plan of @main. Errors are diagnostics at the op they are about.
mlir::FailureOr<Plan>
choosePlan(mlir::ModuleOp module,
           llvm::ArrayRef<std::pair<std::string, int64_t>> axes,
           const PlanOptions &options);
/// A random legal plan: any well-typed strategy of any op, then whatever
/// conversions that needs. The same seed gives the same plan.
mlir::FailureOr<Plan>
randomPlan(mlir::ModuleOp module,
           llvm::ArrayRef<std::pair<std::string, int64_t>> axes, uint64_t seed);

/// Plan file (docs/plan-file.md).
nlohmann::json savePlan(const Plan &plan, llvm::StringRef modelHash);
/// A plan from a file. Refused, with the op named, if the model, the mesh or an
/// op is another, or if layouts do not fit the op.
mlir::FailureOr<Plan>
loadPlan(mlir::ModuleOp module,
         llvm::ArrayRef<std::pair<std::string, int64_t>> axes,
         const nlohmann::json &file, llvm::StringRef modelHash);

/// Gives every value its layout and inserts the conversions. The module is
/// typed afterwards: every tensor type in @main carries a layout.
mlir::LogicalResult applyPlan(mlir::ModuleOp module, const Plan &plan);

/// A plan as options of passes ask for it.
struct PlanRequest {
  std::string mesh, objective, plan, pins, topology;
  bool sequenceParallel = false, explain = false;
};
/// The plan that is asked for: chosen, random or of a file. Everything wrong
/// with the request is a diagnostic. `explain`: prints it to standard error.
mlir::FailureOr<Plan> makePlan(mlir::ModuleOp module,
                               const PlanRequest &request);

/// Gives every conversion of a typed module that moves bytes between ranks what
/// is known of it before partition: the converted value, the reason, and the
/// count and bytes that the runtime is going to count in a step. @main runs
/// `micro` times in one, other functions once.
void predictCollectives(mlir::ModuleOp module, int64_t micro = 1);

/// Tables for people: weights, collectives, what stayed whole.
std::string explainText(const Plan &plan);
nlohmann::json explainJson(const Plan &plan);

/// @main, which must be one block of ops; a diagnostic otherwise.
mlir::func::FuncOp mainFunction(mlir::ModuleOp module);
/// Name of a value: of the argument, the parameter, or the op's location.
std::string valueName(mlir::Value value);

/// Which values have a backward.
struct GradientFlow {
  explicit GradientFlow(mlir::func::FuncOp function);
  llvm::DenseSet<mlir::Value> untyped; ///< without cotangent (Strategy.h)
  /// Those that depend on no trainable parameter: inputs, tables of rotary
  /// embeddings. They have a cotangent, but nothing asks for it.
  llvm::DenseSet<mlir::Value> unused;

  bool reaches(mlir::Value value) const {
    return !untyped.contains(value) && !unused.contains(value);
  }
};
/// What conversions need to know of `value`.
TensorInfo tensorInfo(mlir::Value value, const GradientFlow &gradients);
/// The same of a value without cotangent.
TensorInfo tensorInfo(mlir::Value value);

/// The conversions of one value.
struct ValueConversions {
  struct Node {
    int parent = -1; ///< -1: the value itself
    ConversionStep step;
  };
  Layout
      layout; ///< of the value; of a constant: as it is produced for this use
  std::vector<Node> nodes;
  llvm::DenseMap<mlir::OpOperand *, int>
      uses; ///< node of each use, -1: the value
};

/// All conversions that a plan needs.
///
/// Invariants: nodes of a value are in topological order; every node is used;
/// two nodes with one parent have different results.
class Realization {
public:
  /// Fails with a diagnostic where a layout cannot be reached from another.
  static mlir::FailureOr<Realization>
  of(mlir::func::FuncOp function, const Plan &plan, Conversions &conversions);

  const ValueConversions &operator[](mlir::Value value) const {
    return values.at(value);
  }
  /// Constants have one entry for each use.
  const ValueConversions &constantUse(mlir::OpOperand &use) const {
    return constants.at(&use);
  }
  /// Layout that the terminator's operand has.
  Layout outputLayout(mlir::OpOperand &use) const { return outputs.at(&use); }
  /// Cost of all conversions.
  Time cost() const { return total; }

private:
  bool convert(ValueConversions &value, const TensorInfo &info,
               Conversions &conversions, mlir::OpOperand *use,
               const Layout &required, const std::optional<Layout> &copy);
  Time total = 0;
  llvm::DenseMap<mlir::Value, ValueConversions> values;
  llvm::DenseMap<mlir::OpOperand *, ValueConversions> constants;
  llvm::DenseMap<mlir::OpOperand *, Layout> outputs;
};

/// What an output becomes: sharded axes stay, all others are invariant.
Layout outputOf(const Layout &layout);
/// Layout in which a constant is produced for a use that needs `required`:
/// sharded where the rule allows, invariant otherwise.
Layout constantLayout(const ShardingRule &rule, const Layout &required);
/// Compute time of an op with these layouts, forward and backward.
Time computeTime(mlir::Operation *op, const Strategy &strategy, bool cotangent,
                 const Conversions &conversions);
/// Visits the conversions of arguments, then of results, in program order:
/// (value, node, the first use that needs it).
void forEachConversion(
    mlir::func::FuncOp function, const Realization &realization,
    llvm::function_ref<void(mlir::Value, const ConversionStep &,
                            mlir::OpOperand &)>
        visit);
/// Fills collectives, weights, cost and allReplicated from the layouts.
mlir::LogicalResult describe(mlir::func::FuncOp function, Plan &plan,
                             Conversions &conversions);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_PLAN_H
