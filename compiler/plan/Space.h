// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Space.h - the strategies that the planner may choose from ----------===//
//
// For every op of the function: the well-typed strategies (Strategy.h) that the
// objective allows, over all mesh axes together. Generic over the sharding
// rules; no op is named.
//
// Objective `parallel`, by the role of the axis:
//
//   dp      an op that has a batch dimension splits it; inputs are stored cut
//   in
//           dimension 0, parameters whole.
//   others  no batch and no token dimension is ever split; with sequence
//           parallelism, tokens may be.
//
// Objective `time` and random plans allow every strategy.
//
// A refined axis (tp = 2 x 2) is used as one: both parts split the same factor,
// or neighbouring factors of one dimension (key heads by the major part, the
// query heads of a key head by the minor one); only what carries key heads
// alone leaves the minor part.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_SPACE_H
#define MTP_COMPILER_PLAN_SPACE_H

#include "compiler/plan/Roles.h"
#include "dialects/mtp/Strategy.h"

#include <map>
#include <string>
#include <vector>

namespace mtp::plan {

enum class Objective : uint8_t { Parallel, Time };

/// How much a Space allows.
enum class Freedom : uint8_t {
  Roles,    ///< as the objective `parallel` has it
  Sequence, ///< the same, and axes besides dp split tokens where they can
  Tokens,   ///< the same, but only where that is cheaper or saves memory
  All,
};

/// A set of mesh axes that is used as one, all others being invariant. Empty:
/// every axis is used as its own.
using AxisSet = llvm::SmallVector<int, 4>;

/// A mesh axis as the user named it, and its parts in the finest mesh.
struct AxisGroup {
  std::string name;
  int64_t size = 1;
  llvm::SmallVector<int, 2> parts;
  bool isData = false; ///< dp
  bool isIdle =
      false; ///< dp without a batch to split: everything is invariant on it
};
std::vector<AxisGroup> groupsOf(const MeshShape &mesh);

/// The mesh `axes` (name, size), refined where the function has key heads that
/// the axis is a multiple of.
MeshShape refineMesh(mlir::func::FuncOp function, const Roles &roles,
                     llvm::ArrayRef<std::pair<std::string, int64_t>> axes);

/// One op, or one argument of the function (op is null).
struct OpSpace {
  mlir::Operation *op = nullptr;
  ShardingRule rule;
  std::vector<Strategy> strategies; ///< arguments: one result layout each
};

/// What is known of a dimension beyond its size.
struct DimTraits {
  llvm::SmallVector<int64_t, 2> units; ///< useful units besides 1
  bool keyHeads =
      false; ///< its major factor has only as many parts as key heads
};

class Space {
public:
  Space(mlir::func::FuncOp function, const Roles &roles, MeshShape mesh,
        Freedom freedom, AxisSet joint = {});

  /// Dimensions of `value` may be split on any axis, tokens too: a pin asks so.
  void relax(mlir::Value value) { relaxed.insert(value); }
  /// The op has this strategy alone; the parameter or argument this storage.
  void fix(mlir::Operation *op, Strategy strategy) {
    fixedOps.insert({op, std::move(strategy)});
  }
  void fix(mlir::Value stored, Layout layout) {
    fixedStorage.insert({stored, std::move(layout)});
  }

  /// Of an op with a sharding rule. Never empty: all-invariant is always legal.
  OpSpace of(mlir::Operation *op) const;
  /// Storage of a parameter or of an argument.
  std::vector<Layout> storage(mlir::Value value) const;

  const std::vector<AxisGroup> &axisGroups() const { return groups; }
  const MeshShape &meshShape() const { return mesh; }
  bool isSequenceParallel() const { return freedom == Freedom::Sequence; }
  const Roles &valueRoles() const { return roles; }

private:
  using Cases = llvm::SmallVector<AxisCase, 2>; ///< one for each part
  void spreadTraits();
  bool spreadOp(mlir::Operation *op, const ShardingRule &rule);
  llvm::SmallVector<int64_t, 2> unitsOfFactor(mlir::Operation *op,
                                              const ShardingRule &rule,
                                              int factor) const;
  bool carriesKeyHeads(mlir::Operation *op, const ShardingRule &rule,
                       int factor) const;
  std::vector<Cases> casesOf(mlir::Operation *op, const ShardingRule &rule,
                             const AxisGroup &group) const;
  bool mayCut(uint8_t role, const AxisGroup &group) const;
  const DimTraits &traitsOf(mlir::Value value, int64_t dim) const;

  mlir::func::FuncOp function;
  const Roles &roles;
  MeshShape mesh;
  Freedom freedom;
  std::vector<AxisGroup> groups;
  llvm::DenseMap<mlir::Value, std::vector<DimTraits>> traits;
  llvm::DenseSet<mlir::Value> relaxed;
  llvm::DenseMap<mlir::Operation *, Strategy> fixedOps;
  llvm::DenseMap<mlir::Value, Layout> fixedStorage;
};

/// A parameter: a source with a cotangent.
bool isParameter(mlir::Operation *op, const ShardingRule &rule);
/// A constant or iota: every use may have it in the layout it needs.
bool isFreeSource(mlir::Operation *op, const ShardingRule &rule);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_SPACE_H
