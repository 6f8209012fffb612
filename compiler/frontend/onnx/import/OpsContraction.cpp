// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsContraction.cpp - products, Einsum, convolution -----------------===//

#include "compiler/frontend/onnx/import/Importer.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

namespace {
void checkProductTypes(NodeContext &n) {
  for (size_t i = 1; i < n.numInputs(); ++i)
    if (n.has(i) && n.type(i) != n.type(0))
      n.invalid(std::string("operands are of types ") + name(n.type(0)) +
                " and " + name(n.type(i)));
}

void matMul(NodeContext &n) {
  Emit &e = n.emit;
  checkProductTypes(n);
  if (n.rank(0) == 0 || n.rank(1) == 0)
    n.invalid("an operand is a scalar");
  Value a = n.value(0), b = n.value(1);
  bool rowVector = n.rank(0) == 1, columnVector = n.rank(1) == 1;
  if (rowVector)
    a = e.unsqueeze(a, 0);
  if (columnVector)
    b = e.unsqueeze(b, 1);
  Value result = e.matmul(a, b);
  Shape shape(shapeOf(result).begin(), shapeOf(result).end());
  if (columnVector)
    shape.pop_back();
  if (rowVector)
    shape.erase(shape.end() - (columnVector ? 1 : 2));
  n.out(0, e.reshape(result, shape));
}

/// alpha · A B + beta · C.
void gemm(NodeContext &n) {
  Emit &e = n.emit;
  checkProductTypes(n);
  if (n.rank(0) != 2 || n.rank(1) != 2)
    n.invalid("operands have rank " + std::to_string(n.rank(0)) + " and " +
              std::to_string(n.rank(1)) + ", expected 2");
  Value result = e.matmul(n.value(0), n.value(1), n.intAttr("transA", 0) != 0,
                          n.intAttr("transB", 0) != 0);
  auto scaled = [&](Value x, double factor) {
    return factor == 1 ? x : e.binary<MulOp>(x, e.scalar(elementOf(x), factor));
  };
  result = scaled(result, n.floatAttr("alpha", 1));
  double beta = n.floatAttr("beta", 1);
  if (n.has(2) && beta != 0)
    result = e.binary<AddOp>(result, scaled(n.value(2), beta));
  n.out(0, result);
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

/// Labels of one operand; an ellipsis becomes upper labels from the right, as
/// characters 1, 2, ...
std::string labelsOf(NodeContext &n, std::string text, int64_t rank) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  size_t dots = text.find("...");
  if (dots != std::string::npos) {
    int64_t more = rank - static_cast<int64_t>(text.size() - 3);
    if (more < 0 || more > 8)
      n.invalid("the equation does not fit the operands");
    std::string extra;
    for (int64_t i = more; i > 0; --i)
      extra += static_cast<char>(i);
    text = text.substr(0, dots) + extra + text.substr(dots + 3);
  }
  if (static_cast<int64_t>(text.size()) != rank)
    n.invalid("the equation does not fit the operands");
  for (size_t i = 0; i < text.size(); ++i)
    if (text.find(text[i], i + 1) != std::string::npos)
      n.unsupported("a diagonal (a repeated label)");
  return text;
}

struct Labelled {
  Value value;
  std::string labels;
};

/// Sums over labels that nothing else needs.
void sumAway(Emit &e, Labelled &x, const std::string &needed) {
  std::vector<int64_t> dims;
  std::string rest;
  for (size_t i = 0; i < x.labels.size(); ++i)
    if (needed.find(x.labels[i]) == std::string::npos)
      dims.push_back(static_cast<int64_t>(i));
    else
      rest += x.labels[i];
  if (!dims.empty())
    x = {e.reduce<ReduceSumOp>(x.value, dims, false), rest};
}

Value permuted(Emit &e, const Labelled &x, const std::string &order) {
  std::vector<int64_t> perm;
  for (char label : order)
    perm.push_back(static_cast<int64_t>(x.labels.find(label)));
  return e.transpose(x.value, perm);
}

/// One product: labels of both are batch (in the result) or contracted.
Labelled contract(Emit &e, const Labelled &a, const Labelled &b,
                  const std::string &needed) {
  std::string batch, rows, columns, contracted;
  for (char label : a.labels) {
    bool both = b.labels.find(label) != std::string::npos,
         kept = needed.find(label) != std::string::npos;
    (both ? (kept ? batch : contracted) : rows) += label;
  }
  for (char label : b.labels)
    if (a.labels.find(label) == std::string::npos)
      columns += label;
  Shape shape;
  auto extent = [&](char label) {
    size_t at = a.labels.find(label);
    int64_t x = at == std::string::npos ? 1 : shapeOf(a.value)[at];
    at = b.labels.find(label);
    return std::max(x, at == std::string::npos ? int64_t(1)
                                               : shapeOf(b.value)[at]);
  };
  auto product = [&](const std::string &labels) {
    int64_t result = 1;
    for (char label : labels)
      result *= extent(label);
    return result;
  };
  Shape batchShape;
  for (char label : batch)
    batchShape.push_back(extent(label));
  auto matrix = [&](const Labelled &x, const std::string &order, int64_t m,
                    int64_t k) {
    Value value = permuted(e, x, order);
    Shape full;
    for (char label : order)
      full.push_back(extent(label));
    value = e.broadcast(value, full);
    Shape result = batchShape;
    result.insert(result.end(), {m, k});
    return e.reshape(value, result);
  };
  int64_t m = product(rows), k = product(contracted), c = product(columns);
  Value result = e.matmul(matrix(a, batch + rows + contracted, m, k),
                          matrix(b, batch + contracted + columns, k, c));
  for (char label : batch + rows + columns)
    shape.push_back(extent(label));
  return {e.reshape(result, shape), batch + rows + columns};
}

void einsum(NodeContext &n) {
  Emit &e = n.emit;
  checkProductTypes(n);
  std::string equation = n.stringAttr("equation", "");
  size_t arrow = equation.find("->");
  std::vector<Labelled> operands;
  std::string left = equation.substr(0, arrow), part;
  std::vector<std::string> parts;
  for (char c : left + ",")
    if (c == ',')
      parts.push_back(part), part.clear();
    else
      part += c;
  if (parts.size() != n.numInputs())
    n.invalid("the equation has " + std::to_string(parts.size()) + " operands");
  std::map<char, int> count;
  std::string ellipsis;
  for (size_t i = 0; i < parts.size(); ++i) {
    operands.push_back({n.value(i), labelsOf(n, parts[i], n.rank(i))});
    for (char label : operands.back().labels) {
      ++count[label];
      if (label < 16 && ellipsis.find(label) == std::string::npos)
        ellipsis = label + ellipsis;
    }
  }
  std::sort(ellipsis.rbegin(), ellipsis.rend());
  std::string output;
  if (arrow == std::string::npos) {
    output = ellipsis;
    for (auto [label, times] : count)
      if (label >= 16 && times == 1)
        output += label;
  } else {
    for (char c : equation.substr(arrow + 2))
      if (c != ' ')
        output += c;
    if (size_t dots = output.find("..."); dots != std::string::npos)
      output = output.substr(0, dots) + ellipsis + output.substr(dots + 3);
  }
  for (char label : output)
    if (!count.count(label))
      n.invalid("the result has a label that no operand has");
  Labelled result = operands[0];
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string needed = output;
    for (size_t later = i + 1; later < operands.size(); ++later)
      needed += operands[later].labels;
    if (i == 0) {
      sumAway(e, result, needed);
      continue;
    }
    sumAway(e, operands[i], needed + result.labels);
    result = contract(e, result, operands[i], needed);
  }
  n.out(0, permuted(e, result, output));
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

struct ConvolutionShape {
  std::vector<int64_t> strides, dilations, pads;
};

ConvolutionShape convolutionShape(NodeContext &n) {
  int64_t spatial = n.rank(0) - 2;
  auto ones = std::vector<int64_t>(spatial, 1);
  ConvolutionShape c{
      n.intsAttr("strides").value_or(ones),
      n.intsAttr("dilations").value_or(ones),
      n.intsAttr("pads").value_or(std::vector<int64_t>(2 * spatial, 0))};
  if (static_cast<int64_t>(c.strides.size()) != spatial ||
      static_cast<int64_t>(c.dilations.size()) != spatial ||
      static_cast<int64_t>(c.pads.size()) != 2 * spatial)
    n.invalid("strides, dilations or pads do not fit " +
              std::to_string(spatial) + " spatial dimensions");
  std::string automatic = n.stringAttr("auto_pad", "NOTSET");
  for (int64_t i = 0; i < spatial && automatic != "NOTSET"; ++i) {
    c.pads[i] = c.pads[i + spatial] = 0;
    if (automatic == "VALID")
      continue;
    int64_t extent = n.shape(0)[i + 2],
            window = c.dilations[i] * (n.shape(1)[i + 2] - 1) + 1;
    int64_t results = (extent + c.strides[i] - 1) / c.strides[i];
    int64_t total =
        std::max<int64_t>(0, (results - 1) * c.strides[i] + window - extent);
    c.pads[automatic == "SAME_UPPER" ? i : i + spatial] = total / 2;
    c.pads[automatic == "SAME_UPPER" ? i + spatial : i] = total - total / 2;
  }
  return c;
}

/// Windows that lie side by side: a product of patches, which can be split like
/// any other.
Value convolvePatches(NodeContext &n, const ConvolutionShape &c) {
  Emit &e = n.emit;
  int64_t spatial = n.rank(0) - 2, channels = n.shape(0)[1],
          filters = n.shape(1)[0];
  Shape cut{n.shape(0)[0], channels}, rows{n.shape(0)[0]},
      result{n.shape(0)[0]};
  std::vector<int64_t> perm{0}, back{0, spatial + 1};
  int64_t window = channels;
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t k = n.shape(1)[i + 2];
    cut.insert(cut.end(), {n.shape(0)[i + 2] / k, k});
    rows.push_back(n.shape(0)[i + 2] / k);
    perm.push_back(2 + 2 * i);
    back.push_back(1 + i);
    window *= k;
  }
  (void)c;
  perm.push_back(1);
  for (int64_t i = 0; i < spatial; ++i)
    perm.push_back(3 + 2 * i);
  rows.push_back(window);
  Value patches =
      e.reshape(e.transpose(e.reshape(n.value(0), cut), perm), rows);
  Value filter = e.transpose(e.reshape(n.value(1), {filters, window}), {1, 0});
  return e.transpose(e.matmul(patches, filter), back);
}

void conv(NodeContext &n) {
  Emit &e = n.emit;
  checkProductTypes(n);
  if (n.rank(0) < 3 || n.rank(1) != n.rank(0))
    n.invalid("input and filter have rank " + std::to_string(n.rank(0)) +
              " and " + std::to_string(n.rank(1)));
  int64_t spatial = n.rank(0) - 2, groups = n.intAttr("group", 1);
  if (auto kernel = n.intsAttr("kernel_shape");
      kernel && !std::equal(kernel->begin(), kernel->end(),
                            n.shape(1).begin() + 2, n.shape(1).end()))
    n.invalid("kernel_shape is not that of the filter");
  if (groups < 1 || n.shape(0)[1] != n.shape(1)[1] * groups ||
      n.shape(1)[0] % groups != 0)
    n.invalid("channels do not fit " + std::to_string(groups) + " groups");
  ConvolutionShape c = convolutionShape(n);
  bool patches = groups == 1;
  Shape shape{n.shape(0)[0], n.shape(1)[0]};
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t extent = n.shape(0)[i + 2], k = n.shape(1)[i + 2];
    int64_t window = c.dilations[i] * (k - 1) + 1,
            padded = extent + c.pads[i] + c.pads[i + spatial];
    if (c.strides[i] < 1 || c.dilations[i] < 1 || c.pads[i] < 0 ||
        c.pads[i + spatial] < 0 || padded < window)
      n.invalid("window, strides or pads are out of range");
    shape.push_back((padded - window) / c.strides[i] + 1);
    patches &= c.strides[i] == k && c.dilations[i] == 1 && padded == extent &&
               extent % k == 0;
  }
  Value result;
  if (patches) {
    result = convolvePatches(n, c);
  } else {
    Value x = n.value(0);
    result = ConvolutionOp::create(e.b(), e.loc, e.type(shape, elementOf(x)), x,
                                   n.value(1), c.strides, c.pads, c.dilations,
                                   groups);
  }
  if (n.has(2)) {
    Shape bias(n.rank(0) - 1, 1);
    bias[0] = n.shape(1)[0];
    result = e.binary<AddOp>(result, e.reshape(n.value(2), bias));
  }
  n.out(0, result);
}
} // namespace

void mtp::onnx::addContractionOps(OpTable &table) {
  table["MatMul"] = {matMul, 1, 2};
  table["Gemm"] = {gemm, 1, 2, {"alpha", "beta", "transA", "transB"}};
  table["Einsum"] = {einsum, 12, 1, {"equation"}};
  table["Conv"] = {
      conv,
      1,
      2,
      {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}};
}
