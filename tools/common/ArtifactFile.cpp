// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/ArtifactFile.h"

#include <cstring>

using namespace mtp;

static const char magic[] = "MTPM";
static const uint32_t version = 1;
static const size_t headerBytes = 16;

template <typename T> static void put(std::string &bytes, T value) {
  for (size_t i = 0; i < sizeof value; ++i)
    bytes += char(value >> (8 * i));
}

/// The number at `offset`, which must lie in `bytes`.
template <typename T> static T get(const std::string &bytes, size_t offset) {
  T value = 0;
  for (size_t i = 0; i < sizeof value; ++i)
    value |= T(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
  return value;
}

std::string mtp::serializeArtifacts(const std::vector<Artifact> &artifacts) {
  if (artifacts.size() == 1)
    return artifacts[0].serialize();
  std::string bytes = magic;
  put(bytes, version);
  put(bytes, uint64_t(artifacts.size()));
  for (const Artifact &artifact : artifacts) {
    std::string one = artifact.serialize();
    put(bytes, uint64_t(one.size()));
    bytes += one;
  }
  return bytes;
}

bool mtp::parseArtifacts(const std::string &bytes,
                         std::vector<Artifact> &artifacts, std::string &error) {
  artifacts.clear();
  if (bytes.compare(0, 4, magic) != 0) {
    artifacts.emplace_back();
    return Artifact::parse(bytes, artifacts[0], error);
  }
  if (bytes.size() < headerBytes) {
    error = "it ends inside its header";
    return false;
  }
  if (uint32_t found = get<uint32_t>(bytes, 4); found != version) {
    error = "its format has version " + std::to_string(found) +
            ", this build reads version " + std::to_string(version);
    return false;
  }
  uint64_t count = get<uint64_t>(bytes, 8);
  size_t offset = headerBytes;
  for (uint64_t i = 0; i < count; ++i) {
    if (bytes.size() - offset < 8 ||
        bytes.size() - offset - 8 < get<uint64_t>(bytes, offset)) {
      error = "it ends inside program " + std::to_string(i + 1) + " of " +
              std::to_string(count);
      return false;
    }
    uint64_t size = get<uint64_t>(bytes, offset);
    artifacts.emplace_back();
    if (!Artifact::parse(bytes.substr(offset + 8, size), artifacts.back(),
                         error)) {
      error = "program " + std::to_string(i + 1) + ": " + error;
      return false;
    }
    offset += 8 + size;
  }
  if (count && offset == bytes.size())
    return true;
  error = count ? "it has bytes behind its last program" : "it has no program";
  return false;
}

/// The first given input whose shape is not the compiled one, null if none.
static const Input *firstMisfit(const Artifact &artifact,
                                const TensorMap &inputs) {
  for (const Input &input : artifact.entries[0].inputs) {
    auto found = inputs.find(input.name);
    if (found != inputs.end() && found->second.shape != input.layout.shape)
      return &input;
  }
  return nullptr;
}

int mtp::chooseArtifact(const std::vector<Artifact> &artifacts,
                        const TensorMap &inputs, std::string &error) {
  std::string compiled, name;
  for (size_t i = 0; i < artifacts.size(); ++i) {
    if (artifacts[i].entries.empty())
      continue;
    const Input *misfit = firstMisfit(artifacts[i], inputs);
    if (!misfit)
      return int(i);
    if (name.empty())
      name = misfit->name;
    for (const Input &input : artifacts[i].entries[0].inputs)
      if (input.name == name)
        compiled +=
            (compiled.empty() ? "" : ", ") + shapeText(input.layout.shape);
  }
  error = "no program takes these inputs: '" + name + "' is compiled for " +
          compiled;
  if (auto given = inputs.find(name); given != inputs.end())
    error += ", given is " + shapeText(given->second.shape);
  return -1;
}

std::vector<std::map<std::string, int64_t>> mtp::dimCombinations(
    const std::vector<std::pair<std::string, std::vector<int64_t>>> &dims) {
  std::vector<std::map<std::string, int64_t>> combinations(1);
  for (auto &[name, values] : dims) {
    std::vector<std::map<std::string, int64_t>> longer;
    for (const std::map<std::string, int64_t> &before : combinations)
      for (int64_t value : values) {
        longer.push_back(before);
        longer.back()[name] = value;
      }
    combinations = std::move(longer);
  }
  return combinations;
}
