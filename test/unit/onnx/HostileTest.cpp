// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- HostileTest.cpp - damaged files end with a message -----------------===//
//
// Worth most under AddressSanitizer. Every reference that a damaged file yields
// must lie inside a file: the test reads the first and the last byte of each.
//
//===----------------------------------------------------------------------===//
#include "test/unit/onnx/TestModels.h"

#include <random>

using namespace mtp::onnx;
namespace fs = std::filesystem;

namespace {
uint64_t touch(const Graph &graph) {
  uint64_t sum = 0;
  for (const Tensor &tensor : graph.initializers)
    if (tensor.foreignType.empty() && tensor.bytes)
      sum += tensor.data()[0] + tensor.data()[tensor.bytes - 1];
  for (const Node &node : graph.nodes)
    for (const auto &[name, attribute] : node.attributes) {
      if (attribute.tensor && attribute.tensor->foreignType.empty() &&
          attribute.tensor->bytes)
        sum += attribute.tensor->data()[attribute.tensor->bytes - 1];
      if (attribute.graph)
        sum += touch(*attribute.graph);
    }
  return sum;
}

/// Reads the file; a failure must have a message.
void readDamaged(const std::string &path, int &refused) {
  try {
    Model model = readModel(path);
    touch(model.graph);
  } catch (const OnnxFailure &failure) {
    EXPECT_EQ(failure.error.kind, "input");
    EXPECT_FALSE(failure.error.message.empty());
    ++refused;
  }
}

std::vector<std::string> modelBytes() {
  std::vector<std::string> result{addModel().SerializeAsString()};
  for (const auto &entry : fs::directory_iterator(MTP_TEST_MODELS)) {
    std::ifstream file(entry.path() / "model.onnx", std::ios::binary);
    if (!file)
      continue;
    result.emplace_back(std::istreambuf_iterator<char>(file),
                        std::istreambuf_iterator<char>());
  }
  return result;
}

TEST(Hostile, TruncatedFiles) {
  TestFolder folder;
  for (const std::string &bytes : modelBytes()) {
    int refused = 0, tried = 0;
    for (size_t size = 1; size < bytes.size();
         size += std::max<size_t>(1, bytes.size() / 12), ++tried)
      readDamaged(folder.write("a.onnx", bytes.substr(0, size)), refused);
    EXPECT_GT(refused, tried * 3 / 4);
  }
}

TEST(Hostile, FlippedBytes) {
  TestFolder folder;
  std::mt19937_64 random(7);
  int refused = 0;
  for (const std::string &bytes : modelBytes())
    for (int round = 0; round < 24; ++round) {
      std::string damaged = bytes;
      // Half of the rounds stay in the first part, which holds the structure.
      size_t span =
          round % 2 ? damaged.size() : std::min<size_t>(damaged.size(), 4096);
      for (int flips = 1 + round % 3; flips > 0; --flips)
        damaged[random() % span] ^= static_cast<char>(1u << (random() % 8));
      readDamaged(folder.write("a.onnx", damaged), refused);
    }
  EXPECT_GT(refused, 0);
}

TEST(Hostile, EverySmallFlip) {
  TestFolder folder;
  std::string bytes = addModel().SerializeAsString();
  int refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at)
    for (int value : {0x00, 0x7f, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(value);
      readDamaged(folder.write("a.onnx", damaged), refused);
    }
  EXPECT_GT(refused, 0);
}

TEST(Hostile, DeepNesting) {
  // Subgraphs within subgraphs, far beyond what the parser may recurse into.
  TestFolder folder;
  ::onnx::GraphProto graph;
  for (int depth = 0; depth < 300; ++depth) {
    ::onnx::GraphProto outer;
    auto *attribute = outer.add_node()->add_attribute();
    attribute->set_name("then_branch");
    attribute->set_type(::onnx::AttributeProto::GRAPH);
    attribute->mutable_g()->Swap(&graph);
    graph.Swap(&outer);
  }
  auto proto = addModel();
  proto.mutable_graph()->MergeFrom(graph);
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)), "nested too deeply");
}
} // namespace
