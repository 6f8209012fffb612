// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsShape.cpp - operators that move whole blocks --------------------===//

#include "compiler/frontend/onnx/TensorReader.h"
#include "compiler/frontend/onnx/import/Importer.h"
#include "runtime/support/Checked.h"

#include <limits>

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

namespace {
void shape(NodeContext &n) {
  int64_t rank = n.rank(0);
  auto clampTo = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  int64_t start = clampTo(n.intAttr("start", 0)),
          end = clampTo(n.intAttr("end", rank));
  std::vector<int64_t> dims;
  for (int64_t dim = start; dim < end; ++dim)
    dims.push_back(n.shape(0)[dim]);
  n.outConstant(0, vectorOf(dims));
}

void size(NodeContext &n) {
  n.outConstant(
      0, scalarOf(DType::I64, static_cast<double>(elementCount(n.shape(0)))));
}

/// A known value keeps its elements in the new shape.
void outReshaped(NodeContext &n, const Shape &shape) {
  int64_t count;
  if (!checkedProduct(shape, count) || count != elementCount(n.shape(0)))
    n.invalid("cannot reshape " + text(n.shape(0)) + " to " + text(shape));
  if (auto constant = n.in(0)->constant) {
    Constant result = *constant;
    result.shape = shape;
    return n.outConstant(0, std::move(result));
  }
  n.out(0, n.emit.reshape(n.value(0), shape));
}

void reshape(NodeContext &n) {
  std::vector<int64_t> target = n.ints(1, "the new shape");
  bool allowZero = n.intAttr("allowzero", 0) != 0;
  int64_t known = 1, free = -1;
  for (size_t dim = 0; dim < target.size(); ++dim) {
    if (target[dim] == 0 && !allowZero) {
      if (static_cast<int64_t>(dim) >= n.rank(0))
        n.invalid("dimension " + std::to_string(dim) +
                  " copies one that the input does not have");
      target[dim] = n.shape(0)[dim];
    }
    if (target[dim] == -1) {
      if (free >= 0)
        n.invalid("two dimensions are -1");
      free = static_cast<int64_t>(dim);
    } else if (!checkedMul(known, target[dim], known)) {
      n.invalid("the new shape " + text(target) + " is out of range");
    }
  }
  if (free >= 0) {
    if (known == 0 || elementCount(n.shape(0)) % known != 0)
      n.invalid("cannot reshape " + text(n.shape(0)) + " to " + text(target));
    target[free] = elementCount(n.shape(0)) / known;
  }
  outReshaped(n, target);
}

void flatten(NodeContext &n) {
  int64_t axis = n.intAttr("axis", 1), rank = n.rank(0);
  if (axis < -rank || axis > rank)
    n.invalid("axis " + std::to_string(axis) + " is out of range");
  axis = axis < 0 ? axis + rank : axis;
  Shape shape{1, 1};
  for (int64_t dim = 0; dim < rank; ++dim)
    shape[dim < axis ? 0 : 1] *= n.shape(0)[dim];
  outReshaped(n, shape);
}

std::optional<std::vector<int64_t>> axesOf(NodeContext &n) {
  if (n.has(1))
    return n.ints(1, "the axes");
  return n.intsAttr("axes");
}

void squeeze(NodeContext &n) {
  Shape result;
  auto given = axesOf(n);
  std::vector<int64_t> axes =
      given ? n.axes(*given, n.rank(0)) : std::vector<int64_t>();
  for (int64_t dim = 0; dim < n.rank(0); ++dim) {
    int64_t extent = n.shape(0)[dim];
    bool named = llvm::is_contained(axes, dim);
    if (named && extent != 1)
      n.invalid("dimension " + std::to_string(dim) + " has size " +
                std::to_string(extent) + ", not 1");
    if (given ? !named : extent != 1)
      result.push_back(extent);
  }
  outReshaped(n, result);
}

void unsqueeze(NodeContext &n) {
  auto given = axesOf(n);
  if (!given)
    n.invalid("no axes are given");
  Shape result = n.shape(0);
  for (int64_t axis :
       n.axes(*given, n.rank(0) + static_cast<int64_t>(given->size())))
    result.insert(result.begin() + axis, 1);
  outReshaped(n, result);
}

void transpose(NodeContext &n) {
  std::vector<int64_t> perm;
  for (int64_t dim = n.rank(0); dim-- > 0;)
    perm.push_back(dim);
  if (auto given = n.intsAttr("perm"))
    perm = *given;
  if (n.axes(perm, n.rank(0)).size() != static_cast<size_t>(n.rank(0)))
    n.invalid("perm does not have one entry a dimension");
  for (int64_t &dim : perm)
    dim = n.axis(dim, n.rank(0));
  n.out(0, n.emit.transpose(n.value(0), perm));
}

/// The result must be one that can exist.
void checkSize(NodeContext &n, const Shape &shape) {
  int64_t count, bytes;
  if (!checkedProduct(shape, count) || !checkedMul(count, 8, bytes) ||
      bytes > (int64_t(1) << 46))
    n.invalid("a tensor of shape " + text(shape) + " is too large");
}

void outBroadcast(NodeContext &n, const Shape &shape) {
  checkSize(n, shape);
  auto constant = n.in(0)->constant;
  if (constant && (constant->splat || constant->elements() == 1)) {
    Constant result = *constant;
    result.shape = shape;
    result.splat = true;
    return n.outConstant(0, std::move(result));
  }
  n.out(0, n.emit.broadcast(n.value(0), shape));
}

void expand(NodeContext &n) {
  std::vector<int64_t> target = n.ints(1, "the new shape");
  for (int64_t extent : target)
    if (extent < 0)
      n.invalid("the new shape has " + std::to_string(extent) +
                "; write 1 to keep a dimension");
  outBroadcast(n, broadcastShapes(n.shape(0), target));
}

void tile(NodeContext &n) {
  std::vector<int64_t> repeats = n.ints(1, "the repeats");
  if (static_cast<int64_t>(repeats.size()) != n.rank(0))
    n.invalid("repeats do not have one entry a dimension");
  Shape narrow, wide, merged;
  for (int64_t dim = 0; dim < n.rank(0); ++dim) {
    int64_t extent = n.shape(0)[dim];
    if (repeats[dim] < 0 || !checkedMul(repeats[dim], extent, extent))
      n.invalid("repeats are out of range");
    narrow.insert(narrow.end(), {1, n.shape(0)[dim]});
    wide.insert(wide.end(), {repeats[dim], n.shape(0)[dim]});
    merged.push_back(extent);
  }
  checkSize(n, merged);
  Emit &e = n.emit;
  n.out(0, e.reshape(e.broadcast(e.reshape(n.value(0), narrow), wide), merged));
}

void concat(NodeContext &n) {
  int64_t axis = n.axis(n.intAttr("axis", 0), n.rank(0));
  SmallVector<Value> values;
  for (size_t i = 0; i < n.numInputs(); ++i) {
    if (n.type(i) != n.type(0) || n.rank(i) != n.rank(0))
      n.invalid("inputs differ in type or rank");
    for (int64_t dim = 0; dim < n.rank(0); ++dim)
      if (dim != axis && n.shape(i)[dim] != n.shape(0)[dim])
        n.invalid("shapes " + text(n.shape(0)) + " and " + text(n.shape(i)) +
                  " differ beside axis " + std::to_string(axis));
    if (n.shape(i)[axis] != 0 || n.numInputs() == 1)
      values.push_back(n.value(i));
  }
  if (values.empty())
    values.push_back(n.value(0));
  n.out(0, n.emit.concat(axis, values));
}

struct SliceDim {
  int64_t dim, start, size, step;
};

/// Start, end and step with numpy's clamping.
SliceDim clampSlice(int64_t dim, int64_t extent, int64_t start, int64_t end,
                    int64_t step) {
  auto bound = [&](int64_t at) {
    return at < 0 ? (at < -extent ? int64_t(-1) : at + extent)
                  : std::min(at, extent);
  };
  step = std::clamp(step, -std::max<int64_t>(extent, 1),
                    std::max<int64_t>(extent, 1));
  if (step > 0) {
    start = std::max<int64_t>(bound(start), 0);
    end = std::max<int64_t>(bound(end), 0);
    return {dim, std::min(start, std::max<int64_t>(extent - 1, 0)),
            end > start ? ceilDiv(end - start, step) : 0, step};
  }
  start = std::min(bound(start), extent - 1);
  end = end < -extent ? -1 : std::min(bound(end), extent - 1);
  return {dim, std::max<int64_t>(start, 0),
          start > end ? ceilDiv(start - end, -step) : 0, step};
}

void slice(NodeContext &n) {
  std::vector<int64_t> starts = n.ints(1, "the starts"),
                       ends = n.ints(2, "the ends"), axes, steps;
  for (size_t i = 0; i < starts.size(); ++i)
    axes.push_back(static_cast<int64_t>(i));
  if (n.has(3))
    axes = n.ints(3, "the axes");
  steps.assign(starts.size(), 1);
  if (n.has(4))
    steps = n.ints(4, "the steps");
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size())
    n.invalid("starts, ends, axes and steps have different lengths");
  Value x = n.value(0);
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t dim = n.axis(axes[i], n.rank(0));
    if (steps[i] == 0)
      n.invalid("a step is zero");
    SliceDim s = clampSlice(dim, shapeOf(x)[dim], starts[i], ends[i], steps[i]);
    x = n.emit.slice(x, dim, s.start, s.size, s.step);
  }
  n.out(0, x);
}

void split(NodeContext &n) {
  int64_t axis = n.axis(n.intAttr("axis", 0), n.rank(0)),
          extent = n.shape(0)[axis];
  std::vector<int64_t> sizes;
  if (n.has(1))
    sizes = n.ints(1, "the sizes");
  else if (auto given = n.intsAttr("split"))
    sizes = *given;
  if (sizes.empty()) {
    int64_t parts =
        n.intAttr("num_outputs", static_cast<int64_t>(n.numOutputs()));
    if (parts < 1)
      n.invalid("it is split into no parts");
    int64_t part = ceilDiv(extent, parts);
    for (int64_t i = 0; i < parts; ++i)
      sizes.push_back(std::max<int64_t>(0, std::min(part, extent - i * part)));
  }
  int64_t at = 0;
  Value x = n.value(0);
  if (sizes.size() < n.numOutputs())
    n.invalid("it has more outputs than parts");
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > extent - at)
      n.invalid("the sizes do not add up to " + std::to_string(extent));
    if (i < n.numOutputs())
      n.out(i, n.emit.slice(x, axis, sizes[i] ? at : 0, sizes[i]));
    at += sizes[i];
  }
  if (at != extent)
    n.invalid("the sizes do not add up to " + std::to_string(extent));
}

/// Pads one dimension with elements of the tensor itself.
Value padByItself(NodeContext &n, Value x, int64_t dim, int64_t before,
                  int64_t after, const std::string &mode) {
  Emit &e = n.emit;
  int64_t extent = shapeOf(x)[dim], most = mode == "edge"   ? INT64_MAX
                                           : mode == "wrap" ? extent
                                                            : extent - 1;
  if (extent < 1 || before > most || after > most)
    n.unsupported("mode '" + mode + "' with pads larger than the dimension");
  auto repeated = [&](int64_t at, int64_t count) {
    Shape shape(shapeOf(x).begin(), shapeOf(x).end());
    shape[dim] = count;
    return e.broadcast(e.slice(x, dim, at, 1), shape);
  };
  SmallVector<Value> parts;
  if (before > 0)
    parts.push_back(mode == "edge"   ? repeated(0, before)
                    : mode == "wrap" ? e.slice(x, dim, extent - before, before)
                                     : e.slice(x, dim, before, before, -1));
  parts.push_back(x);
  if (after > 0)
    parts.push_back(mode == "edge"   ? repeated(extent - 1, after)
                    : mode == "wrap" ? e.slice(x, dim, 0, after)
                                     : e.slice(x, dim, extent - 2, after, -1));
  return e.concat(dim, parts);
}

void pad(NodeContext &n) {
  std::string mode = n.stringAttr("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" &&
      mode != "wrap")
    n.invalid("mode is '" + mode + "'");
  std::vector<int64_t> pads = n.ints(1, "the pads"), axes;
  for (int64_t dim = 0; dim < n.rank(0); ++dim)
    axes.push_back(dim);
  if (n.has(3)) {
    axes = n.ints(3, "the axes");
    for (int64_t &axis : axes)
      axis = n.axis(axis, n.rank(0));
  }
  if (pads.size() != 2 * axes.size())
    n.invalid("pads do not have two entries an axis");
  double value = n.has(2) && n.in(2)->type != DType::Bool
                     ? n.known(2, "the padding value")->numberAt(0)
                     : 0;
  Value x = n.value(0);
  std::vector<int64_t> low(n.rank(0), 0), high(n.rank(0), 0);
  Shape result = n.shape(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t dim = axes[i], before = pads[i], after = pads[i + axes.size()];
    if (before < 0 || after < 0) { // takes away
      int64_t start = std::max<int64_t>(0, -before),
              size = result[dim] - start - std::max<int64_t>(0, -after);
      if (size < 0)
        n.invalid("negative pads take away more than there is");
      x = n.emit.slice(x, dim, size ? start : 0, size);
      result[dim] = size;
    }
    before = std::max<int64_t>(0, before);
    after = std::max<int64_t>(0, after);
    if (!checkedAdd(result[dim], before, result[dim]) ||
        !checkedAdd(result[dim], after, result[dim]))
      n.invalid("pads are out of range");
    checkSize(n, result);
    if (mode == "constant") {
      low[dim] = before;
      high[dim] = after;
    } else {
      x = padByItself(n, x, dim, before, after, mode);
    }
  }
  checkSize(n, result);
  if (llvm::equal(shapeOf(x), result))
    return n.out(0, x);
  Emit &e = n.emit;
  n.out(0, PadOp::create(e.b(), e.loc, e.type(result, elementOf(x)), x,
                         APFloat(value), e.b().getDenseI64ArrayAttr(low),
                         e.b().getDenseI64ArrayAttr(high)));
}

void constantOp(NodeContext &n) {
  if (const mtp::onnx::Attribute *value = n.attr("value");
      value && value->tensor) {
    EntryRef entry =
        n.importer.tensorEntry(*value->tensor, n.node.outputs[0], false);
    if (entry->unknown)
      n.unsupported("a constant of type " + value->tensor->foreignType);
    return n.outAlias(0, entry);
  }
  DType floatType = n.importer.effective(DType::F32);
  Constant result;
  if (const mtp::onnx::Attribute *a = n.attr("value_int"))
    result = scalarOf(DType::I64, 0), result.ints[0] = a->i;
  else if (const mtp::onnx::Attribute *a = n.attr("value_float"))
    result = scalarOf(floatType, a->f);
  else if (const mtp::onnx::Attribute *a = n.attr("value_ints"))
    result = vectorOf(a->ints);
  else if (const mtp::onnx::Attribute *a = n.attr("value_floats")) {
    result.type = floatType;
    result.shape = {static_cast<int64_t>(a->floats.size())};
    result.floats = a->floats;
  } else {
    n.unsupported("a constant that is neither a tensor nor numbers");
  }
  n.outConstant(0, std::move(result));
}

void constantOfShape(NodeContext &n) {
  Constant result = scalarOf(n.importer.effective(DType::F32), 0);
  if (const mtp::onnx::Attribute *value = n.attr("value");
      value && value->tensor)
    result = load(*value->tensor, n.importer.effective(value->tensor->type));
  result.shape = n.ints(0, "the shape");
  for (int64_t extent : result.shape)
    if (extent < 0)
      n.invalid("the shape " + text(result.shape) + " is negative");
  checkSize(n, result.shape);
  result.splat = true;
  n.outConstant(0, std::move(result));
}

/// start, start + delta, .. below limit.
void range(NodeContext &n) {
  auto start = n.known(0, "the start"), limit = n.known(1, "the limit"),
       delta = n.known(2, "the step");
  double step = delta->numberAt(0),
         span = limit->numberAt(0) - start->numberAt(0);
  if (step == 0)
    n.invalid("the step is zero");
  int64_t count =
      std::max<int64_t>(0, static_cast<int64_t>(std::ceil(span / step)));
  if (count > (int64_t(1) << 24))
    n.invalid("it has " + std::to_string(count) + " elements");
  Constant result;
  result.type = n.type(0);
  result.shape = {count};
  result.resize();
  for (int64_t i = 0; i < count; ++i) {
    if (result.holdsFloats())
      result.floats[i] = start->numberAt(0) + static_cast<double>(i) * step;
    else
      result.ints[i] = start->intAt(0) + i * delta->intAt(0);
  }
  result.normalize();
  n.outConstant(0, std::move(result));
}

/// A triangle: elements with column - row ≥ k (upper) or ≤ k (lower) stay.
void trilu(NodeContext &n) {
  Emit &e = n.emit;
  if (n.rank(0) < 2)
    n.invalid("the input has fewer than two dimensions");
  int64_t k = n.has(1) ? n.ints(1, "the diagonal").at(0) : 0;
  int64_t rows = n.shape(0)[n.rank(0) - 2], columns = n.shape(0)[n.rank(0) - 1];
  Type i64 = e.b().getI64Type();
  Value row = e.binary<AddOp>(e.iota({rows, 1}, 0, i64),
                              e.scalar(i64, static_cast<double>(k)));
  Value column = e.iota({1, columns}, 1, i64);
  bool upper = n.intAttr("upper", 1) != 0;
  Value keep = upper ? e.compare(Compare::ge, column, row)
                     : e.compare(Compare::le, column, row);
  Value x = n.value(0);
  if (elementOf(x).isInteger(1))
    return n.out(0, e.binary<AndOp>(x, keep));
  n.out(0, e.select(keep, x, e.scalar(elementOf(x), 0)));
}

void eyeLike(NodeContext &n) {
  Emit &e = n.emit;
  if (n.rank(0) != 2)
    n.invalid("the input has rank " + std::to_string(n.rank(0)) +
              ", expected 2");
  DType type = n.type(0);
  if (n.hasAttr("dtype") && !dtypeOf(n.intAttr("dtype", 0), type))
    n.unsupported("element type " + foreignName(n.intAttr("dtype", 0)));
  Type i64 = e.b().getI64Type();
  Value row =
      e.binary<AddOp>(e.iota({n.shape(0)[0], 1}, 0, i64),
                      e.scalar(i64, static_cast<double>(n.intAttr("k", 0))));
  Value equal = e.compare(Compare::eq, e.iota({1, n.shape(0)[1]}, 1, i64), row);
  n.out(0, e.convert(equal, elementType(e.b().getContext(),
                                        n.importer.effective(type))));
}
} // namespace

void mtp::onnx::addShapeOps(OpTable &table) {
  table["Shape"] = {shape, 1, 1, {"start", "end"}};
  table["Size"] = {size};
  table["Reshape"] = {reshape, 5, 2, {"allowzero"}};
  table["Flatten"] = {flatten, 1, 1, {"axis"}};
  table["Squeeze"] = {squeeze, 1, 1, {"axes"}};
  table["Unsqueeze"] = {unsqueeze, 1, 1, {"axes"}};
  table["Transpose"] = {transpose, 1, 1, {"perm"}};
  table["Expand"] = {expand, 8, 2};
  table["Tile"] = {tile, 6, 2};
  table["Concat"] = {concat, 4, 1, {"axis"}};
  table["Slice"] = {slice, 10, 3};
  table["Split"] = {split, 2, 1, {"axis", "split", "num_outputs"}};
  table["Pad"] = {pad, 11, 2, {"mode"}};
  table["Constant"] = {
      constantOp,
      1,
      0,
      {"value", "value_int", "value_ints", "value_float", "value_floats"}};
  table["ConstantOfShape"] = {constantOfShape, 9, 1, {"value"}};
  table["Range"] = {range, 11, 3};
  table["Trilu"] = {trilu, 14, 1, {"upper"}};
  table["EyeLike"] = {eyeLike, 9, 1, {"k", "dtype"}};
}
