// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TypedPrograms.cpp - every op in every case of its rule --------------===//

#include "test/fuzz/TypedPrograms.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::fuzz;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

Operation *fuzz::mainOp(func::FuncOp seed) {
  return seed.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
}

std::vector<Trial> fuzz::enumerateTrials(Operation *op, const MeshShape &mesh, size_t limit) {
  auto rule = cast<ShardingOpInterface>(op).getShardingRule();
  std::vector<Trial> trials;
  if (failed(rule))
    return trials;
  SmallVector<AxisCase, 8> cases = enumerateCases(*rule);
  size_t total = 1;
  for (int axis = 0; axis < mesh.size(); ++axis)
    total *= cases.size();
  size_t step = std::max<size_t>(1, total / limit);
  for (size_t index = 0; index < total; index += step) {
    SmallVector<AxisCase> chosen;
    Trial trial;
    size_t rest = index;
    for (int axis = 0; axis < mesh.size(); ++axis, rest /= cases.size()) {
      chosen.push_back(cases[rest % cases.size()]);
      trial.rows.push_back(chosen.back().text(*rule));
      trial.text += (axis ? ", " : "") + mesh.axes[axis].name() + ": " + trial.rows.back();
    }
    if (auto strategy = combine(op, *rule, chosen, mesh)) {
      trial.strategy = std::move(*strategy);
      trials.push_back(std::move(trial));
    }
  }
  return trials;
}

namespace {
/// Brings whole values into a layout, and results back.
class LayoutMaker {
public:
  LayoutMaker(OpBuilder &builder, Location loc, const MeshShape &mesh) : builder(builder), loc(loc), mesh(mesh) {}

  RankedTensorType type(ArrayRef<int64_t> shape, Type element, const Layout &layout) {
    return RankedTensorType::get(shape, element, toAttr(builder.getContext(), layout, mesh));
  }

  /// From all-invariant to `target`; null if this state cannot be made.
  Value make(Value whole, const Layout &target) {
    auto element = typeOf(whole).getElementType();
    Layout layout(mesh.size(), typeOf(whole).getRank());
    Value value = whole;
    for (auto [dim, cut] : llvm::enumerate(target.dims))
      for (int axis : cut.axes) {
        layout.shard(axis, dim);
        layout.dims[dim].unit = cut.unit;
        value = convert(value, axis, layout);
      }
    SmallVector<int> sums, extrema;
    Kind extremum = Kind::I;
    for (auto [axis, state] : llvm::enumerate(target.states)) {
      if (state.kind == Kind::I || state.kind == Kind::S)
        continue;
      layout.states[axis] = {Kind::R, -1};
      value = convert(value, axis, layout);
      if (state.kind == Kind::PSum)
        sums.push_back(axis);
      else if (state.kind != Kind::R) {
        extrema.push_back(axis);
        extremum = state.kind;
      }
    }
    if (!sums.empty())
      return element.isInteger(1) ? Value() : partialSum(value, layout, sums);
    if (extrema.empty())
      return value;
    bool reducible = element.isInteger() && !element.isInteger(1) && extrema.size() == 1;
    return reducible ? partialExtremum(value, layout, extrema[0], extremum) : Value();
  }

  /// From any layout to one without partial states.
  Value finish(Value value, Layout layout) {
    for (Kind kind : {Kind::PSum, Kind::PMax, Kind::PMin}) {
      SmallVector<int> axes;
      for (auto [axis, state] : llvm::enumerate(layout.states))
        if (state.kind == kind)
          axes.push_back(axis);
      if (axes.empty())
        continue;
      for (int axis : axes)
        layout.states[axis] = {Kind::I, -1};
      value = createConversion(builder, loc, conversionName(kind, Kind::I), value, axes, layout, mesh);
    }
    return value;
  }

private:
  /// One axis from the value's state to that of `layout`.
  Value convert(Value value, int axis, Layout &layout) {
    Kind to = layout.states[axis].kind;
    return createConversion(builder, loc, conversionName(Kind::I, to), value, axis, layout, mesh);
  }

  Value splat(ArrayRef<int64_t> shape, Type element, int64_t value, const Layout &layout) {
    auto plain = RankedTensorType::get(shape, element);
    Attribute attr = isa<FloatType>(element) ? Attribute(builder.getFloatAttr(element, value))
                                             : Attribute(builder.getIntegerAttr(element, value));
    return ConstantOp::create(builder, loc, type(shape, element, layout), DenseElementsAttr::get(plain, attr));
  }

  /// The layout of a tensor without dimensions of `like`'s: where `like` is I, I;
  /// elsewhere R.
  Layout beside(const Layout &like, int rank) {
    Layout layout(mesh.size(), rank);
    for (auto [axis, state] : llvm::enumerate(like.states))
      layout.states[axis] = {state.kind == Kind::I ? Kind::I : Kind::R, -1};
    return layout;
  }

  /// A scalar whose value is 0 and whose terms on `axis` are 2i - (n - 1).
  Value zeroSum(int axis, Type element, const Layout &around) {
    int64_t ranks = mesh.axes[axis].size;
    Layout row = beside(around, 1);
    row.states[axis] = {Kind::I, -1};
    row.shard(axis, 0);
    auto rowType = type({ranks}, element, row);
    Value index = IotaOp::create(builder, loc, rowType, 0);
    Value twice = MulOp::create(builder, loc, rowType, index, splat({ranks}, element, 2, row));
    Value terms = SubOp::create(builder, loc, rowType, twice, splat({ranks}, element, ranks - 1, row));
    Layout scalar = beside(around, 0);
    scalar.states[axis] = {Kind::PSum, -1};
    return ReduceSumOp::create(builder, loc, type({}, element, scalar), terms, builder.getDenseI64ArrayAttr({0}),
                               UnitAttr());
  }

  /// The value on the first rank, plus a field of its own times terms whose sum
  /// is zero.
  Value partialSum(Value value, Layout layout, ArrayRef<int> axes) {
    auto shape = typeOf(value).getShape();
    Type element = typeOf(value).getElementType();
    int64_t rank = shape.size();
    Value field = rank == 0 ? splat(shape, element, 3, layout)
                            : Value(IotaOp::create(builder, loc, type(shape, element, layout), rank - 1));
    Layout partial = layout;
    for (int axis : axes) {
      Value terms = zeroSum(axis, element, layout);
      partial.states[axis] = {Kind::PSum, -1};
      // Partial on the axes so far: the next factor is whole on them.
      field = MulOp::create(builder, loc, type(shape, element, partial), field, terms);
    }
    Value base = createConversion(builder, loc, conversionName(Kind::R, Kind::PSum), value, axes, partial, mesh);
    return AddOp::create(builder, loc, base.getType(), base, field);
  }

  /// Candidates x - i (maximum) or x + i (minimum) on rank i.
  Value partialExtremum(Value value, Layout layout, int axis, Kind kind) {
    auto shape = typeOf(value).getShape();
    Type element = typeOf(value).getElementType();
    SmallVector<int64_t> wide(shape);
    wide.insert(wide.begin(), mesh.axes[axis].size);
    Layout rows(mesh.size(), wide.size());
    for (int other = 0; other < mesh.size(); ++other)
      if (other != axis && layout.states[other].kind != Kind::S)
        rows.states[other] = layout.states[other];
    rows.shard(axis, 0);
    for (auto [dim, cut] : llvm::enumerate(layout.dims))
      for (int other : cut.axes) {
        rows.shard(other, dim + 1);
        rows.dims[dim + 1].unit = cut.unit;
      }
    auto rowsType = type(wide, element, rows);
    Value copies = BroadcastOp::create(builder, loc, rowsType, value);
    Value index = IotaOp::create(builder, loc, rowsType, 0);
    Layout partial = layout;
    partial.states[axis] = {kind, -1};
    auto partialType = type(shape, element, partial);
    auto dims = builder.getDenseI64ArrayAttr({0});
    if (kind == Kind::PMax)
      return ReduceMaxOp::create(builder, loc, partialType, SubOp::create(builder, loc, rowsType, copies, index),
                                 dims, UnitAttr());
    return ReduceMinOp::create(builder, loc, partialType, AddOp::create(builder, loc, rowsType, copies, index),
                               dims, UnitAttr());
  }

  OpBuilder &builder;
  Location loc;
  const MeshShape &mesh;
};

/// A module with an empty function `main` that has the inputs of a seed.
struct Program {
  OwningOpRef<ModuleOp> module;
  func::FuncOp main;
  OpBuilder builder;
  SmallVector<Value> results;
  SmallVector<std::string> names;

  Program(func::FuncOp seed, llvm::function_ref<Type(Type)> inputType) : builder(seed.getContext()) {
    module = ModuleOp::create(seed.getLoc());
    builder.setInsertionPointToEnd(module->getBody());
    SmallVector<Type> inputs;
    for (Type type : seed.getArgumentTypes())
      inputs.push_back(inputType(type));
    main = func::FuncOp::create(builder, seed.getLoc(), "main", builder.getFunctionType(inputs, {}));
    builder.setInsertionPointToStart(main.addEntryBlock());
    for (unsigned index = 0; index < inputs.size(); ++index)
      main.setArgAttr(index, "mtp.name", builder.getStringAttr("arg" + std::to_string(index)));
  }

  void add(Value value, std::string name) {
    results.push_back(value);
    names.push_back(std::move(name));
  }

  OwningOpRef<ModuleOp> finish() {
    func::ReturnOp::create(builder, main.getLoc(), results);
    main.setFunctionType(builder.getFunctionType(main.getArgumentTypes(), TypeRange(ValueRange(results))));
    for (auto [index, name] : llvm::enumerate(names))
      main.setResultAttr(index, "mtp.name", builder.getStringAttr(name));
    return std::move(module);
  }
};
} // namespace

OwningOpRef<ModuleOp> fuzz::buildReference(func::FuncOp seed) {
  Program program(seed, [](Type type) { return type; });
  IRMapping mapping;
  mapping.map(seed.getArguments(), program.main.getArguments());
  Block &body = seed.getBody().front();
  for (Operation &op : body.without_terminator())
    program.builder.clone(op, mapping);
  for (auto [index, value] : llvm::enumerate(body.getTerminator()->getOperands()))
    program.add(mapping.lookup(value), "reference." + std::to_string(index));
  return program.finish();
}

/// Runs one trial; false if an operand cannot be made.
static bool addTrial(Program &program, LayoutMaker &maker, func::FuncOp seed, const Trial &trial, int number) {
  Operation *op = mainOp(seed);
  OpBuilder &builder = program.builder;
  SmallVector<Value> operands;
  for (auto [operand, layout] : llvm::zip_equal(op->getOperands(), trial.strategy.operands)) {
    auto plain = typeOf(operand);
    auto type = maker.type(plain.getShape(), plain.getElementType(), layout);
    if (auto argument = dyn_cast<BlockArgument>(operand)) {
      operands.push_back(maker.make(program.main.getArgument(argument.getArgNumber()), layout));
    } else { // a source, which takes any state but partial
      if (llvm::any_of(layout.states, [](AxisState s) { return isPartial(s.kind); }))
        return false;
      Operation *source = builder.clone(*operand.getDefiningOp());
      source->getResult(0).setType(type);
      operands.push_back(source->getResult(0));
    }
    if (!operands.back())
      return false;
  }
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (auto [result, layout] : llvm::zip_equal(op->getResults(), trial.strategy.results))
    state.addTypes(maker.type(typeOf(result).getShape(), typeOf(result).getElementType(), layout));
  Operation *typed = builder.create(state);
  for (auto [index, value] : llvm::enumerate(seed.getBody().front().getTerminator()->getOperands())) {
    unsigned result = cast<OpResult>(value).getResultNumber();
    program.add(maker.finish(typed->getResult(result), trial.strategy.results[result]),
                std::to_string(number) + "." + std::to_string(index));
  }
  return true;
}

OwningOpRef<ModuleOp> fuzz::buildTyped(func::FuncOp seed, ArrayRef<Trial> trials, const MeshShape &mesh,
                                       std::vector<int> &made) {
  MLIRContext *context = seed.getContext();
  Program program(seed, [&](Type type) -> Type {
    Layout whole(mesh.size(), cast<RankedTensorType>(type).getRank());
    return withLayout(cast<RankedTensorType>(type), toAttr(context, whole, mesh));
  });
  OpBuilder outside(context);
  outside.setInsertionPointToStart(program.module->getBody());
  SmallVector<Attribute> names, factors;
  for (const MeshShape::Axis &axis : mesh.axes) {
    names.push_back(outside.getStringAttr(axis.parent));
    factors.push_back(outside.getDenseI64ArrayAttr({axis.size}));
  }
  MeshOp::create(outside, seed.getLoc(), mesh.symbol, outside.getArrayAttr(names), outside.getArrayAttr(factors));
  LayoutMaker maker(program.builder, seed.getLoc(), mesh);
  for (auto [number, trial] : llvm::enumerate(trials)) {
    Operation *before = program.main.getBody().front().empty() ? nullptr : &program.main.getBody().front().back();
    if (addTrial(program, maker, seed, trial, number)) {
      made.push_back(number);
      continue;
    }
    // Take back what was built for it.
    Block &body = program.main.getBody().front();
    while (!body.empty() && &body.back() != before)
      body.back().erase();
    program.builder.setInsertionPointToEnd(&body);
  }
  return program.finish();
}
