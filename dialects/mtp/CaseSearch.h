// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CaseSearch.h - the case of a rule that given layouts are -----------===//
//
// An op is one case of its rule on every mesh axis. The verifier knows all
// layouts and asks whether there is such a case; inference knows those of the
// operands and takes the results' from the case it finds.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_DIALECT_CASESEARCH_H
#define MTP_DIALECT_CASESEARCH_H

#include "dialects/mtp/Strategy.h"

namespace mtp {

class CaseSearch {
public:
  using Layouts = llvm::ArrayRef<std::optional<Layout>>;

  /// `operands` has one layout an operand. Each result is `required` to have a
  /// layout, or `wanted` to, or free.
  CaseSearch(mlir::Operation *op, const ShardingRule &rule,
             const MeshShape &mesh, llvm::ArrayRef<Layout> operands,
             Layouts required, Layouts wanted = {});

  /// The layouts of the first combination of cases, one an axis, that fits. On
  /// an axis, cases that give the wanted states come first, then they stand in
  /// the order of enumerateCases (invariant before replicated). Without a
  /// combination `why` says what the last one lacked; if one axis alone has no
  /// case, `unfitAxis` is that axis.
  std::optional<Strategy> run();

  std::string why;
  std::optional<int> unfitAxis;

private:
  llvm::SmallVector<AxisCase, 2> casesOf(int axis);
  llvm::SmallVector<int64_t, 2> unitsOf(AxisCase c) const;
  llvm::SmallVector<AxisState> statesOf(AxisCase c, bool results) const;
  bool fitsAxis(AxisCase c, int axis);
  bool givesWanted(AxisCase c, int axis);
  std::optional<Strategy> searchFrom(int axis);
  std::optional<Strategy> tryChosen();
  llvm::SmallVector<int> nesting() const;
  llvm::SmallVector<const Layout *> known() const;

  mlir::Operation *op;
  const ShardingRule &rule;
  const MeshShape &mesh;
  llvm::ArrayRef<Layout> operands;
  llvm::SmallVector<std::optional<Layout>, 3> required, wanted;
  llvm::SmallVector<llvm::SmallVector<AxisCase, 2>> candidates;
  llvm::SmallVector<AxisCase> chosen;
};

} // namespace mtp

#endif // MTP_DIALECT_CASESEARCH_H
