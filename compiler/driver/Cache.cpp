// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Cache.h"

#include "compiler/driver/BuildId.h"
#include "compiler/driver/ResultJson.h"
#include "runtime/support/Sha256.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace mtp;
using nlohmann::json;
namespace fs = std::filesystem;

static constexpr char kMagic[4] = {'M', 'T', 'P', 'C'};
static constexpr uint32_t kFormat = 1;
static constexpr size_t kHeaderBytes = 24, kHashBytes = 32;
static constexpr const char *kEnding = ".mtpc";

std::optional<std::string> mtp::hashFile(const std::string &path) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return std::nullopt;
  posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
  Sha256 hash;
  std::string piece(size_t(1) << 20, 0);
  ssize_t got;
  while ((got = read(file, piece.data(), piece.size())) > 0)
    hash.update(piece.data(), size_t(got));
  close(file);
  return got == 0 ? std::optional(hash.hexDigest()) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

static std::string defaultDirectory() {
  const char *cache = std::getenv("XDG_CACHE_HOME"),
             *home = std::getenv("HOME");
  if (cache && cache[0] == '/')
    return std::string(cache) + "/mtp";
  return home && home[0] == '/' ? std::string(home) + "/.cache/mtp" : "";
}

/// "" if `path` is a folder that only this user can write, else what is wrong.
static std::string whyNotPrivate(const std::string &path) {
  struct stat status;
  if (lstat(path.c_str(), &status))
    return strerror(errno);
  if (!S_ISDIR(status.st_mode))
    return "it is not a folder";
  if (status.st_uid != geteuid())
    return "it belongs to another user";
  return status.st_mode & 0077 ? "other users may enter it (chmod 700)" : "";
}

Cache::Cache(const CompileRequest &request, std::vector<std::string> &warnings,
             uint64_t mostBytes)
    : mostBytes(mostBytes) {
  if (request.noCache)
    return;
  std::string path =
      request.cacheDir.empty() ? defaultDirectory() : request.cacheDir;
  if (path.empty())
    return;
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  mkdir(path.c_str(), 0700); // an existing one is checked below
  if (std::string why = whyNotPrivate(path); !why.empty())
    warnings.push_back("the cache " + path + " is not used: " + why);
  else
    directory = path;
}

std::string Cache::pathOf(const std::string &key) const {
  return directory + "/" + key + kEnding;
}

void Cache::removeOldest() const {
  struct Entry {
    fs::file_time_type time;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    Entry entry{it->last_write_time(gone), it->file_size(gone), it->path()};
    if (gone || entry.path.extension() != kEnding)
      continue;
    total += entry.bytes;
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry &a, const Entry &b) { return a.time < b.time; });
  for (const Entry &entry : entries) {
    if (total <= mostBytes)
      break;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

std::optional<std::string>
Cache::key(const CompileRequest &request, const std::string &modelHash,
           const std::vector<std::string> &cpuFeatures) {
  json inputs = json::object(), pins = json::array();
  for (const auto &[value, input] : request.inputs)
    inputs[value] = {mtp::name(input.type), input.shape};
  for (const auto &[value, layout] : request.pins)
    pins.push_back({value, layout});
  std::string plan = request.plan;
  if (!plan.empty() && plan.rfind("random:", 0) != 0) {
    std::optional<std::string> hash = hashFile(plan);
    if (!hash)
      return std::nullopt;
    plan = "file:" + *hash;
  }
  std::error_code error;
  json all = {{"build", buildId()},
              {"format", kFormat},
              {"cpu", cpuFeatures},
              {"model", modelHash},
              // Artifacts refer to weights by path.
              {"path", request.model},
              {"folder", fs::current_path(error).string()},
              {"mesh", request.mesh},
              {"device", request.device},
              {"objective", request.objective},
              {"precision", request.precision},
              {"dims", request.dims},
              {"inputs", inputs},
              {"random_inputs", request.randomInputs},
              {"plan", plan},
              {"pins", pins},
              {"explain", request.explain},
              {"no_raise", request.noRaise},
              {"topology", request.topology},
              {"calibration", request.calibration},
              {"memory_budget", request.memoryBudget},
              {"train", request.train ? toJson(*request.train) : json()},
              {"gpu_arch", request.gpuArch}};
  std::string text = all.dump(-1, ' ', false, json::error_handler_t::replace);
  return Sha256::hex(text.data(), text.size());
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

static void put(std::string &bytes, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i)
    bytes.push_back(char(value >> (8 * i)));
}
static uint64_t get(const std::string &bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value |= uint64_t(uint8_t(bytes[at + i])) << (8 * i);
  return value;
}

/// Splits an entry into record and artifact; false if it is damaged.
static bool parseEntry(const std::string &bytes, json &record,
                       std::string &artifact) {
  if (bytes.size() < kHeaderBytes + kHashBytes ||
      bytes.compare(0, 4, kMagic, 4) || get(bytes, 4, 4) != kFormat)
    return false;
  uint64_t recordBytes = get(bytes, 8, 8), artifactBytes = get(bytes, 16, 8);
  uint64_t body = bytes.size() - kHeaderBytes - kHashBytes;
  if (recordBytes > body || artifactBytes != body - recordBytes)
    return false;
  Sha256 hash;
  hash.update(bytes.data(), bytes.size() - kHashBytes);
  std::array<uint8_t, 32> digest = hash.digest();
  if (memcmp(digest.data(), bytes.data() + bytes.size() - kHashBytes,
             kHashBytes))
    return false;
  auto begin = bytes.begin() + kHeaderBytes;
  record = json::parse(begin, begin + ptrdiff_t(recordBytes), nullptr, false);
  artifact.assign(bytes, kHeaderBytes + recordBytes, artifactBytes);
  return record.is_object();
}

static bool unchanged(const json &files) {
  if (!files.is_array())
    return false;
  for (const json &file : files)
    if (!file.is_array() || file.size() != 2 || !file[0].is_string() ||
        file[1] != hashFile(file[0]).value_or(""))
      return false;
  return true;
}

bool Cache::load(const std::string &key, CompileResult &result,
                 std::vector<std::string> &warnings) const {
  std::ifstream stream(pathOf(key), std::ios::binary);
  if (!stream)
    return false;
  std::string bytes((std::istreambuf_iterator<char>(stream)),
                    std::istreambuf_iterator<char>());
  json record;
  std::string artifact, error;
  CompileResult loaded;
  if (!parseEntry(bytes, record, artifact) || !record.contains("files") ||
      !record.contains("result") || !fromJson(record["result"], loaded) ||
      !Artifact::parse(artifact, loaded.artifact, error)) {
    warnings.push_back("the cache entry " + pathOf(key) +
                       " is damaged and is not used");
    std::error_code ignored;
    fs::remove(pathOf(key), ignored);
    return false;
  }
  if (!unchanged(record["files"]))
    return false;
  std::error_code ignored;
  fs::last_write_time(pathOf(key), fs::file_time_type::clock::now(), ignored);
  result = std::move(loaded);
  result.cacheHit = true;
  return true;
}

/// Writes `bytes` to a file of its own in `directory` and renames it to `path`.
static bool writePrivately(const std::string &directory,
                           const std::string &path, const std::string &bytes) {
  std::string name = directory + "/.new-XXXXXX";
  int file = mkstemp(name.data());
  if (file < 0)
    return false;
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t wrote = write(file, bytes.data() + done, bytes.size() - done);
    if (wrote <= 0)
      break;
    done += size_t(wrote);
  }
  bool good = done == bytes.size();
  good = close(file) == 0 && good;
  good = good && rename(name.c_str(), path.c_str()) == 0;
  if (!good)
    unlink(name.c_str());
  return good;
}

void Cache::store(const std::string &key, const std::vector<ReadFile> &files,
                  const CompileResult &result,
                  std::vector<std::string> &warnings) const {
  json list = json::array();
  for (const ReadFile &file : files)
    list.push_back({file.path, file.sha256});
  json record = {{"files", list}, {"result", toJson(result)}};
  std::string text =
      record.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string artifact = result.artifact.serialize();
  std::string bytes(kMagic, 4);
  put(bytes, kFormat, 4);
  put(bytes, text.size(), 8);
  put(bytes, artifact.size(), 8);
  bytes += text + artifact;
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  std::array<uint8_t, 32> digest = hash.digest();
  bytes.append(digest.begin(), digest.end());
  if (!writePrivately(directory, pathOf(key), bytes))
    warnings.push_back("the cache entry " + pathOf(key) +
                       " could not be written: " + strerror(errno));
  removeOldest();
}
