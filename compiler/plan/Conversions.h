// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Conversions.h - the cheapest way from one layout to another --------===//
//
// A conversion changes the state of some mesh axes by one op. The way from one
// layout to another is the cheapest sequence of them, forward and conjugate
// together (shortest path, so the triangle inequality holds). Planner and
// mtp-apply-plan ask the same function: what is predicted is what is executed.
//
// Between states of one axis (blank: not in one step):
//
//   from \ to   I                R             S(d)             P(sum)
//   I           -                copy_to       scatter_to       root_to
//   R           assert_invariant -             slice            root_of
//   S(e)        gather_from      all_gather    all_to_all       pad_to
//   P(sum)      reduce_from      all_reduce    reduce_scatter   -
//   P(max|min)  reduce_max_from  all_reduce_max
//
// The conjugate of a -> b is dual(b) -> dual(a) on the same blocks. Several
// axes of one state change together, by one collective, if their blocks stay in
// the order of its ranks. Only the minor-most axes of a dimension come and go.
// On the way any dimension may be cut, in units of 1 or of either end.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_CONVERSIONS_H
#define MTP_COMPILER_PLAN_CONVERSIONS_H

#include "compiler/plan/Cost.h"
#include "dialects/mtp/MtpDialect.h"

#include <memory>
#include <optional>

namespace mtp::plan {

/// What a conversion needs to know of a value.
struct TensorInfo {
  llvm::SmallVector<int64_t, 4> shape; ///< global
  int64_t elementBytes = 4;
  bool cotangent = true; ///< otherwise there is no backward, and I serves as R
  bool gradient = true;  ///< whether anything asks for the cotangent
  bool operator==(const TensorInfo &other) const = default;
};

/// What the ranks do in one direction of a conversion.
struct Traffic {
  Transfer transfer = Transfer::None;
  int64_t bytes = 0;     ///< payload that a rank contributes, padding included
  int64_t wireBytes = 0; ///< what it must send
  Time time = 0;
};

/// One op.
struct ConversionStep {
  llvm::StringRef name;           ///< "mtp.copy_to"
  llvm::SmallVector<int, 2> axes; ///< major first
  Layout result;
  Traffic forward, backward;
};

struct ConversionPath {
  Time cost = 0; ///< forward + backward; kIllegal: there is no path
  llvm::SmallVector<ConversionStep, 2> steps;
};

/// For each dimension the units in which it may be cut on the way.
using ConversionUnits = std::vector<llvm::SmallVector<int64_t, 2>>;

/// The layouts of one tensor and the conversions between them, grown as it is
/// asked. Searches from one layout are kept and resumed; the answer to a
/// question does not depend on earlier ones.
class ConversionGraph;

/// Answers are kept, so repeated layers cost nothing.
class Conversions {
public:
  Conversions(MeshShape mesh, Machine machine);
  ~Conversions();

  /// The cheapest path; among equals the one with the fewest steps.
  ConversionPath pathBetween(const TensorInfo &tensor, const Layout &from,
                             const Layout &to);
  Time cost(const TensorInfo &tensor, const Layout &from, const Layout &to);
  /// Bounds of cost() from each to each, row-major. On the way dimensions may
  /// be cut in the units of any of these layouts, so one search from each
  /// layout answers all: much faster where there are many.
  std::vector<Time> leastCosts(const TensorInfo &tensor,
                               llvm::ArrayRef<const Layout *> from,
                               llvm::ArrayRef<const Layout *> to);

  const MeshShape mesh;
  const Machine machine;

private:
  struct Entry {
    TensorInfo tensor;
    ConversionUnits units;
    std::unique_ptr<ConversionGraph> graph;
  };
  ConversionGraph &graphOf(const TensorInfo &tensor, const Layout &from,
                           const Layout &to);
  ConversionGraph &graphOf(const TensorInfo &tensor, ConversionUnits units);
  std::vector<Entry> graphs;
};

/// What the ranks do from one state to another; nothing if there is no such
/// step.
std::optional<Transfer> transferBetween(Kind from, Kind to);

/// What a rank contributes, sends and waits for when the group `axes` goes from
/// one layout to the other by `transfer`.
Traffic trafficOf(const TensorInfo &tensor, Transfer transfer,
                  llvm::ArrayRef<int> axes, const Layout &from,
                  const Layout &to, const MeshShape &mesh,
                  const Machine &machine);

/// "all_reduce", "all_gather", ...; "" for what stays on the rank.
llvm::StringRef collectiveName(Transfer transfer);

/// Bytes of a rank's block, with its padding (saturating): the payload that the
/// rank contributes to a collective on the tensor.
int64_t localBytes(const TensorInfo &tensor, const Layout &layout,
                   const MeshShape &mesh);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_CONVERSIONS_H
