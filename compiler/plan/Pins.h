// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Pins.h - layouts that the user fixes -------------------------------===//
//
// Three ways to say them:
//
//   --pin VALUE=LAYOUT       values by name, globs allowed; on the axes that
//                            the layout names
//   mtp.pin = "LAYOUT"       the same, as attribute of an op or argument
//   mtp.plan = {operands, results}
//                            everything about one op, as mtp-annotate-plan
//                            writes it
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_PINS_H
#define MTP_COMPILER_PLAN_PINS_H

#include "compiler/plan/Model.h"

#include "llvm/Support/GlobPattern.h"

namespace mtp::plan {

/// Names that say which value a pin is about: that of valueName(), and where
/// several values have it NAME#K, the K-th of them, arguments first, then
/// results in program order. Constants have none.
class PinNames {
public:
  explicit PinNames(mlir::func::FuncOp function);
  std::string operator[](mlir::Value value) const {
    return names.lookup(value);
  }
  /// Those with the name, or with names that fit the pattern.
  std::vector<mlir::Value> find(llvm::StringRef name,
                                const llvm::GlobPattern &pattern) const;
  llvm::ArrayRef<mlir::Value> all() const { return values; }

private:
  std::vector<mlir::Value> values;
  llvm::DenseMap<mlir::Value, std::string> names;
};

/// A strategy as explanations print it and pins take it:
/// "<tp = R>, <tp = S(1)> -> <tp = S(1)>"; without operands what is stored.
std::string strategyText(llvm::ArrayRef<Layout> operands,
                         llvm::ArrayRef<Layout> results, const MeshShape &mesh);

/// Layouts that values must be produced in, or operands read in. The text
/// "dp = S(0)" is about the axes that it names, "<dp = S(0)>" about all: those
/// that it doesn't name are invariant.
struct Pin {
  std::string source; ///< for messages: "pin h.*.weight", "mtp.pin"
  std::string text;
  std::vector<mlir::Value> values;
  std::vector<mlir::OpOperand *> operands;
};

/// Everything that is fixed in a function.
struct Pins {
  std::vector<Pin> layouts;
  llvm::DenseMap<mlir::Operation *, Strategy> ops;
  llvm::DenseMap<mlir::Value, Layout> storage; ///< parameters and arguments
  bool empty() const {
    return layouts.empty() && ops.empty() && storage.empty();
  }
};

/// The pins of `options` and the attributes of the function. A diagnostic for a
/// pin that matches nothing (with the names that are nearest), for a malformed
/// layout, and for layouts that are no case of the op's rule.
mlir::LogicalResult
findPins(mlir::func::FuncOp function, const PlanOptions &options,
         llvm::ArrayRef<std::pair<std::string, int64_t>> axes,
         const MeshShape &mesh, Pins &pins);

/// Puts into the space what the pins need: an op that is fixed has that
/// strategy alone; a value that is pinned to a layout which its objective
/// leaves out may be split on any axis.
void openSpace(Space &space, const Pins &pins);

/// Keeps only what the pin allows. Fails if that leaves nothing: with a
/// diagnostic that has the layouts that are possible, without one if `quiet`.
mlir::LogicalResult restrictTo(Model &model, const Pin &pin,
                               const MeshShape &mesh, bool quiet);

/// The strategy of `op` that has exactly these layouts; nothing if they are not
/// a case of its rule.
std::optional<Strategy> strategyOf(mlir::Operation *op,
                                   const ShardingRule &rule,
                                   llvm::ArrayRef<Layout> operands,
                                   llvm::ArrayRef<Layout> results,
                                   const MeshShape &mesh);

/// Writes the plan as attributes `mtp.plan`, and its mesh on the module.
void annotatePlan(mlir::ModuleOp module, const Plan &plan);
/// Attributes of @main, its ops and arguments that say layouts.
int64_t countAnnotations(mlir::ModuleOp module);
/// Removes them.
void removeAnnotations(mlir::ModuleOp module);

/// The mesh of the plan that annotates the module, "" if there is none.
std::string annotatedMesh(mlir::ModuleOp module);

/// "dp=2,tp=4".
std::string meshText(llvm::ArrayRef<std::pair<std::string, int64_t>> axes);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_PINS_H
