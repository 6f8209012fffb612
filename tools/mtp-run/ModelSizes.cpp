// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mtp-run/ModelSizes.h"

#include <algorithm>
#include <set>
#include <vector>

using namespace mtp;
using nlohmann::json;

namespace {

using Shape = std::vector<int64_t>;

int64_t elements(const Shape &shape) {
  int64_t product = 1;
  for (int64_t extent : shape)
    product *= extent;
  return product;
}

/// A product that reads a weight [depth, columns].
struct Matrix {
  int op = 0;
  std::string weight;
  int64_t depth = 0, columns = 0;
};

/// Products without weights that feed each other.
struct Attention {
  std::vector<int> ops; ///< in program order
  std::set<int> inputs; ///< matrices (indices) that feed it
  int64_t heads = 0, width = 0;
};

/// What a layer is made of, to compare layers.
struct Layer {
  int64_t hidden = 0, heads = 0, keyValueHeads = 0, feedForward = 0;
  bool gated = false;
  std::string node; ///< its attention
  bool operator==(const Layer &other) const {
    return hidden == other.hidden && heads == other.heads &&
           keyValueHeads == other.keyValueHeads &&
           feedForward == other.feedForward && gated == other.gated;
  }
  std::string text() const {
    return "hidden " + std::to_string(hidden) + ", " + std::to_string(heads) +
           " heads, " + std::to_string(keyValueHeads) +
           " key-value heads, a network of " + std::to_string(feedForward) +
           (gated ? ", gated" : "");
  }
};

struct NoStack {
  std::string why;
};

class Reader {
public:
  explicit Reader(const json &graph)
      : values(graph.at(0).at("values")), ops(graph.at(0).at("ops")) {
    makerOf.assign(values.size(), -1);
    for (size_t i = 0; i < ops.size(); ++i)
      for (int value : ops[i].at("results"))
        makerOf.at(size_t(value)) = int(i);
  }

  json run() {
    findProducts();
    joinAttention();
    if (attention.empty())
      throw NoStack{"it has no attention: no product that reads no weight, on "
                    "tensors of rank 4 or more"};
    findInputs();
    std::vector<Layer> layers = readLayers();
    for (const Layer &layer : layers)
      if (!(layer == layers[0]))
        throw NoStack{"its layers differ: at '" + layers[0].node + "' " +
                      layers[0].text() + ", at '" + layer.node + "' " +
                      layer.text()};
    json job = {{"layers", layers.size()},
                {"hidden", layers[0].hidden},
                {"heads", layers[0].heads},
                {"key-value-heads", layers[0].keyValueHeads},
                {"feed-forward", layers[0].feedForward}};
    if (layers[0].gated)
      job["gated"] = true;
    readTokens(job);
    return job;
  }

private:
  std::string nameOf(int op) const { return ops[size_t(op)].at("name"); }
  Shape shapeOf(int value) const {
    return values[size_t(value)].at("shape").get<Shape>();
  }

  /// The op that makes a value or, behind ops of one operand that do no
  /// product, that which they move.
  int weightBehind(int value) const {
    for (int at = value;;) {
      int maker = makerOf[size_t(at)];
      if (maker < 0)
        return -1;
      const json &op = ops[size_t(maker)];
      if (op.contains("parameter"))
        return maker;
      if (op.at("operands").size() != 1 || op.value("time_us", 0.0) > 0)
        return -1;
      at = op["operands"][0];
    }
  }

  void findProducts() {
    for (size_t i = 0; i < ops.size(); ++i) {
      const json &op = ops[i];
      if (op.value("time_us", 0.0) <= 0)
        continue;
      int weight = -1, others = 0;
      for (int value : op.at("operands")) {
        if (shapeOf(value).size() < 2)
          continue;
        int maker = weightBehind(value);
        weight = weight < 0 ? maker : weight;
        others += maker < 0;
      }
      if (weight < 0 || others > 1) { // a mask may be a weight
        Shape shape = shapeOf(op["operands"][0]);
        if (shape.size() >= 4)
          attention.push_back({{int(i)}, {}, 0, 0});
        continue;
      }
      Shape shape = shapeOf(ops[size_t(weight)]["results"][0]);
      if (shape.size() != 2)
        throw NoStack{"'" + nameOf(int(i)) + "' reads '" +
                      ops[size_t(weight)]["parameter"].get<std::string>() +
                      "' of rank " + std::to_string(shape.size()) +
                      " (experts, a convolution); matrices are understood"};
      Shape result = shapeOf(op["results"][0]);
      int64_t columns = result.empty() ? 1 : result.back();
      if (columns <= 0 || elements(shape) % columns)
        continue;
      matrices.push_back({int(i), ops[size_t(weight)]["parameter"],
                          elements(shape) / columns, columns});
    }
  }

  /// Visits the nearest products that feed `op`.
  template <typename Visit> void nearest(int op, Visit visit) const {
    std::vector<int> open{op};
    std::set<int> seen;
    while (!open.empty()) {
      int at = open.back();
      open.pop_back();
      for (int value : ops[size_t(at)].at("operands")) {
        int maker = makerOf[size_t(value)];
        if (maker < 0 || !seen.insert(maker).second)
          continue;
        if (ops[size_t(maker)].value("time_us", 0.0) > 0)
          visit(maker);
        else
          open.push_back(maker);
      }
    }
  }

  /// Scores and context are two products in some graphs, one in others.
  void joinAttention() {
    std::vector<Attention> joined;
    for (Attention &mine : attention) {
      Attention *into = nullptr;
      nearest(mine.ops[0], [&](int feeder) {
        for (Attention &other : joined)
          if (std::find(other.ops.begin(), other.ops.end(), feeder) !=
              other.ops.end())
            into = &other;
      });
      if (into)
        into->ops.push_back(mine.ops[0]);
      else
        joined.push_back(mine);
    }
    attention = std::move(joined);
    for (Attention &mine : attention) {
      Shape shape = shapeOf(ops[size_t(mine.ops[0])]["operands"][0]);
      mine.width = shape.back();
      mine.heads = elements(Shape(shape.begin() + 1, shape.end() - 2));
    }
  }

  void findInputs() {
    for (Attention &mine : attention)
      for (int op : mine.ops)
        nearest(op, [&](int feeder) {
          for (size_t i = 0; i < matrices.size(); ++i)
            if (matrices[i].op == feeder)
              mine.inputs.insert(int(i));
        });
  }

  std::vector<Layer> readLayers() {
    std::vector<Layer> layers;
    size_t each = 0;
    for (size_t i = 0; i < attention.size(); ++i) {
      bool isLast = i + 1 == attention.size();
      std::vector<const Matrix *> behind;
      for (size_t m = 0; m < matrices.size(); ++m)
        if (matrices[m].op > attention[i].ops.back() &&
            (isLast || (matrices[m].op < attention[i + 1].ops[0] &&
                        !attention[i + 1].inputs.count(int(m)))))
          behind.push_back(&matrices[m]);
      if (isLast) {
        // The output projection is behind the last layer.
        size_t own = each;
        for (size_t m = 1; !own && m < behind.size(); ++m)
          if (behind[m]->columns == behind[0]->columns)
            own = m + 1;
        head.assign(behind.begin() + std::min(own, behind.size()),
                    behind.end());
        behind.resize(std::min(own, behind.size()));
      }
      each = behind.size();
      layers.push_back(readLayer(attention[i], behind));
    }
    return layers;
  }

  Layer readLayer(const Attention &mine,
                  const std::vector<const Matrix *> &behind) const {
    Layer layer;
    layer.node = nameOf(mine.ops[0]);
    auto refuse = [&](const std::string &why) {
      throw NoStack{"the layer of '" + layer.node + "' " + why};
    };
    int64_t columns = 0;
    for (int index : mine.inputs) {
      const Matrix &matrix = matrices[size_t(index)];
      columns += matrix.columns;
      if (layer.hidden && layer.hidden != matrix.depth)
        refuse("has queries and keys of different inputs (" +
               std::to_string(layer.hidden) + " and " +
               std::to_string(matrix.depth) + " wide)");
      layer.hidden = matrix.depth;
    }
    layer.heads = mine.heads;
    int64_t query = mine.heads * mine.width;
    layer.keyValueHeads =
        mine.width > 0 ? (columns - query) / 2 / mine.width : 0;
    if (mine.inputs.empty() || layer.keyValueHeads < 1 ||
        query + 2 * layer.keyValueHeads * mine.width != columns)
      refuse("has " + std::to_string(mine.inputs.size()) + " matrices of " +
             std::to_string(columns) + " columns for " +
             std::to_string(mine.heads) + " heads of " +
             std::to_string(mine.width) +
             "; those of queries, keys and values are needed");
    if (query != layer.hidden)
      refuse("has " + std::to_string(query) +
             " columns of queries for tokens " + std::to_string(layer.hidden) +
             " wide");
    if (behind.size() != 3 && behind.size() != 4)
      refuse("has " + std::to_string(behind.size()) +
             " matrices behind its attention; an output and a network of two, "
             "or three with a gate, are understood");
    layer.gated = behind.size() == 4;
    layer.feedForward = behind.back()->depth;
    for (size_t i = 1; i + 1 < behind.size(); ++i)
      if (behind[i]->columns != layer.feedForward ||
          behind[i]->depth != layer.hidden)
        refuse("has a network whose matrices do not follow each other ('" +
               behind[i]->weight + "', '" + behind.back()->weight + "')");
    if (behind.back()->columns != layer.hidden)
      refuse("ends " + std::to_string(behind.back()->columns) +
             " wide, its tokens are " + std::to_string(layer.hidden));
    return layer;
  }

  /// Vocabulary and tokens, from the look-up of the largest table.
  void readTokens(json &job) const {
    std::string table;
    int64_t rows = 0;
    for (const json &op : ops) {
      int weight = -1, indices = -1;
      for (int value : op.at("operands")) {
        std::string type = values[size_t(value)].at("type");
        int maker = weightBehind(value);
        if (maker >= 0 && type[0] != 'i' && shapeOf(value).size() == 2)
          weight = maker;
        else if (type[0] == 'i' && !shapeOf(value).empty())
          indices = value;
      }
      if (weight < 0 || indices < 0 || op.value("time_us", 0.0) > 0)
        continue;
      Shape shape = shapeOf(ops[size_t(weight)]["results"][0]);
      if (shape[1] != job["hidden"] || shape[0] <= rows)
        continue;
      rows = shape[0];
      table = ops[size_t(weight)]["parameter"];
      job["sequence"] = shapeOf(indices).back();
    }
    if (!rows)
      return;
    job["vocabulary"] = rows;
    for (const Matrix *matrix : head)
      if (matrix->columns == rows && matrix->weight != table)
        job["untied"] = true;
  }

  const json &values, &ops;
  std::vector<int> makerOf;
  std::vector<Matrix> matrices;
  std::vector<Attention> attention;
  std::vector<const Matrix *> head; ///< matrices behind the last layer
};

} // namespace

std::optional<json> mtp::sizesOfModel(const json &graph, std::string &error) {
  try {
    return Reader(graph).run();
  } catch (const NoStack &no) {
    error = "the model is no stack of equal layers of attention and a network "
            "behind it: " +
            no.why;
  }
  return std::nullopt;
}
