// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Differentiate.cpp - the backward of a typed program ----------------===//
//
// Generic over DifferentiableOpInterface and ConversionOpInterface: this file
// names no op of the graph.
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Differentiate.h"

#include "dialects/mtp/Gradient.h"
#include "dialects/mtp/Strategy.h"
#include "dialects/spmd/SpmdDialect.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::autodiff;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}
static bool isFloat(Value value) {
  return isa<FloatType>(typeOf(value).getElementType());
}

namespace {
/// Invariant while the sweep runs: every op behind the current one has handed
/// out its operands' cotangents, and `cotangents` holds the sum so far for each
/// value, of type cotangentType(value).
class Differentiator {
public:
  Differentiator(func::FuncOp function, MeshShape mesh)
      : function(function), mesh(std::move(mesh)), ops(function.getContext()),
        gradient(ops, this->mesh, active) {}

  LogicalResult run() {
    if (failed(findLoss()))
      return failure();
    findSources();
    findActive();
    ops.setInsertionPoint(terminator());
    if (failed(seed()))
      return failure();
    for (Operation &op : llvm::reverse(
             llvm::make_range(block().begin(), firstOfBackward->getIterator())))
      if (failed(sweep(&op)))
        return failure();
    return addResults();
  }

private:
  Block &block() { return function.getBody().front(); }
  Operation *terminator() { return block().getTerminator(); }

  LogicalResult findLoss() {
    for (unsigned index = 0; index < function.getNumResults(); ++index) {
      if (!function.getResultAttr(index, names::loss))
        continue;
      if (loss)
        return function.emitOpError() << "has two results marked as the loss";
      loss = terminator()->getOperand(index);
    }
    if (!loss)
      return function.emitOpError() << "has no result marked as the loss";
    if (typeOf(loss).getRank() != 0 || !isFloat(loss))
      return function.emitOpError()
             << "the loss is a float scalar, not " << loss.getType();
    auto layout = toLayout(function, typeOf(loss), mesh);
    if (failed(layout))
      return failure();
    if (!layout->isInvariant())
      return function.emitOpError()
             << "the loss is invariant on every axis, not " << loss.getType();
    return success();
  }

  void findSources() {
    for (Operation &op : block())
      if (Attribute number = op.getDiscardableAttr(names::trainable))
        sources.insert({op.getResult(0), number});
    for (BlockArgument argument : block().getArguments()) {
      unsigned index = argument.getArgNumber();
      if (!function.getArgAttr(index, names::wantsGradient))
        continue;
      Attribute name = function.getArgAttr(index, spmd::names::name);
      sources.insert(
          {argument,
           name ? name : ops.getStringAttr("arg" + std::to_string(index))});
    }
  }

  /// Values that depend on a source through floats.
  void findActive() {
    for (auto &[source, of] : sources)
      active.insert(source);
    for (Operation &op : block()) {
      if (op.hasTrait<NoCotangentTrait>() ||
          llvm::none_of(op.getOperands(),
                        [&](Value v) { return active.contains(v); }))
        continue;
      for (Value result : op.getResults())
        if (isFloat(result))
          active.insert(result);
    }
  }

  /// The cotangent of the loss is 1, invariant like the loss.
  LogicalResult seed() {
    gradient.begin(terminator());
    Value one = gradient.splat(GradientBuilder::plain(loss), 1);
    firstOfBackward = one.getDefiningOp();
    firstOfBackward->setLoc(loss.getLoc());
    firstOfBackward->setDiscardableAttr(names::backward, ops.getUnitAttr());
    cotangents[loss] = one;
    return success();
  }

  LogicalResult sweep(Operation *op) {
    SmallVector<Value> results;
    for (Value result : op->getResults())
      results.push_back(active.contains(result) ? cotangents.lookup(result)
                                                : Value());
    if (llvm::none_of(results, [](Value v) { return bool(v); }) ||
        op->getNumOperands() == 0)
      return success();
    gradient.begin(op);
    SmallVector<Value> operands(op->getNumOperands());
    if (auto conversion = dyn_cast<ConversionOpInterface>(op)) {
      operands[0] = conjugate(conversion, results[0]);
    } else if (auto differentiable = dyn_cast<DifferentiableOpInterface>(op)) {
      if (failed(differentiable.buildGradient(gradient, results, operands)) ||
          !gradient.good())
        return failure();
    } else {
      return op->emitOpError()
             << "has no gradient, but the loss depends on parameters through "
                "it; freeze them, or stop the gradient before it";
    }
    for (auto [operand, cotangent] :
         llvm::zip_equal(op->getOperands(), operands))
      if (cotangent && active.contains(operand) &&
          failed(accumulate(op, operand, cotangent)))
        return failure();
    return success();
  }

  /// dual(b) -> dual(a) for a conversion a -> b.
  Value conjugate(ConversionOpInterface op, Value cotangent) {
    auto to = cotangentType(op->getOperand(0), mesh);
    auto layout = toLayout(op, to, mesh);
    SmallVector<int> axes;
    for (Attribute name : op.getAxes())
      llvm::append_range(axes, mesh.find(cast<StringAttr>(name).getValue()));
    Value result = createConversion(ops, op->getLoc(), op.getConjugateName(),
                                    cotangent, axes, *layout, mesh);
    Operation *made = result.getDefiningOp();
    made->setDiscardableAttr(spmd::names::phase, ops.getStringAttr("backward"));
    Attribute number = ops.getI64IntegerAttr(pairs++);
    made->setDiscardableAttr(names::pair, number);
    op->setDiscardableAttr(names::pair, number);
    return result;
  }

  LogicalResult accumulate(Operation *op, Value value, Value cotangent) {
    RankedTensorType type = cotangentType(value, mesh);
    if (cotangent.getType() != type)
      return op->emitOpError()
             << "internal error: the cotangent of an operand of type "
             << value.getType() << " is " << cotangent.getType()
             << ", expected " << type;
    Value &sum = cotangents[value];
    sum = sum ? gradient.add(sum, cotangent) : cotangent;
    if (gradient.good() && sum.getType() != type)
      return op->emitOpError() << "internal error: a sum of cotangents of type "
                               << type << " is " << sum.getType();
    return success(gradient.good());
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  LogicalResult addResults() {
    SmallVector<Value> values(terminator()->getOperands());
    SmallVector<DictionaryAttr> attrs;
    for (auto &[source, of] : sources) {
      NamedAttrList list;
      list.append(names::gradientOf, of);
      Value value = cotangents.lookup(source);
      if (!value) {
        if (failed(checkUnreached(source)))
          return failure();
        value = gradient.zerosFor(source);
        if (value.getType() != cotangentType(source, mesh))
          return emitError(source.getLoc())
                 << "the loss does not depend on a value of type "
                 << source.getType() << ", whose gradient cannot be made";
        list.append(names::unreached, ops.getUnitAttr());
      }
      values.push_back(value);
      attrs.push_back(list.getDictionary(ops.getContext()));
    }
    unsigned first = function.getNumResults();
    terminator()->setOperands(values);
    function.setFunctionType(
        FunctionType::get(ops.getContext(), block().getArgumentTypes(),
                          terminator()->getOperandTypes()));
    SmallVector<Attribute> all;
    for (unsigned index = 0; index < values.size(); ++index)
      all.push_back(index < first ? ops.getDictionaryAttr({})
                                  : attrs[index - first]);
    if (ArrayAttr old = function.getResAttrsAttr())
      llvm::copy(old, all.begin());
    function.setResAttrsAttr(ops.getArrayAttr(all));
    return success();
  }

  /// A value without cotangent may be zero for good (nothing of it reaches the
  /// loss, or only behind a stopped gradient or a step function), but not
  /// because every path to the loss counts or compares.
  LogicalResult checkUnreached(Value source) {
    if (reachesLoss(source, /*throughIntegers=*/false, nullptr))
      return success();
    Operation *counts = nullptr;
    if (!reachesLoss(source, /*throughIntegers=*/true, &counts))
      return success();
    return counts->emitOpError()
           << "gives no float, and the loss depends on a parameter through "
              "nothing else; freeze that parameter";
  }

  /// Follows the uses of `source` in the forward. `counts` is an op on a path
  /// that makes something else of floats.
  bool reachesLoss(Value source, bool throughIntegers, Operation **counts) {
    SmallVector<std::pair<Value, Operation *>> open{{source, nullptr}};
    DenseSet<Value> seen{source};
    while (!open.empty()) {
      auto [value, broken] = open.pop_back_val();
      if (value == loss) {
        if (counts)
          *counts = broken;
        return true;
      }
      for (Operation *user : value.getUsers()) {
        if (user->hasTrait<NoCotangentTrait>() ||
            !user->isBeforeInBlock(firstOfBackward))
          continue;
        for (Value result : user->getResults())
          if ((isFloat(result) || throughIntegers) &&
              seen.insert(result).second)
            open.push_back({result, isFloat(result) || broken ? broken : user});
      }
    }
    return false;
  }

  func::FuncOp function;
  MeshShape mesh;
  OpBuilder ops;
  DenseSet<Value> active;
  GradientBuilder gradient;
  Value loss;
  Operation *firstOfBackward = nullptr;
  /// What is differentiated, and the number or name that says so.
  llvm::MapVector<Value, Attribute> sources;
  DenseMap<Value, Value> cotangents;
  int64_t pairs = 0;
};
} // namespace

LogicalResult autodiff::differentiate(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError()
           << "has control flow, which cannot be differentiated";
  MeshOp mesh = spmd::findMesh(function);
  if (!mesh)
    return failure();
  return Differentiator(function, mesh.getShape()).run();
}
