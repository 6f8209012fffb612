// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/onnx/TestModels.h"

#include <cmath>
#include <cstring>

using namespace mtp;
using namespace mtp::onnx;

namespace {
std::string bytesOf(const std::vector<float> &values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(float)};
}

TEST(Reader, ReadsNamesAttributesAndTypes) {
  TestFolder folder;
  auto proto = addModel();
  auto *attribute = proto.mutable_graph()->mutable_node(0)->add_attribute();
  attribute->set_name("axes");
  attribute->set_type(::onnx::AttributeProto::INTS);
  attribute->add_ints(-1);
  attribute->add_ints(2);
  Model model = readModel(folder.write("a.onnx", proto));
  EXPECT_EQ(model.irVersion, 8);
  EXPECT_EQ(model.opsets.at(""), 17);
  ASSERT_EQ(model.graph.nodes.size(), 1u);
  const Node &node = model.graph.nodes[0];
  EXPECT_EQ(node.op, "Add");
  EXPECT_EQ(node.inputs, (std::vector<std::string>{"x", "w"}));
  EXPECT_EQ(node.attributes.at("axes").ints, (std::vector<int64_t>{-1, 2}));
  ASSERT_EQ(model.graph.inputs.size(), 1u);
  EXPECT_EQ(model.graph.inputs[0].type, DType::F32);
  EXPECT_EQ(*model.graph.inputs[0].dims[0].value, 4);
}

TEST(Reader, LargeRawDataStaysInTheFile) {
  TestFolder folder;
  auto proto = addModel();
  std::vector<float> values(1000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i);
  auto *w = proto.mutable_graph()->mutable_initializer(0);
  w->set_dims(0, 1000);
  w->set_raw_data(bytesOf(values));
  std::string path = folder.write("a.onnx", proto);
  Model model = readModel(path);
  const Tensor &tensor = model.graph.initializers[0];
  ASSERT_TRUE(tensor.file);
  EXPECT_FALSE(tensor.owned);
  EXPECT_EQ(tensor.file->path(), path);
  EXPECT_EQ(tensor.bytes, 4000u);
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(tensor.offset));
  std::string bytes(tensor.bytes, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_EQ(bytes, bytesOf(values));
  EXPECT_EQ(std::memcmp(tensor.data(), values.data(), 4000), 0);
}

TEST(Reader, PackedFloatDataStaysInTheFileToo) {
  TestFolder folder;
  auto proto = addModel();
  auto *w = proto.mutable_graph()->mutable_initializer(0);
  w->clear_raw_data();
  w->set_dims(0, 600);
  for (int i = 0; i < 600; ++i)
    w->add_float_data(static_cast<float>(i) / 2);
  Model model = readModel(folder.write("a.onnx", proto));
  const Tensor &tensor = model.graph.initializers[0];
  ASSERT_TRUE(tensor.file);
  float last;
  std::memcpy(&last, tensor.data() + 599 * 4, 4);
  EXPECT_EQ(last, 299.5f);
}

TEST(Reader, TypedDataBecomesLittleEndianElements) {
  TestFolder folder;
  auto proto = addModel();
  auto *w = proto.mutable_graph()->mutable_initializer(0);
  w->clear_raw_data();
  w->set_data_type(::onnx::TensorProto::BOOL);
  for (int value : {1, 0, 7, 0})
    w->add_int32_data(value);
  auto *half = proto.mutable_graph()->add_initializer();
  half->set_name("half");
  half->set_data_type(::onnx::TensorProto::FLOAT16);
  half->add_dims(1);
  half->add_int32_data(0x3c00);
  Model model = readModel(folder.write("a.onnx", proto));
  EXPECT_EQ(*model.graph.initializers[0].owned, std::string("\1\0\1\0", 4));
  EXPECT_EQ(*model.graph.initializers[1].owned, std::string("\0\x3c", 2));
}

TEST(Reader, BooleansAreZeroOrOne) {
  TestFolder folder;
  auto proto = addModel();
  auto *w = proto.mutable_graph()->mutable_initializer(0);
  w->set_data_type(::onnx::TensorProto::BOOL);
  w->set_dims(0, 2000);
  w->set_raw_data(std::string(2000, '\x55'));
  Model model = readModel(folder.write("a.onnx", proto));
  ASSERT_TRUE(model.graph.initializers[0].owned);
  EXPECT_EQ(*model.graph.initializers[0].owned, std::string(2000, '\1'));
}

TEST(Reader, OtherFilesHaveMessagesOfTheirOwn) {
  TestFolder folder;
  EXPECT_HAS(failureOf(folder.path("absent.onnx")), "No such file");
  EXPECT_HAS(failureOf(folder.path("")), "is a directory");
  EXPECT_HAS(failureOf(folder.write("empty.onnx", std::string())), "is empty");
  EXPECT_HAS(failureOf(folder.write(
                 "lfs.onnx",
                 "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")),
             "pointer of Git LFS");
  EXPECT_HAS(failureOf(folder.write("text.onnx", "module {\n}\n")),
             "is a text file");
  EXPECT_HAS(failureOf(folder.write("zip.onnx", std::string("PK\3\4\0\0", 6))),
             "is a zip archive");
  EXPECT_HAS(failureOf(folder.write("noise.onnx",
                                    std::string("\xff\xfe\xfd\x80\x81", 5))),
             "not an ONNX model");
  EXPECT_HAS(failureOf("/dev/null"), "is not a regular file");
}

TEST(Reader, ATruncatedFileSaysWhereItEnds) {
  TestFolder folder;
  std::string whole = addModel().SerializeAsString();
  EXPECT_HAS(
      failureOf(folder.write("a.onnx", whole.substr(0, whole.size() / 2))),
      "the file ends inside a field");
}

TEST(Reader, VersionsOutOfRangeAreNamed) {
  TestFolder folder;
  auto proto = addModel();
  proto.set_ir_version(2);
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)), "IR version 2");
  proto.set_ir_version(14);
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)), "IR version 14");
  proto.set_ir_version(8);
  proto.mutable_opset_import(0)->set_version(10);
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)), "opset 10");
  proto.mutable_opset_import(0)->set_version(25);
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)), "opset 25");
  proto.clear_opset_import();
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)), "imports no version");
}

TEST(Reader, AModelWithoutAGraphIsRefused) {
  TestFolder folder;
  auto proto = addModel();
  proto.clear_graph();
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)), "has no graph");
}

TEST(Reader, TensorsMustHaveTheDataTheirShapeNeeds) {
  TestFolder folder;
  auto check = [&](auto change, const char *message) {
    auto proto = addModel();
    change(*proto.mutable_graph()->mutable_initializer(0));
    EXPECT_HAS(failureOf(folder.write("a.onnx", proto)), message);
  };
  check([](auto &w) { w.set_dims(0, 5); }, "needs 20 bytes, its data has 16");
  check([](auto &w) { w.set_dims(0, -4); }, "negative dimension, -4");
  check([](auto &w) { w.clear_raw_data(); }, "has no data");
  check([](auto &w) { w.add_float_data(1); }, "in more than one field");
  check([](auto &w) { w.clear_data_type(); }, "has no element type");
  check(
      [](auto &w) {
        w.set_dims(0, INT64_MAX);
        w.add_dims(INT64_MAX);
      },
      "more than 2^63 bytes");
  check([](auto &w) { w.set_dims(0, 0); }, "needs 0 bytes");
  check(
      [](auto &w) {
        w.clear_raw_data();
        w.add_int64_data(1);
      },
      "field of another type");
  check([](auto &w) { w.mutable_segment()->set_begin(0); }, "in segments");
  check(
      [](auto &w) {
        for (int i = 0; i < 100; ++i)
          w.add_dims(1);
      },
      "101 dimensions");
  check(
      [](auto &w) {
        w.set_dims(0, 500);
        w.set_raw_data(std::string(1999, 'a'));
      },
      "needs 2000 bytes");
  check(
      [](auto &w) {
        w.set_dims(0, 500);
        w.set_raw_data(std::string(2000, 'a'));
        w.add_float_data(1);
      },
      "in more than one field");
}

TEST(Reader, NamesMustBeUnique) {
  TestFolder folder;
  auto proto = addModel();
  *proto.mutable_graph()->add_initializer() = proto.graph().initializer(0);
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)),
             "initializer 'w' is defined twice");
  proto = addModel();
  *proto.mutable_graph()->add_input() = proto.graph().input(0);
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)),
             "input 'x' is declared twice");
  proto = addModel();
  for (int i = 0; i < 2; ++i) {
    auto *attribute = proto.mutable_graph()->mutable_node(0)->add_attribute();
    attribute->set_name("axis");
    attribute->set_type(::onnx::AttributeProto::INT);
  }
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)),
             "attribute 'axis' of node 'add' is given twice");
  proto = addModel();
  for (int i = 0; i < 2; ++i) {
    auto *function = proto.add_functions();
    function->set_name("f");
    function->set_domain("d");
  }
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)),
             "function 'd::f' is defined twice");
}

TEST(Reader, NamesMustBeText) {
  TestFolder folder;
  for (const char *name : {"\xc3\x28", "\xed\xa0\x80", "\xff"}) {
    auto proto = addModel();
    proto.mutable_graph()->mutable_node(0)->set_name(name);
    EXPECT_HAS(failureOf(folder.write("a.onnx", proto)), "not UTF-8");
  }
}

TEST(Reader, TypesThatMtpLacksAreKeptByName) {
  TestFolder folder;
  auto proto = addModel();
  proto.mutable_graph()->mutable_initializer(0)->set_data_type(
      ::onnx::TensorProto::STRING);
  Model model = readModel(folder.write("a.onnx", proto));
  EXPECT_EQ(model.graph.initializers[0].foreignType, "string");
}

TEST(Reader, UnknownFieldsThatLookLikePayloadsAreDropped) {
  // A file that claims, in the fields that the walk over the file uses, that
  // its tensor lies at byte 2^40.
  TestFolder folder;
  auto proto = addModel();
  auto *w = proto.mutable_graph()->mutable_initializer(0);
  auto *unknown = w->GetReflection()->MutableUnknownFields(w);
  unknown->AddVarint(200000, 9);
  unknown->AddVarint(200001, uint64_t(1) << 40);
  unknown->AddVarint(200002, 16);
  Model model = readModel(folder.write("a.onnx", proto));
  const Tensor &tensor = model.graph.initializers[0];
  ASSERT_TRUE(tensor.file);
  EXPECT_EQ(tensor.bytes, 16u);
  EXPECT_LE(tensor.offset + tensor.bytes, tensor.file->size());
}
} // namespace
