// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/Report.h"
#include "tools/report/Html.h"
#include "tools/report/Layered.h"
#include "tools/report/MemoryChart.h"
#include "tools/report/Scene.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mtp;
using namespace mtp::report;
using nlohmann::json;

TEST(Html, EscapesMarkupAndWhatIsNoText) {
  EXPECT_EQ(escaped("<script>&\"'"), "&lt;script&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escaped("größer → ×"), "größer → ×");
  const std::string replacement = "\xef\xbf\xbd";
  EXPECT_EQ(escaped(std::string("a\0b", 3)), "a" + replacement + "b");
  EXPECT_EQ(escaped("\x1b[0m"), replacement + "[0m");
  EXPECT_EQ(escaped("\xff\xc3"), replacement + replacement);
  EXPECT_EQ(escaped("\xc0\x80"), replacement + replacement); // overlong
  EXPECT_EQ(escaped("\xed\xa0\x80"),
            replacement + replacement + replacement); // half a pair
}

TEST(Html, StatesHaveColours) {
  EXPECT_EQ(stateClass("I"), "i");
  EXPECT_EQ(stateClass("S(0)"), "s0");
  EXPECT_EQ(stateClass("S(12)"), "s4");
  EXPECT_EQ(stateClass("P(max)"), "p");
  EXPECT_EQ(number(0.04), "0");
  EXPECT_EQ(number(-0.04), "0");
  EXPECT_EQ(number(2.25), "2.3");
}

/// Two ways of different length from one box to another, and one that ends.
TEST(Layered, EdgesGoDownAndBoxesDoNotOverlap) {
  std::vector<LayeredBox> boxes(7, {100, 30, false, 0, 0});
  boxes[6].atBottom = true;
  std::vector<Net> nets = {
      {0, 0, {1, 4}}, {1, 1, {2, 3}}, {2, 2, {4}}, {3, 3, {4, 6}}, {4, 4, {5}}};
  Placement placement = place(boxes, nets);
  EXPECT_EQ(placement.routes.size(), 8u);
  for (const Route &route : placement.routes) {
    const LayeredBox &from = boxes[size_t(nets[size_t(route.net)].from)],
                     &to = boxes[size_t(route.target)];
    EXPECT_LT(from.y + from.height, to.y);
    for (size_t i = 1; i < route.points.size(); ++i)
      EXPECT_LE(route.points[i - 1].second, route.points[i].second);
    EXPECT_EQ(route.points.back(), (std::pair{to.x, to.y}));
  }
  for (size_t a = 0; a < boxes.size(); ++a) {
    EXPECT_GE(boxes[a].x - boxes[a].width / 2, 0);
    EXPECT_LE(boxes[a].x + boxes[a].width / 2, placement.width);
    EXPECT_LE(boxes[a].y + boxes[a].height, placement.height);
    EXPECT_LE(boxes[a].y, boxes[6].y);
    for (size_t b = 0; b < a; ++b)
      EXPECT_TRUE(boxes[a].y != boxes[b].y ||
                  std::abs(boxes[a].x - boxes[b].x) >= 100)
          << a << " " << b;
  }
}

/// A graph of `layers` times matmul, add of what came in, and a mask for all.
static json graphOf(int layers) {
  json values = json::array(), ops = json::array();
  auto value = [&](const char *state) {
    values.push_back({{"name", "v" + std::to_string(values.size())},
                      {"type", "f32"},
                      {"shape", {4, 8}},
                      {"layout", ""},
                      {"states", {state}},
                      {"local_shape", {4, 8}},
                      {"bytes", 128}});
    return int(values.size()) - 1;
  };
  auto op = [&](const char *kind, const std::string &name, json operands,
                double time) {
    int result = value("I");
    ops.push_back({{"name", name},
                   {"op", kind},
                   {"phase", "forward"},
                   {"operands", std::move(operands)},
                   {"results", {result}},
                   {"time_us", time}});
    return result;
  };
  int x = op("input", "x", json::array(), 0), mask = -1;
  for (int i = 0; i < layers; ++i) {
    std::string layer = "h." + std::to_string(i);
    int weight = op("mtp.parameter", layer + ".w", json::array(), 0);
    ops.back()["parameter"] = layer + ".w";
    int product = op("mtp.matmul", layer + ".product", {x, weight}, 3);
    int tanh = op("mtp.tanh", layer + ".tanh", {product}, 0);
    if (mask < 0) // in the middle of the first layer
      mask = op("mtp.sin", "mask", {op("input", "m", json::array(), 0)}, 0);
    int masked = op("mtp.mul", layer + ".masked", {tanh, mask}, 0);
    x = op("mtp.add", layer + ".add", {masked, x}, 0);
  }
  return json::array({{{"function", "main"},
                       {"values", values},
                       {"ops", ops},
                       {"outputs", {{{"name", "y"}, {"value", x}}}}}});
}

TEST(Scene, EqualLayersAreOneSegment) {
  std::vector<Scene> scenes = scenesOf(graphOf(5));
  ASSERT_EQ(scenes.size(), 1u);
  const Scene &scene = scenes[0];
  // x; m with sin; five times: matmul with tanh, mul, add; y.
  ASSERT_EQ(scene.boxes.size(), 3u + 5 * 3 + 1);
  for (size_t i = 0; i < scene.boxes.size(); ++i)
    for (int input : scene.boxes[i].inputs)
      EXPECT_LT(scene.makerOf[size_t(input)], int(i));
  std::vector<Segment> segments = segmentsOf(scene);
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[1].count, 5);
  EXPECT_EQ(segments[1].period, 3);
  const Box &first = scene.boxes[size_t(segments[1].first)];
  EXPECT_EQ(first.ops, (std::vector<std::string>{"matmul", "tanh"}));
  ASSERT_EQ(first.weights.size(), 1u);
  EXPECT_EQ(first.weights[0].name, "h.0.w");
}

TEST(Scene, OneLayerIsNoRepetition) {
  std::vector<Scene> scenes = scenesOf(graphOf(1));
  ASSERT_EQ(segmentsOf(scenes[0]).size(), 1u);
}

/// a is written and read twice; b lives while a dies; a collective holds its
/// operands until it is done; c is written over a.
TEST(MemoryChart, ValuesLiveFromWriteToLastRead) {
  using Kind = Instruction::Kind;
  Artifact artifact;
  auto arena = [](int64_t offset, int64_t bytes) {
    return BufferRef{BufferRef::Space::Arena, 0, offset, bytes};
  };
  auto step = [](Kind kind, std::vector<BufferRef> buffers, int64_t results) {
    Instruction i{};
    i.kind = kind;
    i.buffers = std::move(buffers);
    i.results = results;
    return i;
  };
  Entry entry;
  BufferRef a = arena(0, 64), b = arena(64, 32), c = arena(0, 16);
  entry.program = {step(Kind::Kernel, {a}, 1),   step(Kind::Kernel, {a, b}, 1),
                   step(Kind::Kernel, {a}, 0),   step(Kind::Kernel, {c}, 1),
                   step(Kind::Start, {b, b}, 0), step(Kind::Kernel, {c}, 0),
                   step(Kind::Done, {}, 0)};
  entry.arenaBytes = 96;
  EXPECT_EQ(liveBytes(artifact, entry),
            (std::vector<int64_t>{64, 96, 96, 48, 48, 48, 32}));
}

/// A collective that is given in parts is listed, predicted and counted once.
TEST(Json, PartsOfACollectiveAreOneEntry) {
  Artifact artifact;
  for (int64_t partOf : {-1, 0, -1}) {
    CollectiveSite site{};
    site.op = "reduce_from";
    site.node = partOf < 0 ? "down" : "down, part 2 of 2";
    site.partOf = partOf;
    site.predictedCount = partOf < 0;
    site.predictedBytes = partOf < 0 ? 64 : 0;
    artifact.collectiveSites.push_back(site);
  }
  mtp::Report report{Options()};
  report.addArtifact(artifact);
  const nlohmann::json &list = report.value()["collectives"];
  ASSERT_EQ(list.size(), 2u);
  for (const nlohmann::json &entry : list) {
    EXPECT_EQ(entry["node"], "down");
    EXPECT_EQ(entry["predicted_count"], 1);
    EXPECT_EQ(entry["predicted_bytes"], 64);
  }
}
