// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/Differentiate.h"
#include "compiler/autodiff/Recompute.h"
#include "compiler/training/Training.h"

#include "mlir/IR/IRMapping.h"

#include <numeric>

using namespace mlir;
using namespace mtp;
using namespace mtp::training;

std::optional<Layout> training::cutOverAxis(const Layout &layout,
                                            ArrayRef<int64_t> shape, int axis,
                                            const MeshShape &mesh) {
  if (layout.states[axis].kind != Kind::I || mesh.axes[axis].size == 1)
    return std::nullopt;
  std::optional<Layout> best;
  int64_t least = 0;
  for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
    Layout cut = layout;
    cut.shard(axis, dim);
    cut.canonicalize(shape, mesh);
    auto local = cut.localShape(shape, mesh);
    int64_t elements = std::accumulate(local.begin(), local.end(), int64_t(1),
                                       std::multiplies<>());
    if (best && elements >= least)
      continue;
    best = cut;
    least = elements;
  }
  return best;
}

namespace {
/// Stores one module's parameters in blocks.
class StateSharder {
public:
  StateSharder(func::FuncOp function, MeshShape mesh, int axis)
      : function(function), mesh(std::move(mesh)), axis(axis),
        builder(function.getContext()) {}

  LogicalResult run() {
    SmallVector<ParameterOp> trained;
    for (auto op : function.getOps<ParameterOp>())
      if (op->hasAttr(names::trainable))
        trained.push_back(op);
    for (ParameterOp op : trained) {
      RankedTensorType type = typeOf(op);
      FailureOr<Layout> whole = toLayout(op, type, mesh);
      if (failed(whole))
        return failure();
      if (auto cut = cutOverAxis(*whole, type.getShape(), axis, mesh))
        store(op, *whole, *cut);
    }
    return success();
  }

private:
  /// What read the whole tensor reads gathered blocks. A copy_to over the axis
  /// becomes the all_gather, whose conjugate reduces and scatters at once.
  void store(ParameterOp op, const Layout &whole, const Layout &cut) {
    SmallVector<OpOperand *> uses =
        llvm::map_to_vector(op->getUses(), [](OpOperand &use) { return &use; });
    Value value = op.getResult();
    value.setType(
        withLayout(typeOf(value), toAttr(op.getContext(), cut, mesh)));
    builder.setInsertionPointAfter(op);
    Value gathered;
    for (OpOperand *use : uses) {
      SmallVector<int> others;
      if (auto copy = dyn_cast<CopyToOp>(use->getOwner());
          copy && copiesOver(copy, others)) {
        replaceCopy(copy, value, whole, others);
        continue;
      }
      if (!gathered)
        gathered = createConversion(builder, op.getLoc(), "mtp.gather_from",
                                    value, {axis}, whole, mesh);
      use->set(gathered);
    }
  }

  /// True if `copy` is over the axis; `others`: the other axes it is over.
  bool copiesOver(CopyToOp copy, SmallVectorImpl<int> &others) {
    bool found = false;
    for (Attribute name : copy.getAxes())
      for (int part : mesh.find(cast<StringAttr>(name).getValue()))
        part == axis ? void(found = true) : others.push_back(part);
    return found;
  }

  void replaceCopy(CopyToOp copy, Value value, Layout layout,
                   ArrayRef<int> others) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(copy);
    layout.states[axis] = {Kind::R, -1};
    Value result = createConversion(builder, copy.getLoc(), "mtp.all_gather",
                                    value, {axis}, layout, mesh);
    for (int other : others)
      layout.states[other] = {Kind::R, -1};
    if (!others.empty())
      result = createConversion(builder, copy.getLoc(), "mtp.copy_to", result,
                                others, layout, mesh);
    copy.replaceAllUsesWith(result);
    copy.erase();
  }

  func::FuncOp function;
  MeshShape mesh;
  int axis;
  OpBuilder builder;
};
} // namespace

namespace {
/// What is gathered of one trained parameter, in order, and who reads that in
/// the backward.
struct Gathered {
  SmallVector<Operation *> chain; ///< an all_gather, conversions of it
  SmallVector<OpOperand *> reads;
};
} // namespace

static bool gathersOver(Operation *op, StringRef axis) {
  auto names = isa<AllGatherOp, GatherFromOp>(op)
                   ? op->getAttrOfType<ArrayAttr>("axes")
                   : ArrayAttr();
  return names && llvm::is_contained(names.getAsValueRange<StringAttr>(), axis);
}

/// The chains of the forward, which ends before `backward`.
static std::vector<Gathered> gatheredOver(StringRef axis, Operation *backward) {
  std::vector<Gathered> all;
  DenseMap<Operation *, size_t> chainOf;
  for (Operation &op : *backward->getBlock()) {
    if (&op == backward)
      break;
    if (!isa<ConversionOpInterface>(op))
      continue;
    Operation *source = op.getOperand(0).getDefiningOp();
    if (auto known = chainOf.find(source); source && known != chainOf.end()) {
      chainOf[&op] = known->second;
    } else if (isa_and_present<ParameterOp>(source) &&
               source->hasAttr(names::trainable) && gathersOver(&op, axis)) {
      chainOf[&op] = all.size();
      all.emplace_back();
    } else {
      continue;
    }
    Gathered &gathered = all[chainOf[&op]];
    gathered.chain.push_back(&op);
    for (OpOperand &use : op.getUses())
      if (!use.getOwner()->isBeforeInBlock(backward))
        gathered.reads.push_back(&use);
  }
  return all;
}

void training::gatherAgain(func::FuncOp function, StringRef axis) {
  Block &block = function.getBody().front();
  auto backward = llvm::find_if(block, [](Operation &op) {
    return op.hasAttr(autodiff::names::backward);
  });
  if (backward == block.end())
    return;
  for (Gathered &gathered : gatheredOver(axis, &*backward)) {
    if (gathered.reads.empty())
      continue;
    Operation *first = gathered.reads[0]->getOwner();
    for (OpOperand *read : gathered.reads)
      if (read->getOwner()->isBeforeInBlock(first))
        first = read->getOwner();
    OpBuilder builder(first);
    // Behind a barrier no gather is equal to the one that it repeats.
    IRMapping again;
    Value stored = gathered.chain[0]->getOperand(0);
    again.map(stored, Value(BarrierOp::create(builder, stored.getLoc(),
                                              stored.getType(), stored)));
    for (Operation *op : gathered.chain)
      autodiff::markAgain(builder.clone(*op, again));
    for (OpOperand *read : gathered.reads)
      read->set(again.lookup(read->get()));
  }
}

LogicalResult training::shardStates(ModuleOp module, int64_t zero,
                                    StringRef axis) {
  if (zero < 0 || zero > 3)
    return module.emitError() << "ZeRO has stages 1, 2 and 3, not " << zero;
  func::FuncOp function = mainOf(module);
  MeshOp mesh = spmd::findMesh(module);
  if (!function || !mesh)
    return failure();
  SmallVector<int, 2> axes = mesh.getShape().find(axis);
  if (zero == 0)
    return success();
  if (axes.size() != 1)
    return module.emitError()
           << "zero=" << zero << " splits over the mesh axis " << axis
           << ", which the mesh lacks";
  if (zero < 3)
    return success();
  return StateSharder(function, mesh.getShape(), axes[0]).run();
}
