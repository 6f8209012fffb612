// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace mtp;
namespace fs = std::filesystem;

namespace {

/// A cache in a folder of its own, one model file, and one result.
class CacheTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "mtp-cache-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    request.cacheDir = (folder / "cache").string();
    request.model = (folder / "model.onnx").string();
    write(request.model, "weights");
    result.weights.push_back(
        {"w", "tp = S(1)", "column parallel", {8, 4}, 128, 64});
    result.parameters = {{{"name", "w"}}};
    result.explain = "because";
    result.artifact.mesh = "tp=1";
    result.artifact.axes.axes = {{"tp", 1}};
    result.artifact.entries.emplace_back();
  }
  void TearDown() override { fs::remove_all(folder); }

  static void write(const fs::path &path, const std::string &text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::vector<ReadFile> files() const {
    return {{request.model, *hashFile(request.model)}};
  }
  std::string key() const {
    return *Cache::key(request, *hashFile(request.model), {"avx2"});
  }
  fs::path entry() const {
    return fs::path(request.cacheDir) / (key() + ".mtpc");
  }

  fs::path folder;
  CompileRequest request;
  CompileResult result, loaded;
  std::vector<std::string> warnings;
};

} // namespace

TEST_F(CacheTest, GivesBackWhatWasStored) {
  Cache cache(request, warnings);
  ASSERT_TRUE(cache.usable());
  EXPECT_FALSE(cache.load(key(), loaded, warnings));
  cache.store(key(), files(), result, warnings);
  ASSERT_TRUE(cache.load(key(), loaded, warnings))
      << testing::PrintToString(warnings);
  EXPECT_TRUE(loaded.cacheHit);
  EXPECT_EQ(loaded.weights[0].how, "column parallel");
  EXPECT_EQ(loaded.parameters, result.parameters);
  EXPECT_EQ(loaded.explain, "because");
  EXPECT_EQ(loaded.artifact.serialize(), result.artifact.serialize());
  EXPECT_TRUE(warnings.empty());
}

TEST_F(CacheTest, FolderIsPrivate) {
  Cache cache(request, warnings);
  struct stat status;
  ASSERT_EQ(stat(request.cacheDir.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(chmod(request.cacheDir.c_str(), 0755), 0);
  EXPECT_FALSE(Cache(request, warnings).usable());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("other users"), std::string::npos);
}

TEST_F(CacheTest, ALinkIsNoFolder) {
  fs::create_directory(folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", request.cacheDir);
  EXPECT_FALSE(Cache(request, warnings).usable());
  EXPECT_EQ(warnings.size(), 1u);
}

TEST_F(CacheTest, DamagedEntriesAreIgnoredAndRemoved) {
  Cache cache(request, warnings);
  cache.store(key(), files(), result, warnings);
  std::ifstream stream(entry(), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  for (size_t at :
       {size_t(0), size_t(9), size_t(30), bytes.size() / 2, bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    write(entry(), damaged);
    warnings.clear();
    EXPECT_FALSE(cache.load(key(), loaded, warnings)) << at;
    EXPECT_EQ(warnings.size(), 1u) << at;
    EXPECT_FALSE(fs::exists(entry())) << at;
  }
  write(entry(), bytes.substr(0, 20));
  EXPECT_FALSE(cache.load(key(), loaded, warnings));
}

TEST_F(CacheTest, ChangedFilesAreAMiss) {
  Cache cache(request, warnings);
  write(folder / "model.onnx.data", "one");
  std::vector<ReadFile> read = files();
  read.push_back({(folder / "model.onnx.data").string(),
                  *hashFile((folder / "model.onnx.data").string())});
  cache.store(key(), read, result, warnings);
  EXPECT_TRUE(cache.load(key(), loaded, warnings));
  write(folder / "model.onnx.data", "two");
  EXPECT_FALSE(cache.load(key(), loaded, warnings));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(CacheTest, EveryOptionIsPartOfTheKey) {
  std::vector<std::string> keys = {
      key(), *Cache::key(request, "00", {"avx2"}),
      *Cache::key(request, *hashFile(request.model), {"avx512f"})};
  CompileRequest other = request;
  auto add = [&](auto change) {
    CompileRequest changed = request;
    change(changed);
    keys.push_back(*Cache::key(changed, *hashFile(request.model), {"avx2"}));
  };
  add([](CompileRequest &r) { r.mesh = "tp=2"; });
  add([](CompileRequest &r) { r.objective = "time"; });
  add([](CompileRequest &r) { r.precision = "f64"; });
  add([](CompileRequest &r) { r.dims["batch"] = 2; });
  add([](CompileRequest &r) { r.inputs["x"] = {DType::I64, {2, 3}}; });
  add([](CompileRequest &r) { r.inputs["x"] = {DType::I32, {2, 3}}; });
  add([](CompileRequest &r) { r.randomInputs = true; });
  add([](CompileRequest &r) { r.plan = "random:1"; });
  add([](CompileRequest &r) { r.plan = "random:2"; });
  add([](CompileRequest &r) { r.pins = {{"w", "tp = S(1)"}}; });
  add([](CompileRequest &r) { r.explain = true; });
  add([](CompileRequest &r) { r.noRaise = true; });
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

TEST_F(CacheTest, TheOldestEntriesAreRemoved) {
  Cache(request, warnings).store("old", files(), result, warnings);
  fs::path old = fs::path(request.cacheDir) / "old.mtpc";
  fs::last_write_time(old, fs::last_write_time(old) - std::chrono::hours(1));
  Cache small(request, warnings, fs::file_size(old) + 1);
  small.store("new", files(), result, warnings);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(small.load("new", loaded, warnings));
}
