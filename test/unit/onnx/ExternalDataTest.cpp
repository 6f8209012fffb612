// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/onnx/TestModels.h"

#include <sys/stat.h>

using namespace mtp::onnx;
namespace fs = std::filesystem;

namespace {
/// The model whose weight of 16 bytes lies in `location`.
::onnx::ModelProto
externalModel(const std::string &location,
              const std::map<std::string, std::string> &entries = {}) {
  auto proto = addModel();
  auto *w = proto.mutable_graph()->mutable_initializer(0);
  w->clear_raw_data();
  w->set_data_location(::onnx::TensorProto::EXTERNAL);
  auto add = [&](const std::string &key, const std::string &value) {
    auto *entry = w->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("location", location);
  for (const auto &[key, value] : entries)
    add(key, value);
  return proto;
}

TEST(ExternalData, IsMappedAtItsOffset) {
  TestFolder folder;
  folder.write("sub/weights", "0123456789abcdefXYZ!");
  Model model = readModel(folder.write(
      "a.onnx",
      externalModel("sub/weights", {{"offset", "4"}, {"length", "16"}})));
  const Tensor &w = model.graph.initializers[0];
  ASSERT_TRUE(w.file);
  EXPECT_EQ(w.offset, 4u);
  EXPECT_EQ(std::string(reinterpret_cast<const char *>(w.data()), 16),
            "456789abcdefXYZ!");
}

TEST(ExternalData, MustLieInTheFile) {
  TestFolder folder;
  folder.write("weights", std::string(16, 'a'));
  auto check = [&](std::map<std::string, std::string> entries,
                   const char *message) {
    EXPECT_HAS(
        failureOf(folder.write("a.onnx", externalModel("weights", entries))),
        message);
  };
  check({{"offset", "1"}}, "ends at byte 17, 'weights' has 16");
  check({{"offset", "9223372036854775807"}}, "ends at byte");
  check({{"offset", "-1"}}, "not a number of bytes");
  check({{"offset", "99999999999999999999"}}, "not a number of bytes");
  check({{"offset", "1e3"}}, "not a number of bytes");
  check({{"length", "15"}}, "has length 15");
  check({{"length", "1152921504606846976"}}, "has length");
  check({{"location", "weights"}}, "gives 'location' twice");
}

TEST(ExternalData, LocationMustBeAFileUnderTheFolder) {
  TestFolder folder;
  folder.write("secret", std::string(16, 'a'));
  fs::create_directories(folder.path("model/inner"));
  auto check = [&](const std::string &location, const char *message) {
    EXPECT_HAS(failureOf(folder.write("model/a.onnx", externalModel(location))),
               message);
  };
  check("", "has no location");
  check("absent", "cannot open");
  check("../secret", "leaves the folder of the model");
  check("inner/../../secret", "leaves the folder of the model");
  check(folder.path("secret"), "absolute location");
  check("inner", "not a regular file");
  check(".", "leaves the folder");
  check(std::string("a\0b", 3), "zero byte");
  ASSERT_EQ(::mkfifo(folder.path("model/pipe").c_str(), 0600), 0);
  check("pipe", "not a regular file");
}

TEST(ExternalData, ALinkOutOfTheFolderIsRefused) {
  TestFolder folder;
  folder.write("secret", std::string(16, 'a'));
  fs::create_directories(folder.path("model"));
  fs::create_symlink(folder.path("secret"), folder.path("model/weights"));
  EXPECT_HAS(failureOf(folder.write("model/a.onnx", externalModel("weights"))),
             "leaves the folder of the model");
  // A sibling whose name starts like the model's folder.
  folder.write("model-2/weights", std::string(16, 'a'));
  EXPECT_HAS(failureOf(folder.write("model/a.onnx",
                                    externalModel("../model-2/weights"))),
             "leaves the folder");
}

TEST(ExternalData, ACacheOfLinksIsAccepted) {
  // Hugging Face: snapshots/1/model.onnx -> ../../blobs/m, weights likewise.
  TestFolder folder;
  folder.write("blobs/m", externalModel("model.onnx_data"));
  folder.write("blobs/w", std::string(16, 'a'));
  fs::create_directories(folder.path("snapshots/1"));
  fs::create_symlink("../../blobs/m", folder.path("snapshots/1/model.onnx"));
  fs::create_symlink("../../blobs/w",
                     folder.path("snapshots/1/model.onnx_data"));
  EXPECT_EQ(failureOf(folder.path("snapshots/1/model.onnx")), "");
}

TEST(ExternalData, LinksInsideTheFolderAreAccepted) {
  TestFolder folder;
  folder.write("model/inner/weights", std::string(16, 'a'));
  fs::create_symlink("inner/weights", folder.path("model/link"));
  EXPECT_EQ(failureOf(folder.write("model/a.onnx", externalModel("link"))), "");
  EXPECT_EQ(
      failureOf(folder.write("model/a.onnx", externalModel("inner/../link"))),
      "");
}

TEST(ExternalData, ATensorHasOnePlaceOnly) {
  TestFolder folder;
  folder.write("weights", std::string(16, 'a'));
  auto proto = externalModel("weights");
  proto.mutable_graph()->mutable_initializer(0)->set_raw_data(
      std::string(16, 'b'));
  EXPECT_HAS(failureOf(folder.write("a.onnx", proto)),
             "external data and data of its own");
}
} // namespace
