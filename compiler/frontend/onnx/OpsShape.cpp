// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsShape.cpp - operators that move elements -------------------------===//
//
// Normal forms:  Reshape (Flatten, Squeeze, Unsqueeze): no attributes, the output
// has the shape.  Transpose: perm.  Concat: axis.  mtp.slice (Slice, Split): dim,
// start, step.  Expand: the output has the shape.  Pad: pads (all begins, then all
// ends), value.  Trilu: upper, k.
//
//===----------------------------------------------------------------------===//
#include "compiler/frontend/onnx/Evaluate.h"

#include <algorithm>

namespace mtp::onnx {

namespace {

Attribute intValue(int64_t value) {
  Attribute attribute;
  attribute.i = value;
  return attribute;
}

/// Turns the node into a reshape of input 0.
void reshapeTo(OpContext &op, Shape shape) {
  if (shape == op.shape(0))
    return op.alias(0, op.node.inputs[0]);
  op.node.op = "Reshape";
  op.node.attributes.clear();
  op.output(0, op.type(0), std::move(shape));
}

void inferReshape(OpContext &op) {
  bool allowZero = op.intAttr("allowzero", 0);
  std::vector<int64_t> wanted = op.takeInts(1, "the shape");
  Shape from = op.shape(0);
  int64_t known = 1, hole = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && !allowZero) {
      if (i >= from.size())
        op.invalid("dimension " + std::to_string(i) + " of shape " + text(wanted) + " is copied from " + text(from));
      wanted[i] = from[i];
    }
    if (wanted[i] == -1) {
      if (hole >= 0)
        op.invalid("shape " + text(wanted) + " has two -1");
      hole = static_cast<int64_t>(i);
    } else if (wanted[i] < 0 || !checkedMul(known, wanted[i], known)) {
      op.invalid("shape " + text(wanted) + " is not valid");
    }
  }
  int64_t elements = elementCount(from);
  if (hole >= 0) {
    if (known == 0 ? elements != 0 : elements % known != 0)
      op.invalid(text(from) + " cannot be reshaped to " + text(wanted));
    wanted[hole] = known == 0 ? 0 : elements / known;
    known *= wanted[hole];
  }
  if (known != elements)
    op.invalid(text(from) + " cannot be reshaped to " + text(wanted));
  reshapeTo(op, std::move(wanted));
}

void inferFlatten(OpContext &op) {
  Shape from = op.shape(0);
  int64_t axis = op.intAttr("axis", 1), rank = static_cast<int64_t>(from.size());
  if (axis < -rank || axis > rank)
    op.invalid("axis " + std::to_string(axis) + " does not exist in " + text(from));
  axis += axis < 0 ? rank : 0;
  Shape to = {1, 1};
  for (int64_t i = 0; i < rank; ++i)
    to[i < axis ? 0 : 1] *= from[i];
  reshapeTo(op, std::move(to));
}

/// Axes of Squeeze and Unsqueeze: an attribute below opset 13, then an input.
std::optional<std::vector<int64_t>> axesOf(OpContext &op, int64_t rank) {
  std::optional<std::vector<int64_t>> axes = op.intsAttr("axes");
  if (op.has(1))
    axes = op.takeInts(1, "the axes");
  return axes ? std::optional(op.axes(*axes, rank)) : std::nullopt;
}

void inferSqueeze(OpContext &op) {
  Shape from = op.shape(0), to;
  auto axes = axesOf(op, op.rank(0));
  for (size_t i = 0; i < from.size(); ++i) {
    bool listed = axes ? std::find(axes->begin(), axes->end(), static_cast<int64_t>(i)) != axes->end() : from[i] == 1;
    if (listed && from[i] != 1)
      op.invalid("axis " + std::to_string(i) + " of " + text(from) + " does not have size 1");
    if (!listed)
      to.push_back(from[i]);
  }
  reshapeTo(op, std::move(to));
}

void inferUnsqueeze(OpContext &op) {
  Shape from = op.shape(0);
  int64_t count = 0;
  if (op.has(1))
    count = elementCount(op.shape(1));
  else if (auto axes = op.intsAttr("axes"))
    count = static_cast<int64_t>(axes->size());
  if (count > 64)
    op.invalid("it adds " + std::to_string(count) + " dimensions");
  auto axes = axesOf(op, op.rank(0) + count);
  if (!axes)
    op.invalid("the axes are missing");
  for (int64_t axis : *axes)
    from.insert(from.begin() + axis, 1);
  reshapeTo(op, std::move(from));
}

void inferTranspose(OpContext &op) {
  Shape from = op.shape(0), to;
  std::vector<int64_t> perm;
  for (size_t i = from.size(); i-- > 0;)
    perm.push_back(static_cast<int64_t>(i));
  if (auto given = op.intsAttr("perm"))
    perm = *given;
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool sound = sorted.size() == from.size();
  for (size_t i = 0; sound && i < sorted.size(); ++i)
    sound = sorted[i] == static_cast<int64_t>(i);
  if (!sound)
    op.invalid("perm " + text(perm) + " is not a permutation of " + std::to_string(from.size()) + " dimensions");
  for (int64_t dim : perm)
    to.push_back(from[dim]);
  if (std::is_sorted(perm.begin(), perm.end()))
    return op.alias(0, op.node.inputs[0]);
  op.set("perm", perm);
  op.output(0, op.type(0), std::move(to));
}

void inferConcat(OpContext &op) {
  op.sameTypes();
  Shape shape = op.shape(0);
  int64_t axis = op.axis(op.intAttr("axis", 1), op.rank(0));
  int64_t total = 0;
  std::vector<int> parts;
  for (size_t i = 0; i < op.numInputs(); ++i) {
    Shape part = op.shape(i);
    bool fits = part.size() == shape.size();
    for (size_t d = 0; fits && d < part.size(); ++d)
      fits = part[d] == shape[d] || static_cast<int64_t>(d) == axis;
    if (!fits)
      op.invalid("inputs of shape " + text(shape) + " and " + text(part) + " cannot be joined along axis " +
                 std::to_string(axis));
    total += part[axis];
    if (part[axis])
      parts.push_back(op.node.inputs[i]);
  }
  if (parts.empty())
    parts.push_back(op.node.inputs[0]);
  if (parts.size() == 1)
    return op.alias(0, parts[0]);
  DType type = op.type(0);
  op.node.inputs = parts; // empty ones give nothing
  shape[axis] = total;
  op.set("axis", axis);
  op.output(0, type, std::move(shape));
}

/// Elements start, start + step, .. (size of them) of one dimension of `value`.
int sliceOf(OpContext &op, int value, DType type, Shape shape, int64_t dim, int64_t start, int64_t size, int64_t step) {
  if (start == 0 && step == 1 && shape[dim] == size)
    return value;
  shape[dim] = size;
  if (size == 0)
    start = 0, step = 1;
  return op.emit("mtp.slice", {value}, {{"dim", intValue(dim)}, {"start", intValue(start)}, {"step", intValue(step)}},
                 type, std::move(shape));
}

void inferSlice(OpContext &op) {
  std::vector<int64_t> starts = op.takeInts(1, "the start"), ends = op.takeInts(2, "the end");
  std::vector<int64_t> axes, steps(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i)
    axes.push_back(static_cast<int64_t>(i));
  if (op.has(3))
    axes = op.takeInts(3, "the axes");
  if (op.has(4))
    steps = op.takeInts(4, "the step");
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    op.invalid("starts, ends, axes and steps have different lengths");
  Shape shape = op.shape(0);
  DType type = op.type(0);
  int64_t rank = static_cast<int64_t>(shape.size());
  op.axes(axes, rank);
  int value = op.node.inputs[0];
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t dim = op.axis(axes[i], rank), extent = shape[dim], step = steps[i];
    if (step == 0)
      op.invalid("a step is 0");
    auto clamp = [&](int64_t at, int64_t low, int64_t high) {
      at = at < 0 ? at < -extent ? low : at + extent : at;
      return std::clamp(at, low, high);
    };
    int64_t start = step > 0 ? clamp(starts[i], 0, extent) : clamp(starts[i], 0, extent - 1);
    int64_t end = step > 0 ? clamp(ends[i], 0, extent) : ends[i] < -extent ? -1 : clamp(ends[i], -1, extent - 1);
    int64_t size = 0;
    if (step > 0 && end > start)
      size = (end - start - 1) / step + 1;
    if (step < 0 && start > end)
      size = (start - end - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1;
    value = sliceOf(op, value, type, shape, dim, start, extent == 0 ? 0 : size, step);
    shape[dim] = extent == 0 ? 0 : size;
  }
  op.alias(0, value);
}

void inferSplit(OpContext &op) {
  Shape shape = op.shape(0);
  DType type = op.type(0);
  int64_t axis = op.axis(op.intAttr("axis", 0), op.rank(0)), extent = shape[axis];
  int64_t parts = static_cast<int64_t>(op.numOutputs());
  std::vector<int64_t> sizes;
  if (op.has(1))
    sizes = op.takeInts(1, "the sizes");
  else if (auto given = op.intsAttr("split"))
    sizes = *given;
  if (sizes.empty()) {
    int64_t count = op.intAttr("num_outputs", parts);
    if (count != parts || count < 1)
      op.invalid("num_outputs is " + std::to_string(count) + " with " + std::to_string(parts) + " outputs");
    if (op.version() < 18 && extent % count)
      op.invalid("a dimension of " + std::to_string(extent) + " does not split into " + std::to_string(count));
    int64_t each = ceilDiv(extent, count);
    for (int64_t i = 0; i < count; ++i)
      sizes.push_back(std::clamp<int64_t>(extent - i * each, 0, each));
  }
  int64_t total = 0;
  for (int64_t size : sizes)
    if (size < 0 || !checkedAdd(total, size, total))
      op.invalid("sizes " + text(sizes) + " are not valid");
  if (static_cast<int64_t>(sizes.size()) != parts || total != extent)
    op.invalid("sizes " + text(sizes) + " do not split a dimension of " + std::to_string(extent) + " into " +
               std::to_string(parts) + " outputs");
  int value = op.node.inputs[0];
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (op.wants(i))
      op.alias(i, sliceOf(op, value, type, shape, axis, start, sizes[i], 1));
    start += sizes[i];
  }
}

void inferExpand(OpContext &op) {
  std::vector<int64_t> wanted = op.takeInts(1, "the shape");
  for (int64_t extent : wanted)
    if (extent < 0)
      op.invalid("shape " + text(wanted) + " is not valid");
  Shape to = op.broadcast(op.shape(0), wanted);
  if (to == op.shape(0))
    return op.alias(0, op.node.inputs[0]);
  op.output(0, op.type(0), std::move(to));
}

/// (a, b) repeated (r, s) times: reshape to (1, a, 1, b), expand to (r, a, s, b),
/// reshape to (r a, s b).
void inferTile(OpContext &op) {
  std::vector<int64_t> repeats = op.takeInts(1, "the repeats");
  Shape from = op.shape(0), ones, wide, to;
  DType type = op.type(0);
  if (repeats.size() != from.size())
    op.invalid("repeats " + text(repeats) + " for shape " + text(from));
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t extent = 0;
    if (!checkedMul(repeats[i], from[i], extent))
      op.invalid("repeats " + text(repeats) + " are not valid");
    to.push_back(extent);
    if (repeats[i] != 1) {
      ones.push_back(1);
      wide.push_back(repeats[i]);
    }
    ones.push_back(from[i]);
    wide.push_back(from[i]);
  }
  if (to == from)
    return op.alias(0, op.node.inputs[0]);
  int value = op.emit("Reshape", {op.node.inputs[0]}, {}, type, ones);
  value = op.emit("Expand", {value}, {}, type, wide);
  op.node.inputs = {value};
  op.node.op = "Reshape";
  op.output(0, type, std::move(to));
}

void inferPad(OpContext &op) {
  std::string mode = op.stringAttr("mode", "constant");
  if (mode != "constant")
    op.unsupported("mode = '" + mode + "'");
  Shape shape = op.shape(0);
  std::vector<int64_t> given = op.takeInts(1, "the pads"), axes;
  double value = 0;
  if (op.has(2)) {
    auto known = op.take(2, "the padding value");
    if (known->elements() != 1)
      op.invalid("the padding value is not a scalar");
    value = known->numberAt(0);
  }
  for (size_t i = 0; i < shape.size(); ++i)
    axes.push_back(static_cast<int64_t>(i));
  if (op.has(3))
    axes = op.takeInts(3, "the axes");
  if (given.size() != 2 * axes.size())
    op.invalid("pads " + text(given) + " for " + std::to_string(axes.size()) + " axes");
  std::vector<int64_t> pads(2 * shape.size(), 0);
  int source = op.node.inputs[0];
  DType type = op.type(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t dim = op.axis(axes[i], static_cast<int64_t>(shape.size()));
    int64_t low = given[i], high = given[i + axes.size()];
    int64_t cutLow = std::max<int64_t>(-low, 0), cutHigh = std::max<int64_t>(-high, 0);
    if (cutLow > shape[dim] || cutHigh > shape[dim] - cutLow)
      op.invalid("pads " + text(given) + " remove more than there is");
    source = sliceOf(op, source, type, shape, dim, cutLow, shape[dim] - cutLow - cutHigh, 1);
    shape[dim] -= cutLow + cutHigh;
    pads[dim] = std::max<int64_t>(low, 0);
    pads[dim + shape.size()] = std::max<int64_t>(high, 0);
  }
  if (std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; }))
    return op.alias(0, source);
  for (size_t i = 0; i < shape.size(); ++i)
    if (!checkedAdd(shape[i], pads[i], shape[i]) || !checkedAdd(shape[i], pads[i + shape.size()], shape[i]))
      op.invalid("pads " + text(given) + " are too large");
  op.node.inputs = {source};
  op.node.attributes.clear();
  op.set("pads", pads);
  op.set("value", value);
  op.output(0, type, std::move(shape));
}

void inferShape(OpContext &op) {
  const Shape &shape = op.shape(0);
  int64_t rank = static_cast<int64_t>(shape.size());
  auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = bound(op.intAttr("start", 0)), end = bound(op.intAttr("end", rank));
  op.constant(0, vectorOf(start < end ? std::vector<int64_t>(shape.begin() + start, shape.begin() + end)
                                      : std::vector<int64_t>()));
}
void inferSize(OpContext &op) {
  Constant size = vectorOf({elementCount(op.shape(0))});
  size.shape = {};
  op.constant(0, std::move(size));
}

void inferTrilu(OpContext &op) {
  if (op.rank(0) < 2)
    op.invalid("it needs two dimensions");
  int64_t k = 0;
  if (op.has(1)) {
    std::vector<int64_t> given = op.takeInts(1, "k");
    k = given.size() == 1 ? given[0] : 0;
  }
  int64_t upper = op.intAttr("upper", 1);
  op.node.attributes.clear();
  op.set("upper", upper);
  op.set("k", k);
  op.output(0, op.type(0), op.shape(0));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void evaluateReshape(EvalContext &context) {
  evaluateMove(context, [](int64_t i) { return i; });
}
void evaluateTranspose(EvalContext &context) {
  const std::vector<int64_t> &perm = context.node.intsAttr("perm");
  std::vector<int64_t> from = stridesOf(context.in(0).shape), to = stridesOf(context.out().shape);
  evaluateMove(context, [&](int64_t i) {
    int64_t at = 0;
    for (size_t d = 0; d < perm.size(); ++d) {
      at += i / to[d] * from[perm[d]];
      i %= to[d];
    }
    return at;
  });
}
void evaluateSlice(EvalContext &context) {
  int64_t dim = context.node.intAttr("dim"), start = context.node.intAttr("start"), step = context.node.intAttr("step");
  std::vector<int64_t> from = stridesOf(context.in(0).shape), to = stridesOf(context.out().shape);
  int64_t size = context.out().shape[dim], extent = context.in(0).shape[dim];
  evaluateMove(context, [&](int64_t i) {
    int64_t outer = i / (to[dim] * size), inner = i % to[dim], k = i / to[dim] % size;
    return outer * from[dim] * extent + (start + k * step) * from[dim] + inner;
  });
}
void evaluateConcat(EvalContext &context) {
  int64_t axis = context.node.intAttr("axis"), at = 0;
  Constant &result = context.out();
  std::vector<int64_t> strides = stridesOf(result.shape);
  for (size_t k = 0; k < context.inputs.size(); ++k) {
    const Constant &part = context.in(k);
    int64_t block = part.shape[axis] * strides[axis], whole = result.shape[axis] * strides[axis];
    for (int64_t i = 0, n = part.elements(); i < n; ++i)
      copyElement(result, i / block * whole + at + i % block, part, i);
    at += block;
  }
}
void evaluateExpand(EvalContext &context) {
  BroadcastIndex index(context.in(0).shape, context.out().shape);
  evaluateMove(context, [&](int64_t i) { return index(i); });
}
void evaluatePad(EvalContext &context) {
  const std::vector<int64_t> &pads = context.node.intsAttr("pads");
  Constant &result = context.out();
  Constant fill = scalarOf(result.type, context.node.floatAttr("value"));
  std::vector<int64_t> from = stridesOf(context.in(0).shape), to = stridesOf(result.shape);
  for (int64_t i = 0, n = result.elements(); i < n; ++i) {
    int64_t rest = i, at = 0;
    bool inside = true;
    for (size_t d = 0; d < to.size(); ++d) {
      int64_t position = rest / to[d] - pads[d];
      rest %= to[d];
      inside &= position >= 0 && position < context.in(0).shape[d];
      at += position * from[d];
    }
    copyElement(result, i, inside ? context.in(0) : fill, inside ? at : 0);
  }
}
void evaluateTrilu(EvalContext &context) {
  Constant &result = context.out();
  int64_t columns = result.shape.back(), rows = result.shape[result.shape.size() - 2];
  bool upper = context.node.intAttr("upper");
  Constant zero = scalarOf(result.type, 0);
  for (int64_t i = 0, n = result.elements(); i < n; ++i) {
    int64_t column = i % columns, row = i / columns % rows, k = context.node.intAttr("k");
    bool keeps = upper ? column - row >= k : column - row <= k;
    copyElement(result, i, keeps ? context.in(0) : zero, keeps ? i : 0);
  }
}

} // namespace

void addShapeRules(OpTable &table) {
  constexpr uint32_t moves = OpRule::Moves;
  table["Reshape"] = {5, 1, 2, 1, {"allowzero"}, inferReshape, evaluateReshape, moves};
  table["Flatten"] = {1, 1, 1, 1, {"axis"}, inferFlatten};
  table["Squeeze"] = {1, 1, 2, 1, {"axes"}, inferSqueeze};
  table["Unsqueeze"] = {1, 1, 2, 1, {"axes"}, inferUnsqueeze};
  table["Transpose"] = {1, 1, 1, 1, {"perm"}, inferTranspose, evaluateTranspose, moves};
  table["Concat"] = {4, 1, kAnyNumber, 1, {"axis"}, inferConcat, evaluateConcat};
  table["Slice"] = {10, 3, 5, 1, {}, inferSlice};
  table["Split"] = {2, 1, 2, kAnyNumber, {"axis", "split", "num_outputs"}, inferSplit};
  table["Expand"] = {8, 2, 2, 1, {}, inferExpand, evaluateExpand, moves};
  table["Tile"] = {6, 2, 2, 1, {}, inferTile};
  table["Pad"] = {11, 2, 4, 1, {"mode"}, inferPad, evaluatePad};
  table["Shape"] = {1, 1, 1, 1, {"start", "end"}, inferShape};
  table["Size"] = {1, 1, 1, 1, {}, inferSize};
  table["Trilu"] = {14, 1, 2, 1, {"upper"}, inferTrilu, evaluateTrilu};
  table["mtp.slice"] = {INT64_MAX, 1, 1, 1, {}, nullptr, evaluateSlice, moves};
}

} // namespace mtp::onnx
