// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/Training.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::training;

namespace {
/// Writes the loss of one function.
class LossBuilder {
public:
  LossBuilder(func::FuncOp function, const LossOptions &options)
      : function(function), options(options), spec(options.spec),
        builder(function.getContext()),
        make(builder, NameLoc::get(builder.getStringAttr("loss"))),
        terminator(function.getBody().front().getTerminator()) {
    builder.setInsertionPoint(terminator);
  }

  LogicalResult run() {
    if (failed(findOutput()) || failed(markInputs()))
      return failure();
    Value loss;
    switch (spec.kind) {
    case LossSpec::Kind::CrossEntropy:
      loss = crossEntropy();
      break;
    case LossSpec::Kind::MeanSquare:
      loss = meanSquare();
      break;
    case LossSpec::Kind::Output:
      loss = scalarOutput();
      break;
    }
    if (!loss)
      return failure();
    replaceResults(mean(loss));
    return success();
  }

private:
  LogicalResult findOutput() {
    std::string known;
    for (OpOperand &operand : terminator->getOpOperands()) {
      StringRef name = resultName(function, operand.getOperandNumber());
      if (name == spec.output)
        output = operand.get();
      known += (known.empty() ? "'" : ", '") + name.str() + "'";
    }
    if (!output)
      return function.emitError()
             << "the loss is of output '" << spec.output
             << "', which the model lacks; it has: " << known;
    if (!isa<FloatType>(typeOf(output).getElementType()))
      return function.emitError()
             << "the loss is of output '" << spec.output << "', which holds "
             << typeOf(output).getElementType() << ", not floats";
    // Sums of many small terms: at least f32.
    if (typeOf(output).getElementType().getIntOrFloatBitWidth() < 32)
      output = make.convert(output, builder.getF32Type());
    element = typeOf(output).getElementType();
    return success();
  }

  LogicalResult markInputs() {
    for (const std::string &name : options.inputGradients) {
      BlockArgument input = findArgument(function, name);
      if (!input)
        return function.emitError() << "the gradient of input '" << name
                                    << "' is wanted, which the model lacks";
      if (!isa<FloatType>(typeOf(input).getElementType()))
        return function.emitError()
               << "the gradient of input '" << name
               << "' is wanted, which does not hold floats";
      function.setArgAttr(input.getArgNumber(), names::wantsGradient,
                          builder.getUnitAttr());
    }
    return success();
  }

  /// The input with labels or targets: one of the model, or a new one.
  Value labels(RankedTensorType type, StringRef what) {
    BlockArgument known = findArgument(function, spec.labels);
    if (!known)
      return argument(function, spec.labels, type);
    RankedTensorType mine = typeOf(known);
    bool fits = mine.getShape() == type.getShape() &&
                (isa<FloatType>(type.getElementType())
                     ? isa<FloatType>(mine.getElementType())
                     : mine.getElementType().isInteger(64) ||
                           mine.getElementType().isInteger(32));
    if (fits)
      return known;
    function.emitError() << what << " '" << spec.labels
                         << "' is an input of type " << mine
                         << ", the loss needs " << type;
    return {};
  }

  /// With m = max(x) and s = sum(e^(x - m)) of a row, the row's loss is
  /// log s - (x_label - m); smoothing a mixes in a times log s - mean(x - m).
  /// The maximum needs no gradient: the shift cancels. Each of the reductions
  /// is of one number a row, so the classes may be cut.
  Value crossEntropy() {
    RankedTensorType type = typeOf(output);
    int64_t last = type.getRank() - 1;
    if (last < 0) {
      function.emitError()
          << "cross_entropy of '" << spec.output
          << "', which is a scalar: there is no dimension of classes";
      return {};
    }
    ArrayRef<int64_t> rows = type.getShape().drop_back();
    int64_t classes = type.getShape()[last];
    if (classes == 0) {
      function.emitError() << "cross_entropy of '" << spec.output
                           << "', which has no classes";
      return {};
    }
    Value label =
        labels(RankedTensorType::get(rows, options.labelType), "labels");
    if (!label)
      return {};
    function->setAttr(names::classes, builder.getI64IntegerAttr(classes));
    Type integer = typeOf(label).getElementType();
    Value detached = make.unary<StopGradientOp>(output);
    Value maximum = make.unary<StopGradientOp>(
        make.reduce<ReduceMaxOp>(detached, {last}, /*keep=*/true));
    Value shifted = make.binary<SubOp>(output, maximum);
    Value sum =
        make.reduce<ReduceSumOp>(make.unary<ExpOp>(shifted), {last}, false);
    Value logSum = make.unary<LogOp>(sum);

    SmallVector<int64_t> column(rows);
    column.push_back(1);
    Value classIndex = make.iota({classes}, 0, integer);
    Value isLabel =
        make.compare(Compare::eq, make.reshape(label, column), classIndex);
    Value zero = make.scalar(element, 0);
    Value picked = make.reduce<ReduceSumOp>(make.select(isLabel, shifted, zero),
                                            {last}, false);
    Value row = make.binary<SubOp>(logSum, picked);
    if (spec.labelSmoothing != 0) {
      Value average = make.binary<MulOp>(
          make.reduce<ReduceSumOp>(shifted, {last}, false),
          make.scalar(element, 1 / static_cast<double>(classes)));
      Value uniform = make.binary<SubOp>(logSum, average);
      row = make.binary<AddOp>(
          make.binary<MulOp>(row,
                             make.scalar(element, 1 - spec.labelSmoothing)),
          make.binary<MulOp>(uniform,
                             make.scalar(element, spec.labelSmoothing)));
    }
    // The planner leaves cut classes where they are.
    for (Value value : {detached, shifted, isLabel})
      value.getDefiningOp()->setAttr(names::classes,
                                     builder.getI64IntegerAttr(classes));
    for (Operation *user : shifted.getUsers())
      user->setAttr(names::classes, builder.getI64IntegerAttr(classes));
    Value counts = make.compare(Compare::ne, label,
                                make.integer(integer, spec.ignoreIndex));
    return sumOf(make.select(counts, row, zero));
  }

  Value meanSquare() {
    Value target = labels(typeOf(output), "target");
    if (!target)
      return {};
    Value difference =
        make.binary<SubOp>(output, make.convert(target, element));
    return sumOf(make.binary<MulOp>(difference, difference));
  }

  Value scalarOutput() {
    if (typeOf(output).getNumElements() == 1)
      return make.reshape(output, {});
    function.emitError() << "output '" << spec.output
                         << "' is the loss, but has shape ["
                         << typeOf(output).getShape()
                         << "]: a scalar is needed";
    return {};
  }

  Value sumOf(Value value) {
    auto all = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(value).getRank()));
    return all.empty() ? value : make.reduce<ReduceSumOp>(value, all, false);
  }

  Value mean(Value sum) {
    Value count = scalarArgument(make, function, names::labelCount, element);
    return make.binary<MulOp>(sum, make.unary<ReciprocalOp>(count));
  }

  /// The loss that is differentiated comes first.
  void replaceResults(Value loss) {
    SmallVector<Value> values;
    SmallVector<DictionaryAttr> attrs;
    auto add = [&](Value value, StringRef name, bool isLoss) {
      NamedAttrList list;
      list.set(spmd::names::name, builder.getStringAttr(name));
      if (isLoss)
        list.set(names::loss, builder.getUnitAttr());
      values.push_back(value);
      attrs.push_back(list.getDictionary(builder.getContext()));
    };
    if (options.lossScale) {
      Value scale = scalarArgument(make, function, names::lossScale, element);
      add(make.binary<MulOp>(loss, scale), "mtp.scaled_loss", true);
      add(loss, names::loss, false);
    } else {
      add(loss, names::loss, true);
    }
    if (options.keepOutputs)
      for (OpOperand &operand : terminator->getOpOperands()) {
        values.push_back(operand.get());
        attrs.push_back(function.getResultAttrDict(operand.getOperandNumber()));
      }
    setResults(function, values, attrs);
  }

  func::FuncOp function;
  const LossOptions &options;
  const LossSpec &spec;
  OpBuilder builder;
  OpMaker make;
  Operation *terminator;
  Value output;
  Type element;
};
} // namespace

LogicalResult training::addLoss(func::FuncOp function,
                                const LossOptions &options) {
  return LossBuilder(function, options).run();
}
