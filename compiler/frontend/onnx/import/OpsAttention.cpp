// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsAttention.cpp - Attention and RotaryEmbedding of opset 23 -------===//
//
// Attention follows the text of the operator as of 2026: scores, then softcap,
// then the mask; query i sees keys j ≤ i + past length under is_causal; key
// head = query head / group; a row without a key is 0.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/onnx/import/Importer.h"
#include "runtime/support/Checked.h"

#include <cmath>

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

namespace {
/// (b, s, h·d) -> (b, h, s, d); four dimensions stay.
Value splitHeads(NodeContext &n, Value x, int64_t heads, const char *what) {
  if (shapeOf(x).size() == 4)
    return x;
  if (shapeOf(x).size() != 3 || heads < 1 || shapeOf(x)[2] % heads != 0)
    n.invalid(std::string(what) + " does not split into " +
              std::to_string(heads) + " heads");
  ArrayRef<int64_t> s = shapeOf(x);
  return n.emit.transpose(n.emit.reshape(x, {s[0], s[1], heads, s[2] / heads}),
                          {0, 2, 1, 3});
}

Value mergeHeads(NodeContext &n, Value x) {
  ArrayRef<int64_t> s = shapeOf(x);
  Shape merged{s[0], s[2], s[1] * s[3]};
  return n.emit.reshape(n.emit.transpose(x, {0, 2, 1, 3}), merged);
}

/// The mask's last dimension may be shorter than the keys: the rest is hidden.
Value widenMask(NodeContext &n, Value mask, int64_t keys) {
  int64_t rank = static_cast<int64_t>(shapeOf(mask).size()),
          width = shapeOf(mask).back();
  if (width == keys || (width == 1 && keys != 1))
    return mask;
  if (width > keys)
    n.invalid("the mask has " + std::to_string(width) + " columns for " +
              std::to_string(keys) + " keys");
  Shape rest(shapeOf(mask).begin(), shapeOf(mask).end());
  rest.back() = keys - width;
  Type element = elementOf(mask);
  Value hidden =
      n.emit.splat(rest, element, element.isInteger(1) ? 0.0 : -INFINITY);
  return n.emit.concat(rank - 1, {mask, hidden});
}

/// Both masks: booleans by `and`, else added.
Value bothMasks(NodeContext &n, Value a, Value b, Type element) {
  if (!a || !b)
    return a ? a : b;
  Emit &e = n.emit;
  auto isBool = [](Value v) { return elementOf(v).isInteger(1); };
  if (isBool(a) && isBool(b))
    return e.binary<AndOp>(a, b);
  auto asFloat = [&](Value v) {
    return isBool(v)
               ? e.select(v, e.scalar(element, 0), e.scalar(element, -INFINITY))
               : v;
  };
  return e.binary<AddOp>(asFloat(a), asFloat(b));
}

/// Keys at and after nonpad[b] do not exist; under is_causal query i sees keys
/// j ≤ i + nonpad[b] - queries.
Value nonpadMask(NodeContext &n, Value nonpad, int64_t queries, int64_t keys,
                 bool causal) {
  Emit &e = n.emit;
  Type i64 = e.b().getI64Type();
  Value length =
      e.reshape(e.convert(nonpad, i64), {shapeOf(nonpad)[0], 1, 1, 1});
  Value key = e.iota({1, 1, 1, keys}, 3, i64);
  Value exists = e.compare(Compare::lt, key, length);
  if (!causal)
    return exists;
  Value query = e.iota({1, 1, queries, 1}, 2, i64);
  Value limit = e.binary<AddOp>(
      query,
      e.binary<SubOp>(length, e.scalar(i64, static_cast<double>(queries))));
  return e.binary<AndOp>(exists, e.compare(Compare::le, key, limit));
}

/// (b, kv heads, s, d) with each head repeated for its group of query heads.
Value repeatHeads(Emit &e, Value x, int64_t heads) {
  Shape s(shapeOf(x).begin(), shapeOf(x).end());
  if (s[1] == heads)
    return x;
  Shape wide{s[0], s[1], heads / s[1], s[2], s[3]};
  return e.reshape(e.broadcast(e.unsqueeze(x, 2), wide),
                   {s[0], heads, s[2], s[3]});
}

/// Attention step by step, because the scores are an output: 0 as computed, 1
/// after the softcap, 2 after the mask, 3 the probabilities.
std::pair<Value, Value> attentionWithScores(NodeContext &n, Value q, Value k,
                                            Value v, Value mask, double scale,
                                            bool causal, int64_t past) {
  Emit &e = n.emit;
  Type element = elementOf(q), i64 = e.b().getI64Type();
  int64_t mode = n.intAttr("qk_matmul_output_mode", 0), heads = shapeOf(q)[1];
  if (mode < 0 || mode > 3)
    n.invalid("qk_matmul_output_mode is " + std::to_string(mode));
  int64_t queries = shapeOf(q)[2], keys = shapeOf(k)[2];
  double softcap = n.floatAttr("softcap", 0);
  Value s = e.matmul(e.binary<MulOp>(q, e.scalar(element, scale)),
                     repeatHeads(e, k, heads), false, true);
  Value steps[4];
  steps[0] = s;
  if (softcap > 0)
    s = e.binary<MulOp>(
        e.unary<TanhOp>(e.binary<DivOp>(s, e.scalar(element, softcap))),
        e.scalar(element, softcap));
  steps[1] = s;
  if (causal) {
    Value row = e.binary<AddOp>(e.iota({queries, 1}, 0, i64),
                                e.scalar(i64, static_cast<double>(past)));
    mask = bothMasks(n, mask,
                     e.compare(Compare::le, e.iota({1, keys}, 1, i64), row),
                     element);
  }
  Value hidden = e.scalar(element, -INFINITY);
  if (mask)
    s = elementOf(mask).isInteger(1) ? e.select(mask, s, hidden)
                                     : e.binary<AddOp>(s, mask);
  steps[2] = s;
  Value empty =
            e.compare(Compare::eq, e.reduce<ReduceMaxOp>(s, {3}, true), hidden),
        zero = e.scalar(element, 0);
  Value safe = e.select(empty, zero, s);
  Value weights = SoftmaxOp::create(e.b(), e.loc, safe.getType(), safe, 3);
  weights = e.select(empty, zero, weights);
  steps[3] = weights;
  return {e.matmul(weights, repeatHeads(e, v, heads)), steps[mode]};
}

void attention(NodeContext &n) {
  Emit &e = n.emit;
  for (size_t i : {1, 2, 4, 5})
    if (n.has(i) && n.type(i) != n.type(0))
      n.unsupported(std::string("inputs of types ") + name(n.type(0)) +
                    " and " + name(n.type(i)));
  if (n.has(3) && n.type(3) != DType::Bool && n.type(3) != n.type(0))
    n.unsupported(std::string("a mask of type ") + name(n.type(3)));
  if (n.has(6) && (isFloat(n.type(6)) || n.shape(6) != Shape{n.shape(0)[0]}))
    n.invalid("nonpad_kv_seqlen is not one integer a batch entry");
  if (n.has(3) && (n.rank(3) < 1 || n.rank(3) > 4))
    n.invalid("the mask has rank " + std::to_string(n.rank(3)) +
              ", expected 1 to 4");
  bool flat = n.rank(0) == 3;
  Value q = splitHeads(n, n.value(0), n.intAttr("q_num_heads", 0), "the query");
  Value k = splitHeads(n, n.value(1), n.intAttr("kv_num_heads", 0), "the key");
  Value v =
      splitHeads(n, n.value(2), n.intAttr("kv_num_heads", 0), "the value");
  int64_t past = 0;
  if (n.has(4) != n.has(5))
    n.invalid("past key and past value come together");
  if (n.has(4)) {
    past = n.shape(4).size() == 4 ? n.shape(4)[2] : 0;
    k = past ? e.concat(2, {n.value(4), k}) : k;
    v = past ? e.concat(2, {n.value(5), v}) : v;
  }
  if (shapeOf(q).size() != 4 || shapeOf(k).size() != 4 ||
      shapeOf(v).size() != 4 || shapeOf(q)[3] != shapeOf(k)[3] ||
      shapeOf(k)[2] != shapeOf(v)[2] || shapeOf(k)[1] != shapeOf(v)[1] ||
      shapeOf(k)[1] < 1 || shapeOf(q)[1] % shapeOf(k)[1] != 0)
    n.invalid("query, key and value do not fit together");
  int64_t queries = shapeOf(q)[2], keys = shapeOf(k)[2];
  bool causal = n.intAttr("is_causal", 0) != 0;
  Value mask = n.has(3) ? widenMask(n, n.value(3), keys) : Value();
  if (n.has(6)) {
    mask = bothMasks(n, mask, nonpadMask(n, n.value(6), queries, keys, causal),
                     elementOf(q));
    causal = false;
  }
  double scale =
      n.floatAttr("scale", 1 / std::sqrt(static_cast<double>(shapeOf(q)[3])));
  n.out(1, k);
  n.out(2, v);
  if (n.wants(3)) {
    auto [result, scores] =
        attentionWithScores(n, q, k, v, mask, scale, causal, past);
    n.out(3, scores);
    return n.out(0, flat ? mergeHeads(n, result) : result);
  }
  Shape resultShape{shapeOf(q)[0], shapeOf(q)[1], queries, shapeOf(v)[3]};
  // Logarithms of sums stay in f32: gradients exponentiate them.
  Type logarithm = elementOf(q).getIntOrFloatBitWidth() < 32
                       ? e.b().getF32Type()
                       : elementOf(q);
  auto op = AttentionOp::create(
      e.b(), e.loc, e.type(resultShape, elementOf(q)),
      e.type({resultShape[0], resultShape[1], queries}, logarithm), q, k, v,
      mask, Value(), e.b().getF64FloatAttr(scale),
      causal ? e.b().getUnitAttr() : UnitAttr(),
      e.b().getI64IntegerAttr(causal ? past : 0),
      e.b().getF64FloatAttr(n.floatAttr("softcap", 0)), e.b().getUnitAttr(),
      UnitAttr());
  n.out(0, flat ? mergeHeads(n, op.getResult()) : op.getResult());
}

/// (batch, seq, r/2) tables to (batch, 1, seq, r/2).
Value rotaryTable(NodeContext &n, size_t input) {
  Emit &e = n.emit;
  Value table = n.value(input);
  if (n.has(3)) {
    if (n.rank(input) != 2)
      n.invalid("with position_ids the tables have two dimensions");
    table = e.gather(table, n.value(3), 0);
  }
  if (shapeOf(table).size() != 3)
    n.invalid("the tables have three dimensions without position_ids");
  return e.unsqueeze(table, 1);
}

void rotaryEmbedding(NodeContext &n) {
  Emit &e = n.emit;
  bool flat = n.rank(0) == 3;
  if (n.type(1) != n.type(0) || n.type(2) != n.type(0) ||
      (n.has(3) && isFloat(n.type(3))))
    n.invalid("input, tables and positions do not fit together in type");
  Value x = splitHeads(n, n.value(0), n.intAttr("num_heads", 0), "the input");
  Value cos = rotaryTable(n, 1), sin = rotaryTable(n, 2);
  int64_t width = n.intAttr("rotary_embedding_dim", 0);
  if (width && shapeOf(cos).back() != width / 2)
    n.invalid("rotary_embedding_dim is " + std::to_string(width) +
              ", the tables have " + std::to_string(shapeOf(cos).back()) +
              " columns");
  if (2 * shapeOf(cos).back() > shapeOf(x).back())
    n.invalid("the tables are wider than the input");
  bool interleaved = n.intAttr("interleaved", 0) != 0;
  Value result =
      RotaryOp::create(e.b(), e.loc, x.getType(), x, cos, sin,
                       interleaved ? e.b().getUnitAttr() : UnitAttr());
  n.out(0, flat ? mergeHeads(n, result) : result);
}
/// Writes `update` into the cache along an axis, for each batch entry from its
/// own position on; `circular` wraps around at the end.
void tensorScatter(NodeContext &n) {
  Emit &e = n.emit;
  int64_t rank = n.rank(0), axis = n.axis(n.intAttr("axis", -2), rank);
  std::string mode = n.stringAttr("mode", "linear");
  if (mode != "linear" && mode != "circular")
    n.invalid("mode is '" + mode + "'");
  if (axis == 0 || n.rank(1) != rank || n.type(1) != n.type(0))
    n.invalid("cache and update do not fit together");
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim == axis ? n.shape(1)[dim] > n.shape(0)[dim]
                    : n.shape(1)[dim] != n.shape(0)[dim])
      n.invalid("shapes " + text(n.shape(0)) + " and " + text(n.shape(1)) +
                " do not fit together");
  int64_t extent = n.shape(0)[axis], count = n.shape(1)[axis];
  Value cache = n.value(0);
  if (count == 0 || elementCount(n.shape(0)) == 0)
    return n.out(0, cache);
  Type i64 = e.b().getI64Type();
  Shape counter(rank, 1), starts(rank, 1);
  counter[axis] = extent;
  Value position = e.iota(counter, axis, i64);
  if (n.has(2)) {
    if (isFloat(n.type(2)) || n.shape(2) != Shape{n.shape(0)[0]})
      n.invalid("write_indices have shape " + text(n.shape(2)));
    starts[0] = n.shape(0)[0];
    position = e.binary<SubOp>(position,
                               e.reshape(e.convert(n.value(2), i64), starts));
  }
  if (mode == "circular")
    position =
        e.binary<ModOp>(position, e.scalar(i64, static_cast<double>(extent)));
  Value zero = e.scalar(i64, 0),
        last = e.scalar(i64, static_cast<double>(count - 1));
  Value written = e.binary<AndOp>(e.compare(Compare::ge, position, zero),
                                  e.compare(Compare::le, position, last));
  Value source = e.broadcast(
      e.binary<MinOp>(e.binary<MaxOp>(position, zero), last), n.shape(0));
  Value moved = GatherElementsOp::create(e.b(), e.loc, cache.getType(),
                                         n.value(1), source, axis);
  n.out(0, e.select(written, moved, cache));
}
} // namespace

void mtp::onnx::addAttentionOps(OpTable &table) {
  table["Attention"] = {attention,
                        23,
                        3,
                        {"is_causal", "kv_num_heads", "q_num_heads",
                         "qk_matmul_output_mode", "scale", "softcap",
                         "softmax_precision"}};
  table["TensorScatter"] = {tensorScatter, 24, 2, {"axis", "mode"}};
  table["RotaryEmbedding"] = {
      rotaryEmbedding,
      23,
      3,
      {"interleaved", "num_heads", "rotary_embedding_dim"}};
}
