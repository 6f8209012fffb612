// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/runtime/TestArtifact.h"
#include "runtime/support/Sha256.h"

#include <fstream>
#include <iterator>

using namespace mtp;

std::string test::objectBytes(const std::string &name) {
  std::ifstream file(std::string(MTP_TEST_OBJECT_DIR) + "/" + name + ".so",
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Artifact test::multiplyAndGather(int64_t rows, int64_t ranks) {
  using Kind = Instruction::Kind;
  using Space = BufferRef::Space;
  Artifact a;
  a.model = "multiply.onnx";
  a.mesh = "tp=" + std::to_string(ranks);
  a.axes.axes = {{"tp", ranks}};
  a.object = objectBytes("kernels");
  a.kernelNames = {"multiply", "look_up", "add_one", "hang", "exponent"};
  a.faults = {"an id lies outside of the table"};
  a.plan = nlohmann::json::object();

  Parameter w;
  w.name = "w";
  w.source.kind = Source::Kind::Embedded;
  w.source.bytes = static_cast<uint64_t>(rows) * 4;
  w.source.shape = {rows};
  w.layout = cut(DType::F32, {rows}, 0);
  for (int64_t i = 0; i < rows; ++i) {
    float value = static_cast<float>(i + 1);
    a.data.append(reinterpret_cast<const char *>(&value), 4);
  }
  w.source.sha256 = Sha256::hex(a.data.data(), a.data.size());
  a.parameters = {w};
  a.rankValues = {{RankValue::Kind::Offset, rows, {{0}, 1}},
                  {RankValue::Kind::Coordinate, 0, {{0}, 1}}};

  int64_t local = w.layout.localShape(a.axes)[0];
  CollectiveSite gather;
  gather.kind = CollectiveSite::Kind::AllGather;
  gather.op = "all_gather";
  gather.axes = {0};
  gather.axisName = "tp";
  gather.inShape = {local};
  gather.outShape = {rows};
  gather.extent = rows;
  gather.sharding = {{0}, 1};
  gather.node = "y";
  a.collectiveSites = {gather};

  Entry e;
  Input x;
  x.name = "x";
  x.layout = cut(DType::F32, {rows}, 0);
  x.dimNames = {"rows"};
  e.inputs = {x};
  e.outputs = {{"y", whole(DType::F32, {rows})}};
  e.arenaBytes = local * 4;
  BufferRef product = arena(0, local * 4);
  Instruction kernel{Kind::Kernel, Multiply, {}, local, 1, "multiply"};
  kernel.buffers = {at(Space::Input, 0, 0, local * 4),
                    at(Space::Parameter, 0, 0, local * 4), product};
  Instruction start{Kind::Start, 0, {}, 1, 1, "gather"};
  start.buffers = {product, at(Space::Output, 0, 0, rows * 4)};
  Instruction done{Kind::Done, 0, {}, 1, 1, "gather"};
  e.program = {kernel, start, done};
  a.entries = {e};
  return a;
}
