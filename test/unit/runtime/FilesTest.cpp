// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/io/Npz.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>

using namespace mtp;

namespace {

class FilesTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "mtp-files-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  std::string path(const std::string &file) const {
    return directory + "/" + file;
  }
  void write(const std::string &file, const std::string &bytes) const {
    std::ofstream(path(file), std::ios::binary) << bytes;
  }
  std::string directory;
  Error error;
};

HostTensor counted(DType type, std::vector<int64_t> shape) {
  HostTensor tensor(type, std::move(shape));
  for (size_t i = 0; i < tensor.bytes.size(); ++i)
    tensor.bytes.data()[i] =
        static_cast<char>(type == DType::Bool ? i % 2 : i * 7 + 1);
  return tensor;
}

bool same(const HostTensor &a, const HostTensor &b) {
  return a.type == b.type && a.shape == b.shape &&
         a.bytes.size() == b.bytes.size() &&
         (a.bytes.empty() ||
          std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0);
}

TensorMap allTypes() {
  TensorMap tensors;
  for (int i = 0; i <= static_cast<int>(DType::Bool); ++i)
    if (DType type = static_cast<DType>(i); type != DType::BF16)
      tensors.emplace(name(type), counted(type, {2, 3}));
  tensors.emplace("scalar", counted(DType::F32, {}));
  tensors.emplace("empty", counted(DType::I64, {0, 4}));
  tensors.emplace("/h.0/attn::q\xc3\xa9", counted(DType::F32, {5}));
  return tensors;
}

TEST_F(FilesTest, NpzRoundTripsAndIsDeterministic) {
  TensorMap tensors = allTypes(), back;
  ASSERT_TRUE(writeNpz(path("a.npz"), tensors, error)) << error.message;
  ASSERT_TRUE(writeNpz(path("b.npz"), tensors, error)) << error.message;
  ASSERT_TRUE(readNpz(path("a.npz"), back, error)) << error.message;
  ASSERT_EQ(back.size(), tensors.size());
  for (auto &[key, tensor] : tensors)
    EXPECT_TRUE(same(tensor, back.at(key))) << key;
  std::string a, b;
  ASSERT_TRUE(readFile(path("a.npz"), a, error));
  ASSERT_TRUE(readFile(path("b.npz"), b, error));
  EXPECT_EQ(a, b);
  std::map<std::string, TensorHeader> headers;
  ASSERT_TRUE(readNpzHeaders(path("a.npz"), headers, error)) << error.message;
  EXPECT_EQ(headers.at("i16").type, DType::I16);
  EXPECT_EQ(headers.at("empty").shape, (std::vector<int64_t>{0, 4}));
  // Nothing is left beside.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}),
            2);
}

TEST_F(FilesTest, DamagedNpzNeverCrashes) {
  TensorMap tensors = allTypes(), back;
  ASSERT_TRUE(writeNpz(path("a.npz"), tensors, error));
  std::string bytes;
  ASSERT_TRUE(readFile(path("a.npz"), bytes, error));
  for (size_t size = 0; size < bytes.size(); size += 37) {
    write("cut.npz", bytes.substr(0, size));
    EXPECT_FALSE(readNpz(path("cut.npz"), back, error));
    EXPECT_EQ(error.exitCode, 1);
  }
  std::mt19937 random(3);
  for (int i = 0; i < 600; ++i) {
    std::string damaged = bytes;
    for (unsigned k = 0; k <= random() % 3; ++k)
      damaged[random() % bytes.size()] = static_cast<char>(random());
    write("damaged.npz", damaged);
    readNpz(path("damaged.npz"), back, error);
  }
}

TEST_F(FilesTest, NpyReadsFortranOrderAndBigEndian) {
  auto npy = [](const std::string &header, const std::string &data) {
    std::string text = header + "\n";
    std::string bytes("\x93NUMPY\x01\0", 8);
    bytes += static_cast<char>(text.size());
    bytes += '\0';
    return bytes + text + data;
  };
  write("f.npy", npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}",
                     std::string("\1\2\3\4\5\6", 6)));
  HostTensor tensor;
  ASSERT_TRUE(readTensorFile(path("f.npy"), tensor, error)) << error.message;
  EXPECT_EQ(std::string(tensor.bytes.data(), 6), std::string("\1\3\5\2\4\6"));
  write("b.npy",
        npy("{'descr': '>i4', 'fortran_order': False, 'shape': (1,), }",
            std::string("\0\0\1\2", 4)));
  ASSERT_TRUE(readTensorFile(path("b.npy"), tensor, error)) << error.message;
  EXPECT_EQ(*tensor.as<int32_t>(), 258);
  const std::pair<const char *, const char *> bad[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
       "bytes of data"},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (0,)}",
       "not supported"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
       "structured"},
      {"{'descr': '<f4', 'shape': ()}", "lacks"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': "
       "(99999999999999999999,)}",
       "too large"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': "
       "(4294967296,4294967296)}",
       "larger than any memory"},
      {"", "expected"}};
  for (auto &[header, says] : bad) {
    write("bad.npy", npy(header, "abc"));
    EXPECT_FALSE(readTensorFile(path("bad.npy"), tensor, error));
    EXPECT_NE(error.message.find(says), std::string::npos) << error.message;
  }
}

TEST_F(FilesTest, TensorProto) {
  HostTensor tensor;
  // dims 2, type int64, int64_data packed {5, -1}.
  write("a.pb", std::string("\x08\x02\x10\x07\x3a\x0b\x05", 7) +
                    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  ASSERT_TRUE(readTensorFile(path("a.pb"), tensor, error)) << error.message;
  EXPECT_EQ(tensor.as<int64_t>()[0], 5);
  EXPECT_EQ(tensor.as<int64_t>()[1], -1);
  // dims 1, float, raw_data.
  write("b.pb", std::string("\x08\x01\x10\x01\x4a\x04\0\0\x80\x3f", 10));
  ASSERT_TRUE(readTensorFile(path("b.pb"), tensor, error)) << error.message;
  EXPECT_EQ(*tensor.as<float>(), 1.0f);
  for (const char *bad :
       {"\x08",
        "\x08\x02\x10\x01\x4a\x04"
        "abcd",
        "\x08\xff\xff\xff\xff\x7f\x10\x01", "\x10\x08", "\x0b"}) {
    write("bad.pb", bad);
    EXPECT_FALSE(readTensorFile(path("bad.pb"), tensor, error)) << bad;
    EXPECT_EQ(error.exitCode, 1);
  }
  std::mt19937 random(4);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(random() % 60, '\0');
    for (char &c : bytes)
      c = static_cast<char>(random());
    write("random.pb", bytes);
    readTensorFile(path("random.pb"), tensor, error);
  }
}

TEST_F(FilesTest, OutputDirectoryNamesFilesAfterKeys) {
  TensorMap tensors;
  tensors.emplace("a/b%", counted(DType::F32, {2}));
  ASSERT_TRUE(writeOutputDirectory(path("out"), tensors, error))
      << error.message;
  HostTensor back;
  ASSERT_TRUE(readTensorFile(path("out/a%2Fb%25.npy"), back, error))
      << error.message;
  EXPECT_TRUE(same(back, tensors.at("a/b%")));
  std::ifstream file(path("out/index.json"));
  auto index = nlohmann::json::parse(file);
  EXPECT_EQ(index["a/b%"]["file"], "a%2Fb%25.npy");
}

TEST_F(FilesTest, WhatCannotBeWrittenLeavesNothing) {
  EXPECT_FALSE(writeFileAtomically(path("no/such/file"), "x", error));
  EXPECT_NE(error.message.find("No such file"), std::string::npos);
  EXPECT_FALSE(writeFileAtomically(directory, "x", error));
  EXPECT_FALSE(
      readNpz(path("missing.npz"), *std::make_unique<TensorMap>(), error));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}),
            0);
}

} // namespace
