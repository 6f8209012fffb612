// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsAttention.cpp - attention and rotary embedding -------------------===//
//
// Normal forms: Attention: query, key, value of rank 4 (batch, heads, rows, size),
// mask or nothing; scale, causal, causal_offset, softcap. mtp.rotary: x of rank 4,
// cos and sin (batch or 1, 1, rows, size / 2); interleaved.
//
//===----------------------------------------------------------------------===//
#include "compiler/frontend/onnx/OpContext.h"

#include <cmath>
#include <limits>

namespace mtp::onnx {

namespace {

Attribute integer(int64_t value) {
  Attribute attribute;
  attribute.i = value;
  return attribute;
}
Attribute integers(std::vector<int64_t> values) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::Ints;
  attribute.ints = std::move(values);
  return attribute;
}
Attribute number(double value) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::Float;
  attribute.f = value;
  return attribute;
}

/// A tensor while the rule runs: later values may move the graph's memory.
struct Operand {
  int value = kNoValue;
  Shape shape;
};

/// (b, s, h d) -> (b, h, s, d).
Operand splitHeads(OpContext &op, size_t i, int64_t heads, const char *what) {
  Operand x{op.node.inputs[i], op.shape(i)};
  DType type = op.type(i);
  if (x.shape.size() == 4)
    return x;
  if (heads < 1 || x.shape[2] % heads)
    op.invalid(std::string(what) + " of shape " + text(x.shape) + " does not have " + std::to_string(heads) + " heads");
  Shape split = {x.shape[0], x.shape[1], heads, x.shape[2] / heads};
  int value = op.emit("Reshape", {x.value}, {}, type, split);
  std::swap(split[1], split[2]);
  value = op.emit("Transpose", {value}, {{"perm", integers({0, 2, 1, 3})}}, type, split);
  return {value, split};
}

/// past and x, joined along the rows.
Operand withPast(OpContext &op, size_t past, const Operand &x, const char *what) {
  if (!op.has(past))
    return x;
  Shape shape = op.shape(past);
  DType type = op.type(past);
  if (shape.size() != 4 || shape[0] != x.shape[0] || shape[1] != x.shape[1] || shape[3] != x.shape[3])
    op.invalid(std::string(what) + " has shape " + text(shape) + ", which does not go before " + text(x.shape));
  if (shape[2] == 0)
    return x;
  int before = op.node.inputs[past];
  shape[2] += x.shape[2];
  return {op.emit("Concat", {before, x.value}, {{"axis", integer(2)}}, type, shape), shape};
}

/// The mask with as many columns as there are keys; missing ones are hidden.
int paddedMask(OpContext &op, int64_t keys) {
  int mask = op.node.inputs[3];
  Shape shape = op.shape(3);
  DType type = op.type(3);
  if (shape.empty() || shape.size() > 4)
    op.invalid("the mask has shape " + text(shape));
  if (shape.back() == keys || shape.back() == 1)
    return mask;
  if (shape.back() > keys)
    op.invalid("the mask of shape " + text(shape) + " has more columns than there are keys");
  std::vector<int64_t> pads(2 * shape.size(), 0);
  pads.back() = keys - shape.back();
  shape.back() = keys;
  double hidden = type == DType::Bool ? 0 : -std::numeric_limits<double>::infinity();
  return op.emit("Pad", {mask}, {{"pads", integers(pads)}, {"value", number(hidden)}}, type, shape);
}

void inferAttention(OpContext &op) {
  if (op.has(6))
    op.unsupported("nonpad_kv_seqlen");
  if (op.wants(3))
    op.unsupported("the scores as an output");
  DType type = op.type(0);
  bool flat = op.rank(0) == 3;
  for (size_t i : {0, 1, 2})
    if (op.rank(i) != (flat ? 3 : 4) || op.type(i) != type)
      op.invalid("query, key and value have shapes " + text(op.shape(0)) + ", " + text(op.shape(1)) + ", " +
                 text(op.shape(2)));
  int64_t heads = op.intAttr("q_num_heads", 0), keyHeads = op.intAttr("kv_num_heads", 0);
  Operand q = splitHeads(op, 0, heads, "the query"), k = splitHeads(op, 1, keyHeads, "the key");
  Operand v = splitHeads(op, 2, keyHeads, "the value");
  int64_t past = op.has(4) && op.shape(4).size() == 4 ? op.shape(4)[2] : 0;
  k = withPast(op, 4, k, "the past key");
  v = withPast(op, 5, v, "the past value");
  if (k.shape[0] != q.shape[0] || v.shape[0] != q.shape[0] || k.shape[3] != q.shape[3] || v.shape[1] != k.shape[1] ||
      v.shape[2] != k.shape[2] || k.shape[1] == 0 || q.shape[1] % k.shape[1])
    op.invalid("query " + text(q.shape) + ", key " + text(k.shape) + " and value " + text(v.shape) + " do not fit");
  std::vector<int> inputs = {q.value, k.value, v.value};
  if (op.has(3)) {
    if (op.type(3) != DType::Bool && op.type(3) != type)
      op.invalid("the mask has another type than the query");
    Shape scores = {q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
    Shape mask = op.shape(3);
    if (!mask.empty() && mask.back() < scores.back())
      mask.back() = mask.back() == 1 ? 1 : scores.back();
    if (op.broadcast(mask, scores) != scores)
      op.invalid("the mask of shape " + text(op.shape(3)) + " does not broadcast to " + text(scores));
    inputs.push_back(paddedMask(op, k.shape[2]));
  }
  double scale = op.floatAttr("scale", q.shape[3] ? 1 / std::sqrt(static_cast<double>(q.shape[3])) : 1);
  int64_t causal = op.intAttr("is_causal", 0);
  double softcap = op.floatAttr("softcap", 0);
  op.alias(1, k.value);
  op.alias(2, v.value);
  std::map<std::string, Attribute> attributes = {{"scale", number(scale)}, {"causal", integer(causal)},
                                                 {"causal_offset", integer(past)}, {"softcap", number(softcap)}};
  Shape result = {q.shape[0], q.shape[1], q.shape[2], v.shape[3]};
  op.node.outputs.resize(1);
  if (!flat) {
    op.node.attributes = attributes;
    op.node.inputs = inputs;
    return op.output(0, type, result);
  }
  int value = op.emit("Attention", inputs, attributes, type, result);
  std::swap(result[1], result[2]);
  value = op.emit("Transpose", {value}, {{"perm", integers({0, 2, 1, 3})}}, type, result);
  op.node.op = "Reshape";
  op.node.attributes.clear();
  op.node.inputs = {value};
  op.output(0, type, {result[0], result[1], result[2] * result[3]});
}

/// Table `i` at the positions, as (batch, 1, rows, half).
Operand rotaryTable(OpContext &op, size_t i, const Shape &x) {
  Operand table{op.node.inputs[i], op.shape(i)};
  DType type = op.type(i);
  if (op.has(3)) {
    Shape positions = op.shape(3);
    if (table.shape.size() != 2 || positions.size() != 2)
      op.invalid("tables of shape " + text(table.shape) + " with positions of shape " + text(positions));
    table.shape = {positions[0], positions[1], table.shape[1]};
    table.value = op.emit("Gather", {table.value, op.node.inputs[3]}, {{"axis", integer(0)}}, type, table.shape);
  }
  if (table.shape.size() != 3 || (table.shape[0] != x[0] && table.shape[0] != 1) || table.shape[1] != x[2] ||
      table.shape[2] > x[3] / 2)
    op.invalid("the table of shape " + text(op.shape(i)) + " does not fit " + text(x));
  table.shape.insert(table.shape.begin() + 1, 1);
  table.value = op.emit("Reshape", {table.value}, {}, type, table.shape);
  return table;
}

void inferRotary(OpContext &op) {
  DType type = op.type(0);
  bool flat = op.rank(0) == 3;
  if (!flat)
    op.checkRank(0, 4, "the input");
  if (op.type(1) != type || op.type(2) != type)
    op.invalid("the tables have another type than the input");
  Shape original = op.shape(0);
  Operand x = splitHeads(op, 0, op.intAttr("num_heads", 0), "the input");
  Operand cos = rotaryTable(op, 1, x.shape), sin = rotaryTable(op, 2, x.shape);
  int64_t rotated = op.intAttr("rotary_embedding_dim", 0);
  if (cos.shape != sin.shape || 2 * cos.shape[3] != (rotated ? rotated : x.shape[3]))
    op.invalid("tables of " + std::to_string(cos.shape[3]) + " columns for " + std::to_string(rotated ? rotated : x.shape[3]) +
               " rotated elements");
  std::map<std::string, Attribute> attributes = {{"interleaved", integer(op.intAttr("interleaved", 0))}};
  std::vector<int> inputs = {x.value, cos.value, sin.value};
  op.node.op = "mtp.rotary";
  op.node.attributes = attributes;
  op.node.inputs = inputs;
  if (!flat)
    return op.output(0, type, x.shape);
  int value = op.emit("mtp.rotary", inputs, attributes, type, x.shape);
  std::swap(x.shape[1], x.shape[2]);
  value = op.emit("Transpose", {value}, {{"perm", integers({0, 2, 1, 3})}}, type, x.shape);
  op.node.op = "Reshape";
  op.node.attributes.clear();
  op.node.inputs = {value};
  op.output(0, type, std::move(original));
}

} // namespace

void addAttentionRules(OpTable &table) {
  table["Attention"] = {23, 3, 7, 4, {"is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale",
                                      "softcap", "softmax_precision"}, inferAttention};
  table["RotaryEmbedding"] = {23, 3, 4, 1, {"interleaved", "num_heads", "rotary_embedding_dim"}, inferRotary};
  table["mtp.rotary"] = {INT64_MAX, 3, 3, 1, {}, nullptr};
}

} // namespace mtp::onnx
