// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/GradientNorm.h"
#include "compiler/training/Training.h"

#include <map>

using namespace mlir;
using namespace mtp;
using namespace mtp::training;

namespace {

/// A piece that is trained.
struct Trained {
  ParameterOp parameter;
  Value gradient; ///< in the layout in which it is added up
};

/// Says how many bytes the gradients of a rank take in a function, but for
/// those that lie in accumulators.
void setGradientBytes(func::FuncOp function, const MeshShape &mesh,
                      ArrayRef<Value> gradients) {
  int64_t bytes = 0;
  for (Value gradient :
       llvm::SetVector<Value>(gradients.begin(), gradients.end())) {
    RankedTensorType type = typeOf(gradient);
    FailureOr<Layout> layout = toLayout(function, type, mesh);
    if (failed(layout) || gradient.getDefiningOp<StateOp>())
      continue;
    int64_t all = type.getElementTypeBitWidth() / 8;
    for (int64_t extent : layout->localShape(type.getShape(), mesh))
      all *= extent;
    bytes += all;
  }
  function->setAttr(names::gradientBytes,
                    Builder(function).getI64IntegerAttr(bytes));
}

/// Writes the update of one function: norm, clipping, new parameters and
/// states.
class UpdateBuilder {
public:
  UpdateBuilder(func::FuncOp function, const MeshShape &mesh,
                LayoutAttr invariant, const OptimizerOptions &options)
      : function(function), mesh(mesh), options(options),
        builder(function.getContext()),
        make(builder, NameLoc::get(builder.getStringAttr("update")),
             invariant),
        axis(options.zero > 0 ? mesh.find(options.axis)[0] : -1) {
    builder.setInsertionPoint(function.getBody().front().getTerminator());
  }

  /// With ZeRO 2 and 3 no gradient stays whole: each in blocks over the axis.
  void scatter(MutableArrayRef<Trained> pieces) {
    if (options.zero > 1)
      for (Trained &piece : pieces)
        scatter(piece);
  }

  /// Emits everything; returns the norm, or null after a diagnostic.
  Value run(MutableArrayRef<Trained> pieces) {
    scatter(pieces);
    auto gradients = llvm::map_to_vector(
        pieces, [](Trained &piece) { return piece.gradient; });
    setGradientBytes(function, mesh, gradients);
    FailureOr<Value> norm = emitNorm(make, gradients, mesh);
    if (failed(norm))
      return {};
    element = typeOf(*norm).getElementType();
    prepare(*norm);
    for (Trained &piece : pieces)
      if (failed(update(piece)))
        return {};
    return trueNorm;
  }

  /// Reductions that were results, for which there are others now.
  ArrayRef<Operation *> replacedReductions() const { return replaced; }

private:
  //===--------------------------------------------------------------------===//
  // Scalars
  //===--------------------------------------------------------------------===//

  Value constant(double value) { return make.scalar(element, value); }
  Value hidden(StringRef name) {
    return scalarArgument(make, function, name, element);
  }

  /// Scalars that all pieces use. A norm depends on gradients but has none
  /// itself, and every rank has it: stop-gradient makes it free.
  void prepare(Value norm) {
    trueNorm = norm;
    if (options.lossScale) {
      factor = make.unary<ReciprocalOp>(hidden(names::lossScale));
      trueNorm = make.binary<MulOp>(norm, factor);
      Value bad =
          make.binary<OrOp>(test<IsNanOp>(trueNorm), test<IsInfOp>(trueNorm));
      finite = make.unary<NotOp>(bad);
      unscale = factor;
    }
    if (options.clipNorm > 0) {
      Value free = make.unary<StopGradientOp>(trueNorm);
      Value ratio = make.binary<DivOp>(
          constant(options.clipNorm), make.binary<AddOp>(free, constant(1e-6)));
      Value clip = make.binary<MinOp>(ratio, constant(1));
      factor = factor ? make.binary<MulOp>(factor, clip) : clip;
    }
    rate = hidden(names::learningRate);
    if (options.optimizer != "adamw")
      return;
    decay = make.binary<SubOp>(
        constant(1), make.binary<MulOp>(rate, constant(options.weightDecay)));
    stepSize = make.binary<DivOp>(rate, hidden(names::biasCorrection1));
    rootCorrection = make.unary<SqrtOp>(hidden(names::biasCorrection2));
  }

  template <typename Op> Value test(Value x) {
    return Op::create(
        builder, make.loc,
        RankedTensorType::get({}, builder.getI1Type(), make.invariant), x);
  }

  //===--------------------------------------------------------------------===//
  // ZeRO
  //===--------------------------------------------------------------------===//

  /// The layout of `value` with the ZeRO axis, nothing if it stays.
  std::optional<Layout> cut(Value value) {
    FailureOr<Layout> layout = toLayout(function, typeOf(value), mesh);
    if (failed(layout) || axis < 0)
      return std::nullopt;
    return cutOverAxis(*layout, typeOf(value).getShape(), axis, mesh);
  }

  Value scatterTo(Value value, const Layout &layout) {
    return convertInUpdate(make, "mtp.scatter_to", value, {axis}, layout, mesh);
  }

  /// The gradient in blocks over the axis. What was just reduced over it is
  /// reduced and scattered at once.
  void scatter(Trained &piece) {
    auto layout = cut(piece.gradient);
    if (!layout)
      return;
    auto reduce = piece.gradient.getDefiningOp<ReduceFromOp>();
    SmallVector<int> others;
    bool overAxis = false;
    if (reduce)
      for (Attribute name : reduce.getAxes())
        for (int part : mesh.find(cast<StringAttr>(name).getValue()))
          part == axis ? void(overAxis = true) : others.push_back(part);
    if (!overAxis) {
      piece.gradient = scatterTo(piece.gradient, *layout);
      return;
    }
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(reduce);
    Layout scattered = *layout;
    for (int other : others)
      scattered.states[other] = {Kind::PSum, -1};
    Value value =
        createConversion(builder, reduce.getLoc(), "mtp.reduce_scatter",
                         reduce.getInput(), {axis}, scattered, mesh);
    copyPhase(reduce, value);
    if (!others.empty()) {
      value = createConversion(builder, reduce.getLoc(), "mtp.reduce_from",
                               value, others, *layout, mesh);
      copyPhase(reduce, value);
    }
    piece.gradient = value;
    replaced.push_back(reduce);
  }

  static void copyPhase(Operation *from, Value to) {
    if (Attribute phase = from->getAttr(spmd::names::phase))
      to.getDefiningOp()->setAttr(spmd::names::phase, phase);
  }

  //===--------------------------------------------------------------------===//
  // One piece
  //===--------------------------------------------------------------------===//

  LogicalResult update(Trained &piece) {
    Value whole = piece.parameter.getResult(), parameter = whole,
          gradient = piece.gradient;
    std::optional<Layout> blocks = cut(whole);
    if (blocks)
      parameter = scatterTo(whole, *blocks);
    if (blocks && gradient.getType() != parameter.getType())
      gradient = scatterTo(gradient, *blocks);
    if (gradient.getType() != parameter.getType())
      return piece.parameter.emitError()
             << "has the gradient " << gradient.getType() << ", expected "
             << parameter.getType();
    if (options.keepGradients)
      keep(piece);
    if (factor)
      gradient = make.binary<MulOp>(gradient, factor);
    Value updated = options.optimizer == "sgd"
                        ? sgd(piece, parameter, gradient)
                        : adamw(piece, parameter, gradient);
    if (blocks) {
      Layout layout = *toLayout(piece.parameter, typeOf(whole), mesh);
      updated = convertInUpdate(make, "mtp.gather_from", updated, {axis},
                                layout, mesh);
    }
    store(updated, whole);
    return success();
  }

  Value state(const Trained &piece, StringRef name, Type type) {
    ParameterOp parameter = piece.parameter;
    return StateOp::create(
        builder, parameter.getLoc(), type, builder.getStringAttr(name),
        parameter.getSourceAttr(), parameter.getRecipeAttr());
  }

  void store(Value value, Value stored) {
    if (finite)
      value = make.select(finite, value, stored);
    StoreOp::create(builder, make.loc, value, stored);
  }

  void keep(const Trained &piece) {
    Value gradient = piece.gradient;
    if (unscale)
      gradient = make.binary<MulOp>(gradient, unscale);
    StoreOp::create(builder, make.loc, gradient,
                    state(piece, "gradient", gradient.getType()));
  }

  /// torch.optim.SGD without dampening and Nesterov's momentum: its buffer
  /// starts as the first gradient, which is what zero gives.
  Value sgd(const Trained &piece, Value parameter, Value gradient) {
    if (options.weightDecay != 0)
      gradient = make.binary<AddOp>(
          gradient,
          make.binary<MulOp>(parameter, constant(options.weightDecay)));
    if (options.momentum != 0) {
      Value buffer = state(piece, "momentum", parameter.getType());
      gradient = make.binary<AddOp>(
          make.binary<MulOp>(buffer, constant(options.momentum)), gradient);
      store(gradient, buffer);
    }
    return make.binary<SubOp>(parameter, make.binary<MulOp>(gradient, rate));
  }

  /// torch.optim.AdamW: the decay is apart from the gradient.
  Value adamw(const Trained &piece, Value parameter, Value gradient) {
    Value first = state(piece, "exp_avg", parameter.getType()),
          second = state(piece, "exp_avg_sq", parameter.getType());
    Value average = blend(first, gradient, options.beta1);
    Value square =
        blend(second, make.binary<MulOp>(gradient, gradient), options.beta2);
    store(average, first);
    store(square, second);
    Value root = make.binary<DivOp>(make.unary<SqrtOp>(square), rootCorrection);
    Value direction = make.binary<DivOp>(
        average, make.binary<AddOp>(root, constant(options.eps)));
    Value kept = options.weightDecay != 0 ? make.binary<MulOp>(parameter, decay)
                                          : parameter;
    return make.binary<SubOp>(kept, make.binary<MulOp>(direction, stepSize));
  }

  Value blend(Value old, Value now, double beta) {
    return make.binary<AddOp>(make.binary<MulOp>(old, constant(beta)),
                              make.binary<MulOp>(now, constant(1 - beta)));
  }

  func::FuncOp function;
  const MeshShape &mesh;
  const OptimizerOptions &options;
  OpBuilder builder;
  OpMaker make;
  int axis; ///< of ZeRO; -1: none
  SmallVector<Operation *> replaced;
  Type element;
  Value trueNorm, finite, factor, unscale, rate, decay, stepSize,
      rootCorrection;
};

/// Takes the gradients out of the results of @main and lets UpdateBuilder use
/// them.
class OptimizerAdder {
public:
  OptimizerAdder(ModuleOp module, func::FuncOp main, MeshOp meshOp,
                 const OptimizerOptions &options)
      : module(module), main(main), mesh(meshOp.getShape()),
        invariant(LayoutAttr::get(
            module.getContext(),
            FlatSymbolRefAttr::get(meshOp.getSymNameAttr()), {})),
        options(options), builder(module.getContext()) {}

  LogicalResult run() {
    if (failed(takeResults()))
      return failure();
    if (options.zero > 2)
      gatherAgain(main, options.axis);
    func::FuncOp updater = options.accumulate > 1 ? splitUpdate() : main;
    if (!updater)
      return failure();
    UpdateBuilder update(updater, mesh, invariant, options);
    Value norm = update.run(pieces);
    if (!norm)
      return failure();
    if (updater == main) {
      addResult(norm, names::gradNorm);
      setResults(main, values, attrs);
    } else {
      setResults(main, values, attrs);
      values.clear();
      attrs.clear();
      addResult(norm, names::gradNorm);
      setResults(updater, values, attrs);
    }
    llvm::append_range(moved, update.replacedReductions());
    for (Operation *reduction : moved)
      if (reduction->use_empty())
        reduction->erase();
    return success();
  }

private:
  void addResult(Value value, const Twine &name) {
    values.push_back(value);
    attrs.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(spmd::names::name, builder.getStringAttr(name))));
  }

  Value unscaled(Value gradient) {
    if (!options.lossScale)
      return gradient;
    builder.setInsertionPoint(main.getBody().front().getTerminator());
    OpMaker make(builder, gradient.getLoc(), invariant);
    Value scale = scalarArgument(make, main, names::lossScale,
                                 typeOf(gradient).getElementType());
    return make.binary<MulOp>(gradient, make.unary<ReciprocalOp>(scale));
  }

  LogicalResult takeResults() {
    std::map<int64_t, Value> gradients;
    for (OpOperand &operand :
         main.getBody().front().getTerminator()->getOpOperands()) {
      unsigned index = operand.getOperandNumber();
      Attribute of = main.getResultAttr(index, names::gradientOf);
      if (auto piece = dyn_cast_if_present<IntegerAttr>(of)) {
        gradients[piece.getInt()] = operand.get();
      } else if (auto input = dyn_cast_if_present<StringAttr>(of)) {
        addResult(unscaled(operand.get()),
                  names::inputGradient + input.getValue());
      } else if (!(options.lossScale &&
                   main.getResultAttr(index, names::loss))) {
        values.push_back(operand.get());
        attrs.push_back(main.getResultAttrDict(index));
      }
    }
    for (auto parameter : main.getOps<ParameterOp>()) {
      auto number = parameter->getAttrOfType<IntegerAttr>(names::trainable);
      if (!number)
        continue;
      Value gradient = gradients[number.getInt()];
      if (!gradient)
        return parameter.emitError()
               << "is trained, but @main returns no gradient of it; "
                  "mtp-differentiate runs first";
      pieces.push_back({parameter, gradient});
    }
    return pieces.empty() ? module.emitError()
                                << "nothing is trained: no mtp.parameter has "
                                << names::trainable
                          : success();
  }

  /// @main adds every gradient to an accumulator, before it is reduced (but
  /// with ZeRO 2 and 3, which don't keep whole gradients: their blocks are
  /// added); @update, a second function, reduces the sums.
  func::FuncOp splitUpdate() {
    UpdateBuilder blocks(main, mesh, invariant, options);
    blocks.scatter(pieces);
    llvm::append_range(moved, blocks.replacedReductions());
    builder.setInsertionPointAfter(main);
    auto update = func::FuncOp::create(builder, main.getLoc(), "update",
                                       builder.getFunctionType({}, {}));
    Block *block = update.addEntryBlock();
    builder.setInsertionPointToEnd(block);
    auto end = func::ReturnOp::create(builder, main.getLoc());
    OpBuilder inUpdate(end);
    Operation *terminator = main.getBody().front().getTerminator();
    builder.setInsertionPoint(terminator);
    OpMaker make(builder, NameLoc::get(builder.getStringAttr("accumulate")),
                 invariant);
    Type i64 = builder.getI64Type();
    Value number = scalarArgument(make, main, names::microBatch, i64);
    Value isFirst = make.compare(Compare::eq, number, make.integer(i64, 0));
    SmallVector<Value> micro; // gradients of one micro-batch
    for (Trained &piece : pieces) {
      Operation *reduce = options.zero < 2
                              ? piece.gradient.getDefiningOp<ReduceFromOp>()
                              : nullptr;
      Value added = reduce ? reduce->getOperand(0) : piece.gradient;
      micro.push_back(added);
      Value zero = make.scalar(typeOf(added).getElementType(), 0);
      Value before = accumulator(builder, piece, added.getType());
      Value old = SelectOp::create(builder, make.loc, added.getType(), isFirst,
                                   zero, before);
      StoreOp::create(
          builder, make.loc,
          AddOp::create(builder, make.loc, added.getType(), old, added),
          before);
      ParameterOp parameter =
          cast<ParameterOp>(inUpdate.clone(*piece.parameter));
      Value sum = accumulator(inUpdate, piece, added.getType());
      if (reduce) {
        Operation *clone = inUpdate.clone(*reduce);
        clone->setOperand(0, sum);
        sum = clone->getResult(0);
        moved.push_back(reduce);
      }
      piece = {parameter, sum};
    }
    setGradientBytes(main, mesh, micro);
    return update;
  }

  Value accumulator(OpBuilder &at, const Trained &piece, Type type) {
    ParameterOp parameter = piece.parameter;
    return StateOp::create(
        at, parameter.getLoc(), type, at.getStringAttr("accumulator"),
        parameter.getSourceAttr(), parameter.getRecipeAttr());
  }

  ModuleOp module;
  func::FuncOp main;
  MeshShape mesh;
  LayoutAttr invariant;
  const OptimizerOptions &options;
  OpBuilder builder;
  std::vector<Trained> pieces;
  SmallVector<Operation *> moved; ///< reductions that stand elsewhere now
  SmallVector<Value> values;      ///< results that remain
  SmallVector<DictionaryAttr> attrs;
};

} // namespace

LogicalResult training::addOptimizer(ModuleOp module,
                                     const OptimizerOptions &options) {
  if (options.optimizer != "sgd" && options.optimizer != "adamw")
    return module.emitError() << "the optimizer is sgd or adamw, not '"
                              << options.optimizer << "'";
  func::FuncOp main = mainOf(module);
  MeshOp mesh = spmd::findMesh(module);
  if (!main || !mesh)
    return failure();
  if (options.zero > 0 && mesh.getShape().find(options.axis).size() != 1)
    return module.emitError()
           << "zero=" << options.zero << " splits over the mesh axis "
           << options.axis << ", which the mesh lacks";
  return OptimizerAdder(module, main, mesh, options).run();
}
