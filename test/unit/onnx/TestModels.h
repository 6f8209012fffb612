// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TestModels.h - small models, written to a folder of the test -------===//
#ifndef MTP_TEST_UNIT_ONNX_TESTMODELS_H
#define MTP_TEST_UNIT_ONNX_TESTMODELS_H

#include "compiler/frontend/onnx/Model.h"
#include "compiler/frontend/onnx/OnnxError.h"

#include "onnx-ml.pb.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace mtp::onnx {

/// A folder that goes with the object.
class TestFolder {
public:
  TestFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "mtp-onnx-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(root); }
  TestFolder(const TestFolder &) = delete;
  TestFolder &operator=(const TestFolder &) = delete;

  std::string path(const std::string &name) const {
    return (root / name).string();
  }
  std::string write(const std::string &name, const std::string &bytes) const {
    std::filesystem::create_directories(
        std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string write(const std::string &name,
                    const ::onnx::ModelProto &model) const {
    return write(name, model.SerializeAsString());
  }

private:
  std::filesystem::path root;
};

/// y = x + w with x, w of 4 floats; change what the test is about.
inline ::onnx::ModelProto addModel() {
  ::onnx::ModelProto model;
  model.set_ir_version(8);
  auto *opset = model.add_opset_import();
  opset->set_domain("");
  opset->set_version(17);
  auto *graph = model.mutable_graph();
  graph->set_name("main");
  auto *x = graph->add_input();
  x->set_name("x");
  x->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  x->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->add_dim()
      ->set_dim_value(4);
  *graph->add_output() = *x;
  graph->mutable_output(0)->set_name("y");
  auto *w = graph->add_initializer();
  w->set_name("w");
  w->set_data_type(1);
  w->add_dims(4);
  w->set_raw_data(std::string(16, '\1'));
  auto *node = graph->add_node();
  node->set_op_type("Add");
  node->set_name("add");
  node->add_input("x");
  node->add_input("w");
  node->add_output("y");
  return model;
}

/// The message of the failure to read `path`; "" if it can be read.
inline std::string failureOf(const std::string &path) {
  try {
    readModel(path);
  } catch (const OnnxFailure &failure) {
    EXPECT_EQ(failure.error.kind, "input");
    return failure.error.message;
  }
  return "";
}

#define EXPECT_HAS(TEXT, PART)                                                 \
  do {                                                                         \
    std::string text = (TEXT);                                                 \
    EXPECT_NE(text.find(PART), std::string::npos) << text;                     \
  } while (false)

} // namespace mtp::onnx

#endif // MTP_TEST_UNIT_ONNX_TESTMODELS_H
