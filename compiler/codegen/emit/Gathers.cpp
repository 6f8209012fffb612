// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/Scalars.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

namespace {

/// The ONNX node of a location, "" if there is none.
std::string nodeName(Location loc) {
  std::string name;
  loc->walk([&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part)) {
      name = named.getName().str();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return name;
}

/// Element `at` of the index tensor as a position in a dimension of `size`.
/// Negative ones count from the end; one outside is a fault and becomes 0.
IndexExpr position(RegionEmitter &emit, Operation *op, Value indices,
                   ArrayRef<IndexExpr> at, int64_t size, int64_t dim) {
  Value result = emit.once(op, dim, at, [&]() -> SmallVector<Value> {
    Type i64 = emit.builder.getI64Type();
    Value index = Scalars(emit, elementTypeOf(indices))
                      .convert(emit.element(indices, at), i64);
    Scalars s(emit, i64);
    Value extent = s.integer(size), zero = s.integer(0);
    Value wrapped = s.select(s.compare(Scalars::Lt, index, zero),
                             s.add(index, extent), index);
    Value bad = arith::CmpIOp::create(
        emit.builder, emit.loc, arith::CmpIPredicate::uge, wrapped, extent);
    std::string node = nodeName(op->getLoc());
    emit.faultIf(bad, "an index is outside of dimension " +
                          std::to_string(dim) + " of " + std::to_string(size) +
                          " elements in " +
                          (node.empty() ? op->getName().getStringRef().str()
                                        : "node '" + node + "'"));
    return {s.select(bad, zero, wrapped)};
  })[0];
  // The variable lives where the value was computed.
  return emit.variableAt(result, at, 0, std::max<int64_t>(size - 1, 0));
}

Value gather(RegionEmitter &emit, Operation *op, unsigned,
             ArrayRef<IndexExpr> indices) {
  auto look = cast<GatherOp>(op);
  int64_t dim = look.getDim();
  size_t count = shapeOf(look.getIndices()).size();
  ArrayRef<int64_t> shape = shapeOf(look.getData());
  if (shape[dim] == 0)
    return emit.refuse(op, "looks up in a dimension without elements");
  Indices data(indices.begin(), indices.begin() + dim);
  data.push_back(position(emit, op, look.getIndices(),
                          indices.slice(dim, count), shape[dim], dim));
  data.append(indices.begin() + dim + count, indices.end());
  return emit.element(look.getData(), data);
}

Value gatherElements(RegionEmitter &emit, Operation *op, unsigned,
                     ArrayRef<IndexExpr> indices) {
  auto look = cast<GatherElementsOp>(op);
  int64_t dim = look.getDim();
  ArrayRef<int64_t> shape = shapeOf(look.getData());
  if (shape[dim] == 0)
    return emit.refuse(op, "looks up in a dimension without elements");
  Indices data(indices.begin(), indices.end());
  data[dim] = position(emit, op, look.getIndices(), indices, shape[dim], dim);
  return emit.element(look.getData(), data);
}

Value gatherNd(RegionEmitter &emit, Operation *op, unsigned,
               ArrayRef<IndexExpr> indices) {
  auto look = cast<GatherNdOp>(op);
  int64_t batch = look.getBatchDims();
  ArrayRef<int64_t> shape = shapeOf(look.getData()),
                    tuples = shapeOf(look.getIndices());
  Indices data(indices.begin(), indices.begin() + batch);
  for (int64_t i = 0; i < tuples.back(); ++i) {
    if (shape[batch + i] == 0)
      return emit.refuse(op, "looks up in a dimension without elements");
    Indices at(indices.begin(), indices.begin() + tuples.size() - 1);
    at.push_back(IndexExpr(i));
    data.push_back(
        position(emit, op, look.getIndices(), at, shape[batch + i], batch + i));
  }
  data.append(indices.begin() + tuples.size() - 1, indices.end());
  return emit.element(look.getData(), data);
}

} // namespace

void mtp::registerGatherEmitters(EmitterTable &table) {
  table["mtp.gather"] = {gather, FusionKind::Look, 2};
  table["mtp.gather_elements"] = {gatherElements, FusionKind::Look, 4};
  table["mtp.gather_nd"] = {gatherNd, FusionKind::Look, 4};
}
