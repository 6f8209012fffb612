// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-partition-function.cpp - a function on local blocks ------------===//
//
// Generic over ShardingOpInterface, ConversionOpInterface and
// LocalizeOpInterface: this file names no op of the graph.
//
// Padding holds anything. Before an op contracts a factor that is cut with
// padding, the padding of every operand that has the factor becomes the neutral
// element of the reduction, by selection: 0 for a sum, the lowest value for a
// maximum, the highest for a minimum. One operand is not enough: 0 times
// infinity is not 0. Elsewhere padding only reaches padding. Positions (indices
// of a look-up) are 0 in padding, so that they lie in the table.
//
//===----------------------------------------------------------------------===//

#include "dialects/mtp/Strategy.h"
#include "passes/mtp-partition.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::partition;

FunctionPartitioner::FunctionPartitioner(func::FuncOp func, MeshShape shape)
    : func(func), mesh(std::move(shape)), ops(func.getContext()),
      scalars(ops, mesh) {
  stripper.addReplacement([](RankedTensorType type) -> Type {
    return RankedTensorType::get(type.getShape(), type.getElementType());
  });
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

const Layout &FunctionPartitioner::layoutOfValue(Value value) {
  return layouts.find(value)->second;
}

LogicalResult FunctionPartitioner::addLayout(Operation *at, Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  if (!tensor || !tensor.hasStaticShape())
    return at->emitOpError()
           << "needs tensors of static shape, has " << value.getType();
  if (LayoutAttr attr = layoutOf(tensor);
      attr && attr.getMesh().getValue() != mesh.symbol)
    return at->emitOpError() << "has a layout on mesh " << attr.getMesh()
                             << ", the module's is @" << mesh.symbol;
  auto layout = toLayout(at, tensor, mesh);
  if (failed(layout))
    return failure();
  layouts.try_emplace(value, std::move(*layout));
  return success();
}

RankedTensorType FunctionPartitioner::localType(Value value) {
  auto tensor = cast<RankedTensorType>(value.getType());
  return RankedTensorType::get(
      layoutOfValue(value).localShape(tensor.getShape(), mesh),
      tensor.getElementType());
}

bool FunctionPartitioner::isSharded(OpOperand &operand, int64_t dim) {
  return !layoutOfValue(operand.get()).dims[dim].axes.empty();
}
bool FunctionPartitioner::isSharded(OpResult result, int64_t dim) {
  return !layoutOfValue(result).dims[dim].axes.empty();
}

static int64_t extentOf(Value value, int64_t dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

Value FunctionPartitioner::blockOffset(OpOperand &operand, int64_t dim) {
  return scalars.offset(operand.getOwner()->getLoc(),
                        extentOf(operand.get(), dim),
                        layoutOfValue(operand.get()).dims[dim]);
}
Value FunctionPartitioner::blockOffset(OpResult result, int64_t dim) {
  return scalars.offset(result.getLoc(), extentOf(result, dim),
                        layoutOfValue(result).dims[dim]);
}
Value FunctionPartitioner::blockValid(OpOperand &operand, int64_t dim) {
  return scalars.valid(operand.getOwner()->getLoc(),
                       extentOf(operand.get(), dim),
                       layoutOfValue(operand.get()).dims[dim]);
}

Value FunctionPartitioner::loadBlock(OpResult result, FlatSymbolRefAttr source,
                                     ArrayAttr recipe, StringAttr state) {
  auto type = cast<RankedTensorType>(result.getType());
  return spmd::ParameterOp::create(ops, result.getLoc(), localType(result),
                                   source, recipe, layoutOf(type),
                                   TypeAttr::get(withLayout(type, {})), state);
}

void FunctionPartitioner::storeBlock(Location loc, Value value, Value stored) {
  spmd::StoreOp::create(ops, loc, value, stored);
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

Value FunctionPartitioner::maskDim(OpOperand &operand, Value local, int64_t dim,
                                   Kind reduction) {
  // The loader fills the padding of stored blocks with zero; an update of the
  // block does not keep it so.
  if (reduction == Kind::PSum && local.getDefiningOp<spmd::ParameterOp>() &&
      llvm::all_of(operand.get().getUsers(), isMemoryEffectFree))
    return local;
  Value &masked = masks[{local.getAsOpaquePointer(), dim, reduction}];
  if (masked)
    return masked;
  Location loc = operand.getOwner()->getLoc();
  Type element = cast<RankedTensorType>(local.getType()).getElementType();
  masked = spmd::MaskTailOp::create(
      ops, loc, local.getType(), local, blockValid(operand, dim),
      ops.getI64IntegerAttr(dim), neutralElement(ops, element, reduction));
  return masked;
}

static bool carries(const TensorFactors &factors, int factor) {
  return llvm::any_of(
      factors, [&](auto &dim) { return llvm::is_contained(dim, factor); });
}

/// The reduction over `factors` of one dimension, nothing if none is
/// contracted.
static std::optional<Kind> contraction(const ShardingRule &rule,
                                       ArrayRef<int> factors) {
  for (int factor : factors) {
    auto has = [&](auto &result) { return carries(result, factor); };
    bool kept = rule.eachContracts ? llvm::all_of(rule.results, has)
                                   : llvm::any_of(rule.results, has);
    if (!rule.factors[factor].indexed && !kept)
      return rule.factors[factor].reduction;
  }
  return std::nullopt;
}

SmallVector<Value>
FunctionPartitioner::maskedOperands(Operation *op, const ShardingRule &rule) {
  SmallVector<Value> locals;
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    Value local = values.lookup(operand.get());
    const Layout &layout = layoutOfValue(operand.get());
    bool isPosition = rule.positions >> index & 1;
    for (auto [dim, factors] : llvm::enumerate(rule.operands[index])) {
      if (!layout.isPadded(dim, extentOf(operand.get(), dim), mesh))
        continue;
      std::optional<Kind> reduction = contraction(rule, factors);
      if (isPosition)
        reduction = Kind::PSum;
      if (reduction)
        local = maskDim(operand, local, dim, *reduction);
    }
    locals.push_back(local);
  }
  return locals;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult FunctionPartitioner::partitionCompute(ShardingOpInterface op) {
  auto rule = op.getShardingRule();
  if (failed(rule))
    return failure();
  SmallVector<Value> operands = maskedOperands(op, *rule);
  SmallVector<Type> types;
  for (Value result : op->getResults())
    types.push_back(localType(result));
  SmallVector<Value> results;
  if (auto localize = dyn_cast<LocalizeOpInterface>(op.getOperation())) {
    results = localize.localize(*this, operands, types);
  } else {
    OperationState state(
        op->getLoc(), op->getName(), operands, types,
        cast<DictionaryAttr>(stripper.replace(op->getAttrDictionary()))
            .getValue());
    results = llvm::to_vector_of<Value>(ops.create(state)->getResults());
  }
  for (auto [old, local] : llvm::zip_equal(op->getResults(), results)) {
    if (local.getType() != types[old.getResultNumber()])
      return op->emitOpError()
             << "was localized to " << local.getType() << ", its layout says "
             << types[old.getResultNumber()];
    values.map(old, local);
  }
  return success();
}

LogicalResult FunctionPartitioner::partition(Operation *op) {
  if (op->getNumRegions() != 0)
    return op->emitOpError() << "has a region, which cannot be partitioned";
  for (Value result : op->getResults())
    if (failed(addLayout(op, result)))
      return failure();
  if (auto conversion = dyn_cast<ConversionOpInterface>(op)) {
    ConversionEmitter emitter(conversion, layoutOfValue(op->getOperand(0)),
                              layoutOfValue(op->getResult(0)), mesh, ops,
                              scalars);
    Value result = emitter.emit(values.lookup(op->getOperand(0)));
    if (!result)
      return failure();
    values.map(op->getResult(0), result);
    return success();
  }
  if (auto compute = dyn_cast<ShardingOpInterface>(op))
    return partitionCompute(compute);
  if (auto terminator = dyn_cast<func::ReturnOp>(op))
    return partitionReturn(terminator);
  return op->emitOpError() << "has no sharding rule";
}

//===----------------------------------------------------------------------===//
// Signature
//===----------------------------------------------------------------------===//

DictionaryAttr FunctionPartitioner::describe(DictionaryAttr attrs, Type type) {
  NamedAttrList list(attrs);
  list.set(spmd::names::layout, layoutOf(type));
  list.set(spmd::names::globalType, TypeAttr::get(stripper.replace(type)));
  return list.getDictionary(func.getContext());
}

LogicalResult FunctionPartitioner::addArguments(Block &old) {
  for (BlockArgument argument : old.getArguments()) {
    if (failed(addLayout(func, argument)))
      return failure();
    for (AxisState state : layoutOfValue(argument).states)
      if (isPartial(state.kind))
        return func.emitOpError()
               << "argument " << argument.getArgNumber() << " is partial";
    values.map(argument,
               block->addArgument(localType(argument), argument.getLoc()));
    unsigned index = argument.getArgNumber();
    func.setArgAttrs(index,
                     describe(func.getArgAttrDict(index), argument.getType()));
  }
  return success();
}

LogicalResult FunctionPartitioner::partitionReturn(func::ReturnOp op) {
  SmallVector<Value> locals;
  for (OpOperand &operand : op->getOpOperands()) {
    for (AxisState state : layoutOfValue(operand.get()).states)
      if (isPartial(state.kind))
        return op->emitOpError()
               << "result " << operand.getOperandNumber() << " is partial";
    unsigned index = operand.getOperandNumber();
    func.setResultAttrs(index, describe(func.getResultAttrDict(index),
                                        operand.get().getType()));
    locals.push_back(values.lookup(operand.get()));
  }
  func::ReturnOp::create(ops, op.getLoc(), locals);
  return success();
}

LogicalResult FunctionPartitioner::run() {
  if (!func.getBody().hasOneBlock())
    return func.emitOpError()
           << "has control flow, which cannot be partitioned";
  Block &old = func.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(old)))
    if (isOpTriviallyDead(&op))
      op.erase();
  block = new Block();
  func.getBody().push_back(block);
  ops.setInsertionPointToEnd(block);
  if (failed(addArguments(old)))
    return failure();
  for (Operation &op : old)
    if (failed(partition(&op)))
      return failure();
  old.dropAllDefinedValueUses();
  old.erase();
  func.setFunctionType(
      FunctionType::get(func.getContext(), block->getArgumentTypes(),
                        block->getTerminator()->getOperandTypes()));
  return success();
}
