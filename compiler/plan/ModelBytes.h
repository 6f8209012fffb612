// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ModelBytes.h - what both sums of bytes have in common --------------===//
#ifndef MTP_COMPILER_PLAN_MODELBYTES_H
#define MTP_COMPILER_PLAN_MODELBYTES_H

#include "compiler/plan/Memory.h"
#include "compiler/plan/MemoryTables.h"
#include "compiler/plan/Model.h"

#include "llvm/Support/MathExtras.h"

namespace mtp::plan {

/// As Arena.h has it.
inline constexpr int64_t kAlignment = 64;
/// Sums over a model stay below what the solver takes.
inline constexpr int64_t kMostBytes = int64_t(1) << 44;

class Model::Bytes {
protected:
  Bytes(Model &model, const PlanBudget &budget)
      : model(model), budget(budget), tables(model.tables) {}

  const MeshShape &mesh() const { return model.space.meshShape(); }

  int64_t bytesOf(const ValueModel &value, int layout) const {
    return arenaBytes(value.info, model.layouts[layout], mesh());
  }
  int64_t wholeBytes(const ValueModel &value) const {
    return arenaBytes(value.info, wholeLayout(value), mesh());
  }
  Layout wholeLayout(const ValueModel &value) const {
    return Layout(mesh().size(), int(value.info.shape.size()));
  }

  /// A conversion between invariant and replicated is a name for the same
  /// bytes.
  static bool isSameBuffer(const Layout &a, const Layout &b) {
    auto isWhole = [](AxisState state) {
      return state.kind == Kind::I || state.kind == Kind::R;
    };
    return llvm::all_of(llvm::zip_equal(a.states, b.states), [&](auto pair) {
      auto [from, to] = pair;
      return from == to || (isWhole(from) && isWhole(to));
    });
  }

  /// What the conversions of a path write.
  int64_t pathBytes(const ValueModel &value, int from, int to) {
    if (from == to)
      return 0;
    auto [known, isNew] = paths.try_emplace({value.infoId, from, to}, 0);
    if (!isNew)
      return known->second;
    int64_t bytes = 0;
    Layout before = model.layouts[from];
    for (const ConversionStep &step :
         model.conversions
             .pathBetween(value.info, model.layouts[from], model.layouts[to])
             .steps) {
      if (!isSameBuffer(before, step.result))
        bytes += arenaBytes(value.info, step.result, mesh());
      before = step.result;
    }
    return paths[{value.infoId, from, to}] = std::min(bytes, kMostBytes);
  }

  int requiredBy(const Use &use, int strategy) const {
    return model.units[use.unit].operandId(strategy,
                                           use.operand->getOperandNumber());
  }

  int64_t outputBytes(const ValueModel &value, int layout) {
    int output = model.intern(outputOf(model.layouts[layout]));
    return bytesOf(value, output) + pathBytes(value, layout, output);
  }

  /// Adds the outputs that are made of the value. For every other use calls
  /// `convert(use, variable, x, y, from)` for each x of `variable`, which gives
  /// the value or is its shared copies, and each strategy y of the reader: that
  /// is converted from layout `from`. Each use takes the value or the copy,
  /// what is cheaper, as the costs have it.
  template <typename Convert>
  void addUses(const ValueModel &value, Convert convert) {
    if (value.uses.size() == 1) {
      for (size_t x = 0; x < value.producedOf.size(); ++x) {
        int from = value.produced[value.producedOf[x]];
        addUse(value, value.uses.front(), model.units[value.unit].variable,
               int(x), from, from, convert);
      }
    } else if (value.variable >= 0) {
      for (const Use &use : value.uses)
        for (auto [state, pair] : llvm::enumerate(value.states)) {
          int from = value.produced[pair.produced];
          int copy = pair.copy < 0 ? from : value.copies[pair.copy];
          addUse(value, use, value.variable, int(state), from, copy, convert);
        }
    }
  }

  Model &model;
  const PlanBudget &budget;
  MemoryTables tables;

private:
  template <typename Convert>
  void addUse(const ValueModel &value, const Use &use, int variable, int x,
              int from, int copy, Convert convert) {
    if (use.unit < 0) {
      tables.addUnary(
          variable, x,
          std::max(outputBytes(value, from), outputBytes(value, copy)));
      return;
    }
    size_t strategies = model.units[use.unit].space.strategies.size();
    for (size_t y = 0; y < strategies; ++y) {
      int wanted = requiredBy(use, int(y));
      bool takesCopy = copy != from && model.pathCost(value, copy, wanted) <
                                           model.pathCost(value, from, wanted);
      convert(use, variable, x, int(y), takesCopy ? copy : from);
    }
  }

  llvm::DenseMap<std::tuple<int, int, int>, int64_t> paths;
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_MODELBYTES_H
