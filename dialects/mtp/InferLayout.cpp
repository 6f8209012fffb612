// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- InferLayout.cpp - layouts of results from those of operands --------===//
//
// Generic over ShardingOpInterface: this file names no op.
//
//===----------------------------------------------------------------------===//

#include "dialects/mtp/InferLayout.h"

#include "dialects/mtp/CaseSearch.h"
#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

static void setLayout(Value value, const Layout &layout,
                      const MeshShape &mesh) {
  value.setType(withLayout(cast<RankedTensorType>(value.getType()),
                           toAttr(value.getContext(), layout, mesh)));
}

/// A source in the wanted layout, except that whole dimensions stay whole and
/// that it is invariant where it is not cut.
static Layout sourceLayout(const ShardingRule &rule, ArrayRef<int64_t> shape,
                           const MeshShape &mesh, const Layout *wanted) {
  Layout layout(mesh.size(), shape.size());
  if (!wanted || wanted->dims.size() != shape.size())
    return layout;
  for (auto [dim, cut] : llvm::enumerate(wanted->dims)) {
    bool whole = llvm::any_of(rule.results[0][dim], [&](int factor) {
      return rule.factors[factor].kind == FactorKind::Whole;
    });
    if (whole)
      continue;
    for (int axis : cut.axes)
      layout.shard(axis, dim);
    layout.dims[dim].unit = cut.unit;
  }
  layout.canonicalize(shape, mesh);
  return layout;
}

LogicalResult mtp::inferLayouts(Operation *op, const MeshShape &mesh,
                                std::string &why,
                                ArrayRef<std::optional<Layout>> wanted) {
  auto sharding = dyn_cast<ShardingOpInterface>(op);
  auto rule = sharding ? sharding.getShardingRule()
                       : FailureOr<ShardingRule>(failure());
  if (failed(rule)) {
    why = "it has no sharding rule";
    return failure();
  }
  if (rule->anyState && op->getNumOperands() == 0) {
    Value result = op->getResult(0);
    const Layout *wish = !wanted.empty() && wanted[0] ? &*wanted[0] : nullptr;
    auto shape = cast<RankedTensorType>(result.getType()).getShape();
    setLayout(result, sourceLayout(*rule, shape, mesh, wish), mesh);
    return success();
  }
  SmallVector<Layout> operands;
  for (Value operand : op->getOperands()) {
    auto layout = toLayout(op, cast<RankedTensorType>(operand.getType()), mesh);
    if (failed(layout))
      return failure();
    operands.push_back(std::move(*layout));
  }
  // What is wanted, units and all; else its states where they can be had.
  auto strategy = CaseSearch(op, *rule, mesh, operands, wanted).run();
  CaseSearch search(op, *rule, mesh, operands, {}, wanted);
  if (!strategy)
    strategy = search.run();
  if (!strategy) {
    why = search.unfitAxis ? "no case of its rule fits on axis " +
                                 mesh.axes[*search.unfitAxis].name()
                           : search.why;
    return failure();
  }
  for (auto [result, layout] :
       llvm::zip_equal(op->getResults(), strategy->results))
    setLayout(result, layout, mesh);
  return success();
}
