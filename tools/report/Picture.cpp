// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/report/Picture.h"

#include "tools/common/Table.h"
#include "tools/common/Text.h"
#include "tools/report/Html.h"
#include "tools/report/Layered.h"

#include <algorithm>
#include <set>

namespace mtp::report {
namespace {

constexpr double kCharacter = 7.3, kSmallCharacter = 6.1, kLine = 15;
constexpr size_t kLongestLine = 52;

std::string shapeOf(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : "×") + std::to_string(extent);
  return text.empty() ? "scalar" : text;
}

std::string layoutOf(const SceneValue &value) {
  return value.layout.empty() ? "invariant" : value.layout;
}

std::string describe(const SceneValue &value) {
  return value.name + ": " + shapeOf(value.shape) + " " + value.type + ", " +
         layoutOf(value) + "; " + shapeOf(value.localShape) + " = " +
         bytesText(value.bytes) + " on each rank";
}

/// The end of a name, which tells weights apart, from a '.' or '/' on.
std::string tail(const std::string &name, size_t width) {
  if (name.size() <= width)
    return name;
  size_t from = name.find_first_of("./", name.size() - width);
  if (from == std::string::npos || from + 1 >= name.size())
    return shortened(name, width);
  return "…" + name.substr(from + 1);
}

/// Lines of a box and what to say when the pointer rests on it.
struct Label {
  std::vector<std::pair<std::string, const char *>> lines; ///< text, class
  std::string title;
  size_t bars = 0; ///< one a mesh axis, on the left
  double width() const {
    double widest = 0;
    for (const auto &[text, style] : lines)
      widest = std::max(widest,
                        double(displayWidth(text)) *
                            (style[0] == 't' ? kCharacter : kSmallCharacter));
    return std::max(64.0, widest + 20 + 5 * double(bars));
  }
  double height() const { return 12 + kLine * double(lines.size()); }
};

Label labelOf(const Scene &scene, const Box &box) {
  Label label;
  auto add = [&](const std::string &text, const char *style) {
    label.lines.push_back({shortened(text, kLongestLine), style});
  };
  if (box.kind == Box::Kind::Conversion) {
    const Conversion &c = box.conversion;
    add(c.op + " · " + c.axis, "t");
    if (!c.kind.empty())
      add((c.kind == c.op ? "" : c.kind + ", ") + bytesText(c.bytes) + ", " +
              microsText(c.timeUs),
          "s");
    label.title =
        c.op + " on " + c.axis +
        (c.kind.empty() ? ": no bytes are moved"
                        : ": " + c.kind + " of " + bytesText(c.bytes) +
                              " on each rank, " + microsText(c.timeUs)) +
        "; conjugate: " + c.conjugate +
        (c.reason.empty() ? "" : "\nwhy: " + c.reason);
  } else {
    std::string ops;
    for (size_t i = 0; i < box.ops.size(); ++i)
      if (i < 3 || i + 1 == box.ops.size())
        ops += (i ? " · " : "") + box.ops[i];
      else if (i == 3)
        ops += " …";
    add(box.kind == Box::Kind::Ops ? ops : box.name, "t");
    for (size_t i = 0; i < box.weights.size() && i < 3; ++i) {
      const SceneValue &weight = scene.values[size_t(box.weights[i].value)];
      if (weight.shape.size() < 2 && box.weights.size() > 1 && i > 0)
        continue;
      add(tail(box.weights[i].name, 20) + " " + shapeOf(weight.shape) + " " +
              layoutOf(weight),
          "w");
    }
    if (box.kind == Box::Kind::Ops)
      add(box.name, "s");
    if (!box.saved.empty())
      add("reads " + std::to_string(box.saved.size()) +
              " kept by an earlier phase",
          "s");
  }
  if (box.kind != Box::Kind::Conversion && box.result >= 0)
    label.bars = scene.values[size_t(box.result)].states.size();
  for (const std::string &name : box.names)
    if (box.kind == Box::Kind::Ops)
      label.title += (label.title.empty() ? "" : ", ") + name;
  if (box.timeUs > 0)
    label.title += "\ncompute: " + microsText(box.timeUs);
  for (const SceneWeight &weight : box.weights)
    label.title += "\nweight " + describe(scene.values[size_t(weight.value)]);
  for (int value : box.saved)
    label.title += "\nkept " + describe(scene.values[size_t(value)]);
  if (box.result >= 0)
    label.title += "\n→ " + describe(scene.values[size_t(box.result)]);
  return label;
}

/// One segment: its boxes, what comes in from boxes before, what goes out.
class SegmentPicture {
public:
  SegmentPicture(const Scene &scene, int first, int last) : scene(scene) {
    addPorts(first, last, /*incoming=*/true);
    for (int i = first; i < last; ++i)
      add(scene.boxes[size_t(i)], i);
    addPorts(first, last, /*incoming=*/false);
    addNets(first, last);
  }

  std::string svg() {
    Placement placement = place(boxes, nets);
    std::string body;
    for (const Route &route : placement.routes)
      body += edge(route);
    for (size_t i = 0; i < boxes.size(); ++i)
      body += node(i);
    std::string size = number(placement.width) + "\" height=\"" +
                       number(placement.height) + "\" viewBox=\"0 0 " +
                       number(placement.width) + " " + number(placement.height);
    // A wide picture scrolls before its text gets too small to read.
    std::string least = number(0.62 * placement.width);
    return "<div class=\"picture\"><svg xmlns=\"http://www.w3.org/2000/svg\" "
           "width=\"" +
           size + "\" style=\"max-width:max(100%," + least +
           "px)\" role=\"img\">\n" + body + "</svg></div>\n";
  }

private:
  void add(const Box &box, int index) {
    shown.push_back({box, labelOf(scene, box)});
    const Label &label = shown.back().label;
    boxes.push_back({label.width(), label.height(), false, 0, 0});
    if (index >= 0)
      nodeOf[index] = int(boxes.size()) - 1;
  }

  void addPorts(int first, int last, bool incoming) {
    std::vector<int> values;
    for (int i = 0; i < int(scene.boxes.size()); ++i) {
      bool isInside = i >= first && i < last;
      if (isInside != incoming)
        continue;
      for (int value : scene.boxes[size_t(i)].inputs) {
        int maker = scene.makerOf[size_t(value)];
        bool madeInside = maker >= first && maker < last;
        if (madeInside != incoming &&
            std::find(values.begin(), values.end(), value) == values.end())
          values.push_back(value);
      }
    }
    for (int value : values) {
      Box port;
      port.kind = incoming ? Box::Kind::Input : Box::Kind::Output;
      port.name = (incoming ? "from " : "to what follows: ") +
                  scene.values[size_t(value)].name;
      port.result = value;
      add(port, -1);
      boxes.back().atBottom = !incoming;
      (incoming ? portIn : portOut)[value] = int(boxes.size()) - 1;
    }
  }

  void addNets(int first, int last) {
    std::map<int, Net> byValue;
    for (int i = first; i < last; ++i)
      for (int value : scene.boxes[size_t(i)].inputs) {
        int maker = scene.makerOf[size_t(value)];
        Net &net = byValue[value];
        net.value = value;
        net.from = maker >= first && maker < last ? nodeOf.at(maker)
                                                  : portIn.at(value);
        net.to.push_back(nodeOf.at(i));
      }
    for (const auto &[value, port] : portOut) {
      Net &net = byValue[value];
      net.value = value;
      net.from = nodeOf.at(scene.makerOf[size_t(value)]);
      net.to.push_back(port);
    }
    for (auto &[value, net] : byValue)
      nets.push_back(std::move(net));
  }

  std::string edge(const Route &route) const {
    const SceneValue &value =
        scene.values[size_t(nets[size_t(route.net)].value)];
    std::string text = "<g><title>" + escaped(describe(value)) + "</title>";
    size_t strands = std::max<size_t>(value.states.size(), 1);
    for (size_t k = 0; k < strands; ++k) {
      double shift = 3.2 * (double(k) - double(strands - 1) / 2);
      std::string state = value.states.empty() ? "I" : value.states[k];
      std::string path;
      for (size_t i = 0; i < route.points.size(); ++i) {
        auto [x, y] = route.points[i];
        if (i == 0) {
          path = "M" + number(x + shift) + " " + number(y);
          continue;
        }
        auto [x0, y0] = route.points[i - 1];
        double middle = (y0 + y) / 2;
        if (x0 == x)
          path += "V" + number(y);
        else
          path += "C" + number(x0 + shift) + " " + number(middle) + " " +
                  number(x + shift) + " " + number(middle) + " " +
                  number(x + shift) + " " + number(y);
      }
      text +=
          "<path class=\"e e" + stateClass(state) + "\" d=\"" + path + "\"/>";
    }
    return text + "</g>\n";
  }

  std::string node(size_t index) const {
    const LayeredBox &box = boxes[index];
    const Shown &what = shown[index];
    double left = box.x - box.width / 2;
    bool isConversion = what.box.kind == Box::Kind::Conversion;
    const char *style =
        isConversion ? (what.box.conversion.kind.empty() ? "quiet" : "moves")
        : what.box.kind == Box::Kind::Ops ? "box"
                                          : "io";
    std::string text = "<g class=\"node\"><title>" + escaped(what.label.title) +
                       "</title><rect class=\"" + style + "\" x=\"" +
                       number(left) + "\" y=\"" + number(box.y) +
                       "\" width=\"" + number(box.width) + "\" height=\"" +
                       number(box.height) + "\" rx=\"" +
                       (isConversion ? number(box.height / 2) : "7") + "\"/>";
    if (what.box.result >= 0 && !isConversion) {
      const auto &states = scene.values[size_t(what.box.result)].states;
      for (size_t k = 0; k < states.size(); ++k)
        text += "<rect class=\"f" + stateClass(states[k]) + "\" x=\"" +
                number(left + 4 + 5 * double(k)) + "\" y=\"" +
                number(box.y + 5) + "\" width=\"4\" height=\"" +
                number(box.height - 10) + "\" rx=\"2\"/>";
    }
    double y = box.y + 17, shift = 0;
    if (!isConversion && what.box.result >= 0)
      shift = 2.5 * double(scene.values[size_t(what.box.result)].states.size());
    for (const auto &[line, lineStyle] : what.label.lines) {
      text += std::string("<text class=\"") + lineStyle + "\" x=\"" +
              number(box.x + shift) + "\" y=\"" + number(y) +
              "\" text-anchor=\"middle\">" + escaped(line) + "</text>";
      y += kLine;
    }
    return text + "</g>\n";
  }

  struct Shown {
    Box box;
    Label label;
  };
  const Scene &scene;
  std::vector<Shown> shown;
  std::vector<LayeredBox> boxes;
  std::vector<Net> nets;
  std::map<int, int> nodeOf, portIn, portOut;
};

std::string foldedName(const Scene &scene, const Segment &segment) {
  // What the names of the first box of each layer have in common.
  std::vector<std::string> names;
  for (int k = 0; k < segment.count; ++k)
    names.push_back(
        scene.boxes[size_t(segment.first + k * segment.period)].name);
  std::set<std::string> different(names.begin(), names.end());
  return different.size() == 1 ? names[0]
                               : names.front() + " to " + names.back();
}

std::string layerList(const Scene &scene, const Segment &segment) {
  std::string text = "<details><summary class=\"soft\">ops of all " +
                     std::to_string(segment.count) +
                     " layers</summary><div class=\"scroll\"><table>";
  for (int i = 0; i < segment.period; ++i) {
    const Box &box = scene.boxes[size_t(segment.first + i)];
    std::string ops;
    for (const std::string &op : box.ops)
      ops += (ops.empty() ? "" : " · ") + op;
    text += "<tr><td>" + escaped(ops) + "</td><td>";
    for (int k = 0; k < segment.count; ++k)
      text +=
          (k ? "<br>" : "") +
          escaped(
              scene.boxes[size_t(segment.first + i + k * segment.period)].name);
    text += "</td></tr>";
  }
  return text + "</table></div></details>";
}

} // namespace

std::string scenePicture(const Scene &scene) {
  std::string text;
  for (const Segment &segment : segmentsOf(scene)) {
    std::string svg =
        SegmentPicture(scene, segment.first, segment.first + segment.period)
            .svg();
    if (segment.count == 1)
      text += "<div class=\"segment\">" + svg + "</div>\n";
    else
      text += "<details class=\"segment layer\" open><summary>One of " +
              std::to_string(segment.count) +
              " equal layers<span class=\"times\">× " +
              std::to_string(segment.count) + "</span> <span class=\"soft\">" +
              escaped(shortened(foldedName(scene, segment), 90)) +
              "</span></summary>" + svg + layerList(scene, segment) +
              "</details>\n";
  }
  return text;
}

} // namespace mtp::report
