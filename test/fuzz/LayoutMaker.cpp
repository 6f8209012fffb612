// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/LayoutMaker.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::fuzz;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

RankedTensorType LayoutMaker::type(ArrayRef<int64_t> shape, Type element,
                                   Layout layout) {
  layout.canonicalize(shape, mesh);
  return RankedTensorType::get(shape, element,
                               toAttr(builder.getContext(), layout, mesh));
}

/// From all-invariant to `target`; null, with the reason, if this state cannot
/// be made.
Value LayoutMaker::make(Value whole, const Layout &target) {
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
  if (sums.empty() && extrema.empty())
    return value;
  if (!sums.empty())
    return partialSum(value, layout, sums);
  if (!element.isInteger())
    return fail("floats are never partial maxima or minima: the reduced "
                "dimension is whole");
  return partialExtremum(value, layout, extrema, extremum);
}

/// From any layout to one without partial states.
Value LayoutMaker::finish(Value value, Layout layout) {
  for (Kind kind : {Kind::PSum, Kind::PMax, Kind::PMin}) {
    SmallVector<int> axes;
    for (auto [axis, state] : llvm::enumerate(layout.states))
      if (state.kind == kind)
        axes.push_back(axis);
    if (axes.empty())
      continue;
    for (int axis : axes)
      layout.states[axis] = {Kind::I, -1};
    value = createConversion(builder, loc, conversionName(kind, Kind::I), value,
                             axes, layout, mesh);
  }
  return value;
}

/// The sum over ranks i of value · c_i, where c_i = [i = 0] + f (2i - (n - 1)),
/// f another number from element to element: the value again, as a partial sum.
Value LayoutMaker::spreadOver(Value value, const Layout &layout, int axis) {
  auto shape = typeOf(value).getShape();
  Type element = typeOf(value).getElementType();
  int64_t ranks = mesh.axes[axis].size;
  SmallVector<int64_t> wide{ranks};
  wide.append(shape.begin(), shape.end());
  Layout rows = beside(layout, wide.size());
  rows.states[axis] = {Kind::I, -1};
  rows.shard(axis, 0);
  for (auto [dim, cut] : llvm::enumerate(layout.dims))
    for (int other : cut.axes) {
      rows.shard(other, dim + 1);
      rows.dims[dim + 1].unit = cut.unit;
    }
  auto rowsType = type(wide, element, rows),
       testType = type(wide, builder.getI1Type(), rows);
  auto constant = [&](int64_t number) {
    return splat(wide, element, number, rows);
  };
  Value index = IotaOp::create(builder, loc, rowsType, 0);
  Value first = CompareOp::create(builder, loc, testType, Compare::eq, index,
                                  constant(0));
  Value whole =
      SelectOp::create(builder, loc, rowsType, first, constant(1), constant(0));
  Value twice = MulOp::create(builder, loc, rowsType, index, constant(2));
  Value terms =
      SubOp::create(builder, loc, rowsType, twice, constant(ranks - 1));
  Value field = indexSum(wide, element, rows, 1);
  terms = MulOp::create(builder, loc, rowsType, terms, field);
  terms = AddOp::create(builder, loc, rowsType, terms, whole);
  Value spread = MulOp::create(builder, loc, rowsType, value, terms);
  Layout partial = layout;
  partial.states[axis] = {Kind::PSum, -1};
  Value sum =
      ReduceSumOp::create(builder, loc, type(shape, element, partial), spread,
                          builder.getDenseI64ArrayAttr({0}), UnitAttr());
  partial.states[axis] = {Kind::I, -1};
  return createConversion(builder, loc, conversionName(Kind::PSum, Kind::I),
                          sum, axis, partial, mesh);
}

Value LayoutMaker::bringBack(Value value, Layout layout) {
  value = finish(value, layout);
  for (AxisState &state : layout.states)
    if (isPartial(state.kind))
      state = {Kind::I, -1};
  for (int axis = 0; axis < mesh.size(); ++axis)
    if (layout.states[axis].kind == Kind::R) {
      value = spreadOver(value, layout, axis);
      layout.states[axis] = {Kind::I, -1};
    }
  for (auto [dim, cut] : llvm::enumerate(layout.dims))
    while (!layout.dims[dim].axes.empty()) {
      int axis = layout.dims[dim].axes.back();
      layout.unshard(axis, Kind::I);
      Layout next = layout;
      next.canonicalize(typeOf(value).getShape(), mesh);
      value = createConversion(builder, loc, conversionName(Kind::S, Kind::I),
                               value, axis, next, mesh);
    }
  return value;
}

std::nullptr_t LayoutMaker::fail(const char *why) {
  reason = why;
  return nullptr;
}

/// One axis from the value's state to that of `layout`.
Value LayoutMaker::convert(Value value, int axis, Layout layout) {
  layout.canonicalize(typeOf(value).getShape(), mesh);
  Kind to = layout.states[axis].kind;
  return createConversion(builder, loc, conversionName(Kind::I, to), value,
                          axis, layout, mesh);
}

Value LayoutMaker::splat(ArrayRef<int64_t> shape, Type element, int64_t value,
                         const Layout &layout) {
  auto plain = RankedTensorType::get(shape, element);
  Attribute attr = isa<FloatType>(element)
                       ? Attribute(builder.getFloatAttr(element, value))
                       : Attribute(builder.getIntegerAttr(element, value));
  return ConstantOp::create(builder, loc, type(shape, element, layout),
                            DenseElementsAttr::get(plain, attr));
}

/// The layout of a tensor without dimensions of `like`'s: where `like` is I, I;
/// elsewhere R.
Layout LayoutMaker::beside(const Layout &like, int rank) {
  Layout layout(mesh.size(), rank);
  for (auto [axis, state] : llvm::enumerate(like.states))
    layout.states[axis] = {state.kind == Kind::I ? Kind::I : Kind::R, -1};
  return layout;
}

/// A scalar whose value is 0 and whose terms on `axis` are 2i - (n - 1).
Value LayoutMaker::zeroSum(int axis, Type element, const Layout &around) {
  int64_t ranks = mesh.axes[axis].size;
  Layout row = beside(around, 1);
  row.states[axis] = {Kind::I, -1};
  row.shard(axis, 0);
  auto rowType = type({ranks}, element, row);
  Value index = IotaOp::create(builder, loc, rowType, 0);
  Value twice = MulOp::create(builder, loc, rowType, index,
                              splat({ranks}, element, 2, row));
  Value terms = SubOp::create(builder, loc, rowType, twice,
                              splat({ranks}, element, ranks - 1, row));
  Layout scalar = beside(around, 0);
  scalar.states[axis] = {Kind::PSum, -1};
  return ReduceSumOp::create(builder, loc, type({}, element, scalar), terms,
                             builder.getDenseI64ArrayAttr({0}), UnitAttr());
}

/// The sum of all indices of an element, another number from one to the next.
Value LayoutMaker::indexSum(ArrayRef<int64_t> shape, Type element,
                            const Layout &layout, int64_t from) {
  auto rowsType = type(shape, element, layout);
  Value sum;
  for (int64_t dim = from, rank = shape.size(); dim < rank; ++dim) {
    Value index = IotaOp::create(builder, loc, rowsType, dim);
    sum =
        sum ? Value(AddOp::create(builder, loc, rowsType, sum, index)) : index;
  }
  return sum ? sum : splat(shape, element, 3, layout);
}

/// The value on the first rank, plus a field of its own times terms whose sum
/// is zero. A boolean is true on one rank at most.
Value LayoutMaker::partialSum(Value value, const Layout &layout,
                              ArrayRef<int> axes) {
  auto shape = typeOf(value).getShape();
  Type element = typeOf(value).getElementType();
  Layout partial = layout;
  for (int axis : axes)
    partial.states[axis] = {Kind::PSum, -1};
  Value base =
      createConversion(builder, loc, conversionName(Kind::R, Kind::PSum), value,
                       axes, partial, mesh);
  if (element.isInteger(1))
    return base;
  Value field = indexSum(shape, element, layout, 0);
  partial = layout;
  for (int axis : axes) {
    Value terms = zeroSum(axis, element, layout);
    partial.states[axis] = {Kind::PSum, -1};
    // Partial on the axes so far: the next factor is whole on them.
    field = MulOp::create(builder, loc, type(shape, element, partial), field,
                          terms);
  }
  return AddOp::create(builder, loc, base.getType(), base, field);
}

/// Candidates x - t (maximum) or x + t (minimum), where t >= 0 is 0 on one rank
/// of each axis, another one from element to element. For booleans the other
/// ranks have false (maximum) or true (minimum).
Value LayoutMaker::partialExtremum(Value value, const Layout &layout,
                                   ArrayRef<int> axes, Kind kind) {
  auto shape = typeOf(value).getShape();
  Type element = typeOf(value).getElementType(), counter = builder.getI64Type();
  int64_t extra = axes.size();
  SmallVector<int64_t> wide, dims;
  Layout rows(mesh.size(), extra + shape.size()), partial = layout;
  for (int other = 0; other < mesh.size(); ++other)
    if (!llvm::is_contained(axes, other) &&
        layout.states[other].kind != Kind::S)
      rows.states[other] = layout.states[other];
  for (auto [dim, axis] : llvm::enumerate(axes)) {
    wide.push_back(mesh.axes[axis].size);
    dims.push_back(dim);
    rows.shard(axis, dim);
    partial.states[axis] = {kind, -1};
  }
  wide.append(shape.begin(), shape.end());
  for (auto [dim, cut] : llvm::enumerate(layout.dims))
    for (int other : cut.axes) {
      rows.shard(other, dim + extra);
      rows.dims[dim + extra].unit = cut.unit;
    }
  auto rowsType = type(wide, element, rows),
       counterType = type(wide, counter, rows);
  bool isMax = kind == Kind::PMax;
  Value result = BroadcastOp::create(builder, loc, rowsType, value);
  for (auto [dim, axis] : llvm::enumerate(axes)) {
    Value terms = IotaOp::create(builder, loc, counterType, dim);
    terms = AddOp::create(builder, loc, counterType, terms,
                          indexSum(wide, counter, rows, extra));
    terms = ModOp::create(builder, loc, counterType, terms,
                          splat(wide, counter, mesh.axes[axis].size, rows));
    if (element.isInteger(1)) {
      Value other = CompareOp::create(builder, loc, rowsType,
                                      isMax ? Compare::eq : Compare::ne, terms,
                                      splat(wide, counter, 0, rows));
      result = isMax
                   ? Value(AndOp::create(builder, loc, rowsType, result, other))
                   : Value(OrOp::create(builder, loc, rowsType, result, other));
      continue;
    }
    if (counter != element)
      terms = ConvertOp::create(builder, loc, rowsType, terms);
    result = isMax
                 ? Value(SubOp::create(builder, loc, rowsType, result, terms))
                 : Value(AddOp::create(builder, loc, rowsType, result, terms));
  }
  auto reduced = builder.getDenseI64ArrayAttr(dims);
  if (isMax)
    return ReduceMaxOp::create(builder, loc, type(shape, element, partial),
                               result, reduced, UnitAttr());
  return ReduceMinOp::create(builder, loc, type(shape, element, partial),
                             result, reduced, UnitAttr());
}

/// `mtp.mesh` for a mesh of plain or refined axes.
static void createMesh(OpBuilder &builder, Location loc,
                       const MeshShape &mesh) {
  SmallVector<Attribute> names, factors;
  for (int axis = 0; axis < mesh.size();) {
    SmallVector<int64_t> sizes;
    std::string parent = mesh.axes[axis].parent;
    for (; axis < mesh.size() && mesh.axes[axis].parent == parent; ++axis)
      sizes.push_back(mesh.axes[axis].size);
    names.push_back(builder.getStringAttr(parent));
    factors.push_back(builder.getDenseI64ArrayAttr(sizes));
  }
  MeshOp::create(builder, loc, mesh.symbol, builder.getArrayAttr(names),
                 builder.getArrayAttr(factors));
}

Program::Program(func::FuncOp like, const MeshShape *mesh)
    : builder(like.getContext()) {
  module = ModuleOp::create(like.getLoc());
  builder.setInsertionPointToEnd(module->getBody());
  if (mesh)
    createMesh(builder, like.getLoc(), *mesh);
  for (auto initializer :
       like->getParentOfType<ModuleOp>().getOps<InitializerOp>())
    builder.clone(*initializer);
  SmallVector<Type> inputs;
  for (Type type : like.getArgumentTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    inputs.push_back(
        mesh ? withLayout(tensor,
                          toAttr(like.getContext(),
                                 Layout(mesh->size(), tensor.getRank()), *mesh))
             : tensor);
  }
  main = func::FuncOp::create(builder, like.getLoc(), "main",
                              builder.getFunctionType(inputs, {}));
  builder.setInsertionPointToStart(main.addEntryBlock());
  for (unsigned index = 0; index < inputs.size(); ++index)
    main.setArgAttr(index, "mtp.name",
                    builder.getStringAttr("arg" + std::to_string(index)));
}

void Program::add(Value value, std::string name) {
  results.push_back(value);
  names.push_back(std::move(name));
}

OwningOpRef<ModuleOp> Program::finish() {
  func::ReturnOp::create(builder, main.getLoc(), results);
  main.setFunctionType(builder.getFunctionType(main.getArgumentTypes(),
                                               TypeRange(ValueRange(results))));
  for (auto [index, name] : llvm::enumerate(names))
    main.setResultAttr(index, "mtp.name", builder.getStringAttr(name));
  return std::move(module);
}
