// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GradientPrograms.cpp - the gradient of every op in every case ------===//

#include "test/fuzz/GradientPrograms.h"

#include "compiler/autodiff/Differentiate.h"
#include "test/fuzz/LayoutMaker.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::fuzz;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}
static bool isFloat(Type type) {
  return isa<FloatType>(cast<RankedTensorType>(type).getElementType());
}

bool fuzz::hasGradient(func::FuncOp seed) {
  Operation *op = mainOp(seed);
  return op && !op->hasTrait<NoCotangentTrait>() &&
         isFloat(op->getResult(0).getType()) &&
         llvm::any_of(op->getOperands(), [](Value value) {
           return isa<BlockArgument>(value) && isFloat(value.getType());
         });
}

/// Numbers of the op's float results that the seed returns.
static SmallVector<unsigned> lossResults(func::FuncOp seed) {
  SmallVector<unsigned> numbers;
  for (Value value : seed.getBody().front().getTerminator()->getOperands())
    if (isFloat(value.getType()))
      numbers.push_back(cast<OpResult>(value).getResultNumber());
  return numbers;
}

Value LossMaker::make(Value value) {
  Type element = typeOf(value).getElementType();
  auto shape = typeOf(value).getShape();
  int64_t count = typeOf(value).getNumElements();
  auto flat = type({count}, element);
  Value index = IotaOp::create(builder, loc, flat, 0);
  Value angle = MulOp::create(builder, loc, flat, index, scalar(element, 0.7));
  angle = AddOp::create(builder, loc, flat, angle, scalar(element, 0.3));
  Value weights = SinOp::create(builder, loc, flat, angle);
  weights = ReshapeOp::create(builder, loc, type(shape, element), weights);
  Value size = AbsOp::create(builder, loc, type(shape, element), value);
  Value small =
      CompareOp::create(builder, loc, type(shape, builder.getI1Type()),
                        Compare::lt, size, scalar(element, 1e6));
  value = SelectOp::create(builder, loc, type(shape, element), small, value,
                           scalar(element, 0));
  Value product =
      MulOp::create(builder, loc, type(shape, element), value, weights);
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  Value sum =
      ReduceSumOp::create(builder, loc, type({}, element), product,
                          builder.getDenseI64ArrayAttr(dims), UnitAttr());
  // One precision for all losses of a program.
  if (!element.isF64())
    sum = ConvertOp::create(builder, loc, type({}, builder.getF64Type()), sum);
  return sum;
}

Value LossMaker::add(Value a, Value b) {
  return a ? Value(AddOp::create(builder, loc, a.getType(), a, b)) : b;
}

Value LossMaker::scalar(Type element, double value) {
  return ConstantOp::create(
      builder, loc, type({}, element),
      DenseElementsAttr::get(RankedTensorType::get({}, element),
                             Attribute(builder.getFloatAttr(element, value))));
}

LossMaker::TypeOf fuzz::wholeTypes(LayoutMaker &maker, const MeshShape &mesh) {
  return [&](ArrayRef<int64_t> shape, Type element) {
    return maker.type(shape, element,
                      Layout(mesh.size(), static_cast<int>(shape.size())));
  };
}

Value SourceCopies::copy(OpBuilder &builder, Value whole, std::string name) {
  auto made =
      BarrierOp::create(builder, whole.getLoc(), whole.getType(), whole);
  made->setDiscardableAttr(autodiff::names::trainable,
                           builder.getI64IntegerAttr(names.size()));
  names.push_back(std::move(name));
  return made;
}

std::string SourceCopies::differentiate(func::FuncOp main) {
  main.setResultAttr(0, autodiff::names::loss,
                     UnitAttr::get(main.getContext()));
  std::string text;
  ScopedDiagnosticHandler handler(
      main.getContext(), [&](Diagnostic &diagnostic) {
        text += (text.empty() ? "" : "; ") + diagnostic.str();
        for (Diagnostic &note : diagnostic.getNotes())
          text += "; " + note.str();
      });
  auto module = main->getParentOfType<ModuleOp>();
  if (failed(verify(module)))
    return "the forward is refused: " + text;
  if (failed(autodiff::differentiate(main)))
    return text;
  if (failed(verify(module)))
    return "the backward is refused: " + text;
  for (unsigned index = 1; index < main.getNumResults(); ++index) {
    auto number = cast<IntegerAttr>(
        main.getResultAttr(index, autodiff::names::gradientOf));
    main.setResultAttr(
        index, "mtp.name",
        StringAttr::get(main.getContext(), names[number.getInt()]));
  }
  return "";
}

namespace {
/// Runs the trials and adds up their losses.
class GradientMaker {
public:
  GradientMaker(func::FuncOp seed, const MeshShape &mesh)
      : seed(seed), mesh(mesh), program(seed, &mesh),
        maker(program.builder, seed.getLoc(), mesh),
        losses(program.builder, seed.getLoc(), wholeTypes(maker, mesh)) {}

  GradientProgram run(ArrayRef<Trial> trials) {
    GradientProgram result;
    Block &body = program.main.getBody().front();
    Value total;
    for (auto [number, trial] : llvm::enumerate(trials)) {
      Operation *before = body.empty() ? nullptr : &body.back();
      maker.reason.clear();
      Value loss = addTrial(trial, number);
      result.notMade.push_back(loss ? "" : maker.reason);
      if (loss) {
        total = losses.add(total, loss);
        continue;
      }
      while (!body.empty() && &body.back() != before)
        body.back().erase();
      sources.names.resize(kept);
      program.builder.setInsertionPointToEnd(&body);
    }
    if (!total) {
      result.error = "no trial can be made";
      return result;
    }
    program.add(total, "loss");
    func::FuncOp main = program.main;
    result.module = program.finish();
    result.error = sources.differentiate(main);
    return result;
  }

private:
  /// An operand of a trial; float arguments get a copy of their own, which is
  /// differentiated.
  Value operand(Value value, const Layout &layout, int number) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument) {
      Operation *source = program.builder.clone(*value.getDefiningOp());
      auto plain = typeOf(value);
      Layout whole(mesh.size(), plain.getRank());
      source->getResult(0).setType(
          maker.type(plain.getShape(), plain.getElementType(), whole));
      return maker.make(source->getResult(0), layout);
    }
    Value whole = program.main.getArgument(argument.getArgNumber());
    if (isFloat(whole.getType()))
      whole = sources.copy(program.builder, whole,
                           std::to_string(number) + "." +
                               std::to_string(argument.getArgNumber()));
    return maker.make(whole, layout);
  }

  Value addTrial(const Trial &trial, int number) {
    kept = sources.names.size();
    Operation *op = mainOp(seed);
    SmallVector<Value> operands;
    for (auto [value, layout] :
         llvm::zip_equal(op->getOperands(), trial.strategy.operands)) {
      operands.push_back(operand(value, layout, number));
      if (!operands.back())
        return {};
    }
    OperationState state(op->getLoc(), op->getName());
    state.addOperands(operands);
    state.propertiesAttr = op->getPropertiesAsAttribute();
    for (auto [result, layout] :
         llvm::zip_equal(op->getResults(), trial.strategy.results))
      state.addTypes(maker.type(typeOf(result).getShape(),
                                typeOf(result).getElementType(), layout));
    Operation *typed = program.builder.create(state);
    Value sum;
    for (unsigned index : lossResults(seed))
      sum = losses.add(
          sum, losses.make(maker.bringBack(typed->getResult(index),
                                           trial.strategy.results[index])));
    return sum;
  }

  func::FuncOp seed;
  const MeshShape &mesh;
  Program program;
  LayoutMaker maker;
  LossMaker losses;
  SourceCopies sources;
  size_t kept = 0;
};
} // namespace

GradientProgram fuzz::buildGradients(func::FuncOp seed, ArrayRef<Trial> trials,
                                     const MeshShape &mesh) {
  return GradientMaker(seed, mesh).run(trials);
}

OwningOpRef<ModuleOp> fuzz::buildLoss(func::FuncOp seed) {
  Program program(seed);
  IRMapping mapping;
  mapping.map(seed.getArguments(), program.main.getArguments());
  for (Operation &op : seed.getBody().front().without_terminator())
    program.builder.clone(op, mapping);
  LossMaker losses(program.builder, seed.getLoc(),
                   [](ArrayRef<int64_t> shape, Type element) {
                     return RankedTensorType::get(shape, element);
                   });
  Value sum;
  for (unsigned index : lossResults(seed))
    sum = losses.add(
        sum, losses.make(mapping.lookup(mainOp(seed)->getResult(index))));
  program.add(sum, "loss");
  return program.finish();
}
