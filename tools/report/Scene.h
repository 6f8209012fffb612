// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Scene.h - what the picture of a planned graph shows ----------------===//
//
// From the `graph` of an explanation (docs/explain-json.md), one scene a
// function and phase:
//
//   - ops that only one op feeds, and that do no product, join their producer:
//     "matmul, add, gelu" is one box
//   - weights stand in the box that reads them, constants nowhere
//   - a conversion is a box of its own
//   - what comes from another phase is a note at the box
//
// Boxes stand behind what feeds them; layers of a model follow each other.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_REPORT_SCENE_H
#define MTP_TOOLS_REPORT_SCENE_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mtp::report {

struct SceneValue {
  std::string name, type, layout;
  std::vector<int64_t> shape, localShape;
  std::vector<std::string> states; ///< one a mesh axis: "S(1)"
  int64_t bytes = 0;               ///< of a rank
};

/// A weight as its reader sees it.
struct SceneWeight {
  std::string name;
  int value = -1;
};

struct Conversion {
  std::string op, kind, axis, conjugate, reason; ///< kind "": nothing is moved
  int64_t bytes = 0;
  double timeUs = 0;
};

struct Box {
  enum class Kind : uint8_t { Input, Ops, Conversion, Output } kind = Kind::Ops;
  std::string name;               ///< of its last op
  std::vector<std::string> ops;   ///< kinds, without dialect
  std::vector<std::string> names; ///< of all its ops
  std::vector<SceneWeight> weights;
  std::vector<int> inputs;  ///< values from other boxes, each once
  std::vector<int> outputs; ///< values that leave it
  std::vector<int> saved;   ///< values from another phase
  int result = -1;          ///< the value whose layout colours it
  double timeUs = 0;
  Conversion conversion;
};

struct Scene {
  std::string function, phase;
  std::vector<SceneValue> values;
  std::vector<Box> boxes;
  std::vector<int> makerOf; ///< box of each value, -1: none here
};

/// The scenes of `graph`, forward first; those without boxes are left out.
/// Throws nlohmann::json::exception if it is no such graph.
std::vector<Scene> scenesOf(const nlohmann::json &graph);

/// Sorts the boxes, which stand behind what feeds them: what needs no product
/// before the first layer, that which the last layers read first (masks, rotary
/// tables); then what feeds a box before it, the nearest to the model's inputs
/// first. So equal layers have their boxes in the same order.
void orderBoxes(Scene &scene);

/// Boxes that come again: [first, first + period), `count` times in a row.
struct Segment {
  int first = 0, period = 0, count = 1;
  int last() const { return first + period * count; }
};

/// The boxes of a scene in order, repeated layers found. A repetition has equal
/// boxes (kinds, shapes, layouts, weights), wired alike.
std::vector<Segment> segmentsOf(const Scene &scene);

} // namespace mtp::report

#endif // MTP_TOOLS_REPORT_SCENE_H
