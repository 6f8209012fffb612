// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/report/Scene.h"

#include <algorithm>
#include <set>

using namespace mtp::report;
using nlohmann::json;

namespace {

std::string withoutDialect(const std::string &op) {
  size_t dot = op.find('.');
  return dot == std::string::npos ? op : op.substr(dot + 1);
}

template <typename T> void addOnce(std::vector<T> &list, const T &item) {
  if (std::find(list.begin(), list.end(), item) == list.end())
    list.push_back(item);
}

/// Builds the scenes of one function.
class Builder {
public:
  explicit Builder(const json &function)
      : function(function), ops(function.at("ops")) {
    for (const json &value : function.at("values"))
      values.push_back({value.at("name"), value.at("type"), value.at("layout"),
                        value.at("shape"), value.at("local_shape"),
                        value.at("states"), value.at("bytes")});
    makerOp.assign(values.size(), -1);
    uses.assign(values.size(), 0);
    for (size_t i = 0; i < ops.size(); ++i) {
      for (int value : ops[i].at("results"))
        makerOp.at(size_t(value)) = int(i);
      for (int value : ops[i].at("operands"))
        ++uses.at(size_t(value));
    }
    for (const json &output : function.at("outputs"))
      ++uses.at(output.at("value").get<size_t>());
    findSources();
  }

  std::vector<Scene> run() {
    std::vector<Scene> scenes;
    for (const char *phase : {"forward", "backward", "update"}) {
      Scene scene = build(phase);
      if (!scene.boxes.empty())
        scenes.push_back(std::move(scene));
    }
    return scenes;
  }

private:
  /// A weight or constant, or a conversion of one that moves nothing.
  void findSources() {
    source.assign(ops.size(), false);
    weightOf.assign(values.size(), "");
    for (size_t i = 0; i < ops.size(); ++i) {
      const json &op = ops[i];
      std::string weight = op.value("parameter", "");
      bool isSource = !weight.empty() || op.value("constant", false);
      if (op.contains("conversion") && op["operands"].size() == 1) {
        int from = op["operands"][0];
        int maker = makerOp[size_t(from)];
        if (maker >= 0 && source[size_t(maker)] &&
            op["conversion"].value("kind", "").empty()) {
          isSource = true;
          weight = weightOf[size_t(from)];
        }
      }
      source[i] = isSource;
      if (isSource)
        for (int value : op["results"])
          weightOf[size_t(value)] = weight;
    }
  }

  bool isHeavy(const json &op) const {
    if (op.contains("conversion") || op.value("time_us", 0.0) > 0)
      return true;
    for (int value : op["operands"])
      if (!weightOf[size_t(value)].empty() &&
          values[size_t(value)].shape.size() >= 2)
        return true;
    return false;
  }

  /// The box that op `index` may join, or -1.
  int boxToJoin(const Scene &scene, size_t index) const {
    const json &op = ops[index];
    if (isHeavy(op))
      return -1;
    int box = -1;
    bool hasWeights = false;
    for (int value : op["operands"]) {
      int maker = makerOp[size_t(value)];
      hasWeights |= !weightOf[size_t(value)].empty();
      if (maker < 0 || source[size_t(maker)])
        continue;
      int its = scene.makerOf[size_t(value)];
      if (its < 0 || uses[size_t(value)] != 1 || (box >= 0 && box != its) ||
          scene.boxes[size_t(its)].kind != Box::Kind::Ops)
        return -1;
      box = its;
    }
    // A bias belongs to its product; a norm begins something new.
    bool afterProduct = box >= 0 && scene.boxes[size_t(box)].timeUs > 0;
    return hasWeights && !afterProduct ? -1 : box;
  }

  /// The parameter that a weight is before conversions that move nothing.
  int storedBehind(int value) const {
    for (;;) {
      const json &op = ops[size_t(makerOp[size_t(value)])];
      if (!op.contains("conversion"))
        return value;
      value = op["operands"][0];
    }
  }

  void read(Scene &scene, int box, const json &op) const {
    for (int value : op["operands"]) {
      int maker = makerOp[size_t(value)];
      Box &mine = scene.boxes[size_t(box)];
      if (maker < 0)
        continue;
      if (source[size_t(maker)]) {
        const std::string &weight = weightOf[size_t(value)];
        if (!weight.empty())
          mine.weights.push_back({weight, storedBehind(value)});
        continue;
      }
      int its = scene.makerOf[size_t(value)];
      if (its < 0)
        addOnce(mine.saved, value);
      else if (its != box)
        addOnce(mine.inputs, value);
    }
  }

  Scene build(const std::string &phase) const {
    Scene scene;
    scene.function = function.at("function");
    scene.phase = phase;
    scene.values = values;
    scene.makerOf.assign(values.size(), -1);
    for (size_t i = 0; i < ops.size(); ++i)
      if (ops[i].at("phase") == phase && !source[i])
        addOp(scene, i);
    addOutputs(scene);
    orderBoxes(scene);
    for (Box &box : scene.boxes)
      for (int value : box.inputs)
        addOnce(scene.boxes[size_t(scene.makerOf[size_t(value)])].outputs,
                value);
    return scene;
  }

  void addOp(Scene &scene, size_t index) const {
    const json &op = ops[index];
    int box = boxToJoin(scene, index);
    if (box < 0) {
      box = int(scene.boxes.size());
      scene.boxes.emplace_back();
    }
    read(scene, box, op);
    Box &mine = scene.boxes[size_t(box)];
    mine.name = op.at("name");
    mine.names.push_back(mine.name);
    mine.ops.push_back(withoutDialect(op.at("op")));
    mine.timeUs += op.value("time_us", 0.0);
    if (op.at("op") == "input")
      mine.kind = Box::Kind::Input;
    if (op.contains("conversion")) {
      const json &c = op["conversion"];
      mine.kind = Box::Kind::Conversion;
      mine.conversion = {
          c.at("op"),        c.at("kind"),          c.at("axis"),
          c.at("conjugate"), c.value("reason", ""), c.at("bytes"),
          c.at("time_us")};
    }
    for (int value : op["results"]) {
      scene.makerOf[size_t(value)] = box;
      if (mine.result < 0 || op["results"][0] == value)
        mine.result = value;
    }
  }

  void addOutputs(Scene &scene) const {
    for (const json &output : function.at("outputs")) {
      int value = output.at("value");
      if (scene.makerOf[size_t(value)] < 0)
        continue;
      Box box;
      box.kind = Box::Kind::Output;
      box.name = output.at("name");
      box.ops = {"output"};
      box.names = {box.name};
      box.inputs = {value};
      box.result = value;
      scene.boxes.push_back(std::move(box));
    }
  }

  const json &function, &ops;
  std::vector<SceneValue> values;
  std::vector<int> makerOp, uses;
  std::vector<bool> source;
  std::vector<std::string> weightOf; ///< by value; "": none, or a constant
};

//===----------------------------------------------------------------------===//
// Repeated layers
//===----------------------------------------------------------------------===//

/// Everything about a box but names and where its inputs come from.
std::string signatureOf(const Scene &scene, const Box &box) {
  std::string text;
  auto addValue = [&](int index) {
    const SceneValue &value = scene.values[size_t(index)];
    text += '[' + value.type;
    for (int64_t extent : value.shape)
      text += ',' + std::to_string(extent);
    text += '|' + value.layout + ']';
  };
  text += std::to_string(int(box.kind)) + ':' + box.conversion.op + ':' +
          box.conversion.axis;
  for (const std::string &op : box.ops)
    text += ' ' + op;
  for (const SceneWeight &weight : box.weights)
    addValue(weight.value);
  text += ';';
  for (int value : box.inputs)
    addValue(value);
  text += ';';
  if (box.result >= 0)
    addValue(box.result);
  return text;
}

class Folder {
public:
  explicit Folder(const Scene &scene) : scene(scene) {
    std::map<std::string, int> known;
    for (const Box &box : scene.boxes)
      signatures.push_back(
          known.insert({signatureOf(scene, box), int(known.size())})
              .first->second);
  }

  std::vector<Segment> run() {
    split(0, int(signatures.size()));
    return segments;
  }

private:
  /// Inputs from inside the repetition at `first` have the same places as those
  /// of the repetition before.
  bool wiredAlike(int first, int period) const {
    for (int i = first; i < first + period; ++i) {
      const Box &mine = scene.boxes[size_t(i)],
                &before = scene.boxes[size_t(i - period)];
      for (size_t k = 0; k < mine.inputs.size(); ++k) {
        int a = scene.makerOf[size_t(mine.inputs[k])] - first;
        int b = scene.makerOf[size_t(before.inputs[k])] - (first - period);
        if (a != b && a >= 0 && b >= 0)
          return false;
      }
    }
    return true;
  }

  /// The repetition in [begin, end) that covers most; count 1 if there is none.
  Segment bestIn(int begin, int end) const {
    Segment best;
    int covered = 0;
    for (int period = 2; 2 * period <= end - begin; ++period)
      for (int i = begin, run = 0; i + period < end; ++i) {
        run = signatures[size_t(i)] == signatures[size_t(i + period)] ? run + 1
                                                                      : 0;
        bool stops =
            i + 1 + period >= end ||
            signatures[size_t(i + 1)] != signatures[size_t(i + 1 + period)];
        if (run < period || !stops)
          continue;
        Segment found = align(i + 1 - run, period, run);
        if (found.count > 1 && found.period * found.count > covered) {
          covered = found.period * found.count;
          best = found;
        }
      }
    return best;
  }

  /// A run of equal boxes may start in the middle of a layer: of all starts
  /// with most repetitions the first whose layers are named alike.
  Segment align(int first, int period, int run) const {
    int count = run / period + 1, slack = run % period;
    Segment best{first, period, 1};
    int bestScore = -1;
    for (int shift = 0; shift <= slack; ++shift) {
      int wired = 1;
      while (wired < count &&
             wiredAlike(first + shift + wired * period, period))
        ++wired;
      int score = wired * 1000000 + commonPrefix(first + shift, period);
      if (score > bestScore) {
        bestScore = score;
        best = {first + shift, period, wired};
      }
    }
    return best;
  }

  /// Length of what the names of all its boxes begin with.
  int commonPrefix(int first, int period) const {
    std::string prefix;
    bool any = false;
    for (int i = first; i < first + period; ++i) {
      const std::string &name = scene.boxes[size_t(i)].name;
      if (!any)
        prefix = name;
      any = true;
      size_t same = 0;
      while (same < prefix.size() && same < name.size() &&
             prefix[same] == name[same])
        ++same;
      prefix.resize(same);
    }
    return int(std::min<size_t>(prefix.size(), 999));
  }

  void split(int begin, int end) {
    if (begin >= end)
      return;
    Segment best = bestIn(begin, end);
    if (best.count < 2) {
      segments.push_back({begin, end - begin, 1});
      return;
    }
    split(begin, best.first);
    segments.push_back(best);
    split(best.last(), end);
  }

  const Scene &scene;
  std::vector<int> signatures;
  std::vector<Segment> segments;
};

} // namespace

std::vector<Scene> mtp::report::scenesOf(const json &graph) {
  std::vector<Scene> scenes;
  for (const json &function : graph)
    for (Scene &scene : Builder(function).run())
      scenes.push_back(std::move(scene));
  return scenes;
}

std::vector<Segment> mtp::report::segmentsOf(const Scene &scene) {
  return Folder(scene).run();
}
