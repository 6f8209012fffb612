// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsContraction.cpp - products, einsum, convolution ------------------===//
//
// Normal forms: MatMul: operands of rank 2 or more. Gemm: alpha, beta, transA,
// transB. Einsum: equation with an explicit result, single letters, no blanks and
// no ellipsis. Conv: strides, pads, dilations, group.
//
//===----------------------------------------------------------------------===//
#include "compiler/frontend/onnx/OpContext.h"

#include <algorithm>

namespace mtp::onnx {

namespace {

void inferMatMul(OpContext &op) {
  op.sameTypes();
  Shape a = op.shape(0), b = op.shape(1);
  DType type = op.type(0);
  if (a.empty() || b.empty())
    op.invalid("an operand is a scalar");
  bool row = a.size() == 1, column = b.size() == 1;
  if (row)
    a.insert(a.begin(), 1);
  if (column)
    b.push_back(1);
  if (a.back() != b[b.size() - 2])
    op.invalid("shapes " + text(op.shape(0)) + " and " + text(op.shape(1)) + " do not multiply");
  Shape result = op.broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  result.push_back(a[a.size() - 2]);
  result.push_back(b.back());
  if (!row && !column)
    return op.output(0, type, std::move(result));
  int left = op.node.inputs[0], right = op.node.inputs[1];
  if (row)
    left = op.emit("Reshape", {left}, {}, type, a);
  if (column)
    right = op.emit("Reshape", {right}, {}, type, b);
  int product = op.emit("MatMul", {left, right}, {}, type, result);
  if (column)
    result.pop_back();
  if (row)
    result.erase(result.end() - (column ? 1 : 2));
  op.node.op = "Reshape";
  op.node.inputs = {product};
  op.output(0, type, std::move(result));
}

void inferGemm(OpContext &op) {
  op.sameTypes();
  op.checkRank(0, 2, "A");
  op.checkRank(1, 2, "B");
  bool transA = op.intAttr("transA", 0), transB = op.intAttr("transB", 0);
  int64_t m = op.shape(0)[transA], k = op.shape(0)[!transA], n = op.shape(1)[!transB];
  if (op.shape(1)[transB] != k)
    op.invalid("shapes " + text(op.shape(0)) + " and " + text(op.shape(1)) + " do not multiply");
  Shape result = {m, n};
  if (op.has(2) && op.broadcast(op.shape(2), result) != result)
    op.invalid("C of shape " + text(op.shape(2)) + " does not broadcast to " + text(result));
  double alpha = op.floatAttr("alpha", 1), beta = op.floatAttr("beta", 1);
  op.set("alpha", alpha);
  op.set("beta", beta);
  op.output(0, op.type(0), std::move(result));
}

/// The terms of an equation; an ellipsis becomes capital letters from the right.
struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

std::string expandEllipsis(const OpContext &op, const std::string &term, int64_t rank) {
  size_t at = term.find("...");
  if (at == std::string::npos)
    return term;
  int64_t count = rank < 0 ? 0 : rank - static_cast<int64_t>(term.size() - 3);
  if (count < 0 || count > 20)
    op.invalid("the equation does not fit its operands");
  std::string letters;
  for (int64_t i = count; i-- > 0;)
    letters += static_cast<char>('A' + i);
  return term.substr(0, at) + letters + term.substr(at + 3);
}

Equation parseEquation(const OpContext &op) {
  std::string equation = op.stringAttr("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  Equation parsed;
  size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  for (size_t at = 0; at <= left.size();) {
    size_t comma = std::min(left.find(',', at), left.size());
    parsed.terms.push_back(left.substr(at, comma - at));
    at = comma + 1;
  }
  if (parsed.terms.size() != op.numInputs())
    op.invalid("the equation '" + equation + "' does not fit its operands");
  size_t most = 0;
  std::string dots;
  for (size_t i = 0; i < parsed.terms.size(); ++i) {
    for (char c : parsed.terms[i])
      if (!(c >= 'a' && c <= 'z') && c != '.')
        op.unsupported("equation '" + equation + "'");
    size_t plain = parsed.terms[i].find("...") == std::string::npos ? 0 : 3;
    parsed.terms[i] = expandEllipsis(op, parsed.terms[i], op.rank(i));
    if (plain)
      most = std::max<size_t>(most, static_cast<size_t>(std::count_if(parsed.terms[i].begin(), parsed.terms[i].end(),
                                                                      [](char c) { return c >= 'A' && c <= 'Z'; })));
  }
  for (size_t i = most; i-- > 0;)
    dots += static_cast<char>('A' + i);
  if (arrow != std::string::npos) {
    parsed.result = equation.substr(arrow + 2);
    size_t at = parsed.result.find("...");
    if (at != std::string::npos)
      parsed.result.replace(at, 3, dots);
    return parsed;
  }
  // Implicit: the ellipsis, then the letters that occur once, sorted.
  std::map<char, int> count;
  for (const std::string &term : parsed.terms)
    for (char c : term)
      ++count[c];
  parsed.result = dots;
  for (auto [letter, times] : count)
    if (times == 1 && letter >= 'a')
      parsed.result += letter;
  return parsed;
}

void inferEinsum(OpContext &op) {
  op.sameTypes();
  if (op.numInputs() > 2)
    op.unsupported("more than two operands");
  Equation equation = parseEquation(op);
  std::map<char, int64_t> extents;
  std::string normal;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const std::string &term = equation.terms[i];
    if (static_cast<int64_t>(term.size()) != op.rank(i))
      op.invalid("the term '" + term + "' does not fit shape " + text(op.shape(i)));
    for (size_t d = 0; d < term.size(); ++d) {
      if (std::count(term.begin(), term.end(), term[d]) > 1)
        op.unsupported("a diagonal ('" + term + "')");
      auto [at, added] = extents.emplace(term[d], op.shape(i)[d]);
      if (!added && at->second != op.shape(i)[d]) {
        if (at->second == 1 || op.shape(i)[d] == 1)
          op.unsupported("a letter that broadcasts");
        op.invalid(std::string("letter '") + term[d] + "' has two sizes");
      }
    }
    normal += (i ? "," : "") + term;
  }
  Shape result;
  for (char letter : equation.result) {
    if (!extents.count(letter) || std::count(equation.result.begin(), equation.result.end(), letter) > 1)
      op.invalid("the result '" + equation.result + "' of the equation is not valid");
    result.push_back(extents[letter]);
  }
  Attribute attribute;
  attribute.kind = Attribute::Kind::String;
  attribute.s = normal + "->" + equation.result;
  op.node.attributes["equation"] = attribute;
  op.output(0, op.type(0), std::move(result));
}

void inferConv(OpContext &op) {
  op.sameTypes();
  Shape x = op.shape(0), w = op.shape(1);
  if (x.size() < 3 || w.size() != x.size())
    op.invalid("shapes " + text(x) + " and " + text(w) + " do not convolve");
  size_t spatial = x.size() - 2;
  if (spatial > 3)
    op.unsupported(std::to_string(spatial) + " spatial dimensions");
  int64_t group = op.intAttr("group", 1);
  auto listed = [&](const char *name, size_t size, int64_t otherwise) {
    std::vector<int64_t> values = op.intsAttr(name).value_or(std::vector<int64_t>(size, otherwise));
    if (values.size() != size)
      op.invalid(std::string(name) + " has " + std::to_string(values.size()) + " entries");
    return values;
  };
  std::vector<int64_t> strides = listed("strides", spatial, 1), dilations = listed("dilations", spatial, 1);
  std::vector<int64_t> pads = listed("pads", 2 * spatial, 0);
  if (group < 1 || x[1] % group || w[0] % group || w[1] != x[1] / group)
    op.invalid("channels of " + text(x) + " and " + text(w) + " do not fit " + std::to_string(group) + " groups");
  std::string automatic = op.stringAttr("auto_pad", "NOTSET");
  Shape result = {x[0], w[0]};
  for (size_t i = 0; i < spatial; ++i) {
    int64_t extent = x[i + 2], stride = strides[i];
    if (stride < 1 || dilations[i] < 1 || w[i + 2] < 1 || pads[i] < 0 || pads[i + spatial] < 0 ||
        w[i + 2] > (int64_t(1) << 31) || dilations[i] > (int64_t(1) << 31) || pads[i] > (int64_t(1) << 31) ||
        pads[i + spatial] > (int64_t(1) << 31) || extent > (int64_t(1) << 40))
      op.invalid("strides, dilations, pads or the window are not valid");
    int64_t window = (w[i + 2] - 1) * dilations[i] + 1;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      int64_t total = std::max<int64_t>((ceilDiv(extent, stride) - 1) * stride + window - extent, 0);
      pads[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      pads[i + spatial] = total - pads[i];
    } else if (automatic == "VALID") {
      pads[i] = pads[i + spatial] = 0;
    } else if (automatic != "NOTSET") {
      op.invalid("auto_pad is '" + automatic + "'");
    }
    int64_t padded = extent + pads[i] + pads[i + spatial];
    if (padded < window)
      op.invalid("the window is larger than the padded input");
    result.push_back((padded - window) / stride + 1);
  }
  if (op.has(2) && op.shape(2) != Shape{w[0]})
    op.invalid("the bias has shape " + text(op.shape(2)));
  op.node.attributes.clear();
  op.set("strides", strides);
  op.set("dilations", dilations);
  op.set("pads", pads);
  op.set("group", group);
  op.output(0, op.type(0), std::move(result));
}

} // namespace

void addContractionRules(OpTable &table) {
  table["MatMul"] = {1, 2, 2, 1, {}, inferMatMul};
  table["Gemm"] = {7, 2, 3, 1, {"alpha", "beta", "transA", "transB"}, inferGemm};
  table["Einsum"] = {12, 1, kAnyNumber, 1, {"equation"}, inferEinsum};
  table["Conv"] = {1, 2, 3, 1, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}, inferConv};
}

} // namespace mtp::onnx
