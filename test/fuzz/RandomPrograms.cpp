// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/RandomPrograms.h"

#include "test/fuzz/TypedPrograms.h"

#include "mlir/IR/IRMapping.h"

#include <random>

using namespace mlir;
using namespace mtp;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Ops whose results jump or blow up: rounding errors of their operands would
/// not stay small.
static bool isSteep(Operation *op) {
  return isa<SignOp, ExpOp, LogOp, SqrtOp, RsqrtOp, ReciprocalOp, FloorOp,
             CeilOp, RoundOp, DivOp, PowOp, ModOp, FmodOp, CompareOp, ArgMaxOp,
             ArgMinOp, TopKOp, ReduceProdOp, IsNanOp, IsInfOp>(op) ||
         (isa<ConvertOp>(op) &&
          !isa<FloatType>(typeOf(op->getResult(0)).getElementType()));
}

/// Products grow; what uses them further is bounded.
static bool grows(Operation *op) {
  return isa<MulOp, MatMulOp, ConvolutionOp, CumsumOp, ReduceSumOp,
             ScatterElementsOp, ScatterNdOp>(op);
}

namespace {
class RandomProgram {
public:
  RandomProgram(ModuleOp seeds, uint64_t number)
      : seeds(seeds), builder(seeds.getContext()), random(number) {
    for (auto seed : seeds.getOps<func::FuncOp>())
      if (fuzz::mainOp(seed))
        functions.push_back(seed);
    module = ModuleOp::create(seeds.getLoc());
    outside = OpBuilder::atBlockEnd(module->getBody());
    for (auto initializer : seeds.getOps<InitializerOp>())
      outside.clone(*initializer);
    main = func::FuncOp::create(seeds.getLoc(), "main",
                                builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(main.addEntryBlock());
  }

  OwningOpRef<ModuleOp> run(unsigned count) {
    for (unsigned index = 0; index < count; ++index)
      addSeed(functions[random() % functions.size()]);
    SmallVector<Value> outputs;
    for (Operation &op : main.getBody().front())
      for (Value result : op.getResults())
        if (result.use_empty())
          outputs.push_back(result);
    func::ReturnOp::create(builder, main.getLoc(), outputs);
    main.setFunctionType(
        builder.getFunctionType(main.getBody().front().getArgumentTypes(),
                                ValueRange(outputs).getTypes()));
    for (unsigned index = 0; index < main.getNumArguments(); ++index)
      main.setArgAttr(index, "mtp.name",
                      builder.getStringAttr("arg" + std::to_string(index)));
    for (unsigned index = 0; index < outputs.size(); ++index)
      main.setResultAttr(
          index, "mtp.name",
          builder.getStringAttr("result" + std::to_string(index)));
    module->push_back(main);
    return std::move(module);
  }

private:
  bool chance(int percent) {
    return static_cast<int>(random() % 100) < percent;
  }

  void addSeed(func::FuncOp seed) {
    Operation *op = fuzz::mainOp(seed);
    bool steep = isSteep(op);
    IRMapping mapping;
    for (BlockArgument argument : seed.getArguments())
      mapping.map(argument, operandFor(typeOf(argument), steep));
    for (Operation &inner : seed.getBody().front().without_terminator())
      builder.clone(inner, mapping);
    if (steep)
      return;
    for (Value result : op->getResults()) {
      Value value = mapping.lookup(result);
      if (!isa<FloatType>(typeOf(value).getElementType()))
        continue;
      pool.push_back(grows(op) ? Value(TanhOp::create(builder, value.getLoc(),
                                                      value.getType(), value))
                               : value);
    }
  }

  Value operandFor(RankedTensorType type, bool fresh) {
    SmallVector<Value> fitting;
    for (Value value : pool)
      if (typeOf(value).getElementType() == type.getElementType())
        fitting.push_back(value);
    if (fresh || fitting.empty() || chance(25))
      return input(type);
    SmallVector<Value> same;
    for (Value value : fitting)
      if (value.getType() == type)
        same.push_back(value);
    if (!same.empty() && chance(60))
      return same[random() % same.size()];
    return adapt(fitting[random() % fitting.size()], type);
  }

  /// An input of the model or, for matrices, a parameter.
  Value input(RankedTensorType type) {
    if (type.getRank() < 2 || !type.getElementType().isF64() || chance(50))
      return main.getBody().front().addArgument(type, main.getLoc());
    std::normal_distribution<double> normal;
    std::vector<double> elements(type.getNumElements());
    for (double &element : elements)
      element = normal(random);
    std::string name = "weight" + std::to_string(parameters++);
    OperationState state(main.getLoc(), InitializerOp::getOperationName());
    state.addAttribute("sym_name", builder.getStringAttr(name));
    state.addAttribute("type", TypeAttr::get(type));
    state.addAttribute("value",
                       DenseElementsAttr::get(type, llvm::ArrayRef(elements)));
    state.addAttribute("parameter", builder.getUnitAttr());
    outside.create(state);
    OperationState use(main.getLoc(), ParameterOp::getOperationName());
    use.addAttribute("source",
                     FlatSymbolRefAttr::get(builder.getContext(), name));
    use.addTypes(type);
    return builder.create(use)->getResult(0);
  }

  RankedTensorType like(RankedTensorType type, ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, type.getElementType());
  }

  /// Merges leading dimensions or adds such of size 1, then slices, pads and
  /// broadcasts.
  Value adapt(Value value, RankedTensorType type) {
    Location loc = value.getLoc();
    SmallVector<int64_t> shape(typeOf(value).getShape());
    size_t rank = type.getRank();
    while (shape.size() > std::max<size_t>(rank, 1)) {
      shape[1] *= shape[0];
      shape.erase(shape.begin());
    }
    if (shape.size() < rank)
      shape.insert(shape.begin(), rank - shape.size(), 1);
    if (typeOf(value).getShape() != ArrayRef(shape))
      value = ReshapeOp::create(builder, loc, like(type, shape), value);
    auto wanted = [&](size_t dim) { return rank ? type.getDimSize(dim) : 1; };
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (int64_t more = shape[dim] - wanted(dim); more > 0) {
        int64_t start = random() % (more + 1);
        shape[dim] = wanted(dim);
        value = StridedSliceOp::create(builder, loc, like(type, shape), value,
                                       dim, start, 1);
      }
    SmallVector<int64_t> low(shape.size(), 0), high(shape.size(), 0);
    bool pads = false;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (int64_t less = wanted(dim) - shape[dim];
          less > 0 && shape[dim] != 1) {
        (chance(50) ? low : high)[dim] = less;
        shape[dim] = wanted(dim);
        pads = true;
      }
    if (pads)
      value = PadOp::create(builder, loc, like(type, shape), value,
                            builder.getF64FloatAttr(0),
                            builder.getDenseI64ArrayAttr(low),
                            builder.getDenseI64ArrayAttr(high));
    if (rank == 0)
      return ReshapeOp::create(builder, loc, type, value);
    return value.getType() == type
               ? value
               : Value(BroadcastOp::create(builder, loc, type, value));
  }

  ModuleOp seeds;
  OwningOpRef<ModuleOp> module;
  OpBuilder builder, outside{seeds.getContext()};
  func::FuncOp main;
  std::mt19937_64 random;
  SmallVector<func::FuncOp> functions;
  SmallVector<Value> pool;
  int parameters = 0;
};
} // namespace

OwningOpRef<ModuleOp> fuzz::buildRandomProgram(ModuleOp seeds, uint64_t number,
                                               unsigned count) {
  return RandomProgram(seeds, number).run(count);
}
