// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Manifest.cpp - an artifact as bytes --------------------------------===//
//
// One function per structure, used in both directions: `io` is either a Writer
// or a Reader, so the two can't drift apart.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Artifact.h"
#include "runtime/support/Sha256.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

using namespace mtp;
using nlohmann::json;

namespace {

constexpr char kMagic[4] = {'M', 'T', 'P', 'A'};
constexpr uint32_t kFormatVersion = 4;
constexpr size_t kHeaderBytes = 32, kHashBytes = 32;
/// A manifest beyond this isn't one of ours.
constexpr uint64_t kMaxManifestBytes = uint64_t(1) << 30;

struct ManifestError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename E> struct EnumNames;
#define MTP_ENUM_NAMES(TYPE, ...)                                              \
  template <> struct EnumNames<TYPE> {                                         \
    static constexpr const char *names[] = {__VA_ARGS__};                      \
  };
MTP_ENUM_NAMES(DType, "f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8",
               "u64", "u32", "u16", "u8", "bool")
MTP_ENUM_NAMES(Source::Kind, "file", "embedded", "zero")
MTP_ENUM_NAMES(RecipeStep::Kind, "transpose", "slice", "reshape")
MTP_ENUM_NAMES(RankValue::Kind, "offset", "valid", "coordinate")
MTP_ENUM_NAMES(BufferRef::Space, "arena", "parameter", "input", "output",
               "rank_value")
MTP_ENUM_NAMES(CollectiveSite::Kind, "all_reduce", "all_gather",
               "reduce_scatter", "all_to_all", "permute")
MTP_ENUM_NAMES(CollectiveSite::Reduction, "sum", "max", "min")
MTP_ENUM_NAMES(Instruction::Kind, "kernel", "library", "start", "done",
               "loop_begin", "loop_end")
#undef MTP_ENUM_NAMES

/// Turns structures into JSON.
struct Writer {
  template <typename T> json value(const T &from) {
    if constexpr (std::is_enum_v<T>)
      return EnumNames<T>::names[static_cast<size_t>(from)];
    else if constexpr (requires { describe(*this, const_cast<T &>(from)); }) {
      Writer inner;
      inner.object = json::object();
      describe(inner, const_cast<T &>(from));
      return inner.object;
    } else
      return from;
  }
  template <typename T> json value(const std::vector<T> &from) {
    json array = json::array();
    for (const T &element : from)
      array.push_back(value(element));
    return array;
  }
  template <typename T> void operator()(const char *key, T &field) {
    object[key] = value(field);
  }
  json object;
};

/// Fills structures from JSON. `where` is the path for messages.
struct Reader {
  const json &object;
  std::string where;

  [[noreturn]] static void bad(const std::string &where, const char *what) {
    throw ManifestError("manifest: " + where + " " + what);
  }
  template <typename T>
  static void read(const json &from, T &to, const std::string &where) {
    if constexpr (std::is_same_v<T, json>) {
      to = from;
    } else if constexpr (std::is_enum_v<T>) {
      if (!from.is_string())
        bad(where, "is not a string");
      const auto &text = from.get_ref<const std::string &>();
      size_t index = 0;
      for (const char *name : EnumNames<T>::names) {
        if (text == name) {
          to = static_cast<T>(index);
          return;
        }
        ++index;
      }
      bad(where, "has an unknown value");
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!from.is_string())
        bad(where, "is not a string");
      to = from.get<std::string>();
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!from.is_boolean())
        bad(where, "is not a boolean");
      to = from.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      if (!from.is_number_integer())
        bad(where, "is not an integer");
      if (from.is_number_unsigned()) {
        uint64_t number = from.get<uint64_t>();
        if (!std::in_range<T>(number))
          bad(where, "is out of range");
        to = static_cast<T>(number);
      } else {
        int64_t number = from.get<int64_t>();
        if (!std::in_range<T>(number))
          bad(where, "is out of range");
        to = static_cast<T>(number);
      }
    } else {
      if (!from.is_object())
        bad(where, "is not an object");
      Reader inner{from, where};
      describe(inner, to);
    }
  }
  template <typename T>
  static void read(const json &from, std::vector<T> &to,
                   const std::string &where) {
    if (!from.is_array())
      bad(where, "is not a list");
    to.clear();
    to.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i)
      read(from[i], to[i], where + "[" + std::to_string(i) + "]");
  }
  template <typename T, size_t N>
  static void read(const json &from, std::array<T, N> &to,
                   const std::string &where) {
    std::vector<T> list;
    read(from, list, where);
    if (list.size() != N)
      bad(where, "has another length than it must have");
    std::copy(list.begin(), list.end(), to.begin());
  }
  template <typename T> void operator()(const char *key, T &field) {
    auto it = object.find(key);
    std::string path = where.empty() ? key : where + "." + key;
    if (it == object.end())
      bad(path, "is missing");
    read(*it, field, path);
  }
};

template <typename Io> void describe(Io &io, Mesh::Axis &x) {
  io("name", x.name);
  io("size", x.size);
}
template <typename Io> void describe(Io &io, Mesh &x) { io("axes", x.axes); }
template <typename Io> void describe(Io &io, DimSharding &x) {
  io("axes", x.axes);
  io("unit", x.unit);
}
template <typename Io> void describe(Io &io, TensorLayout &x) {
  io("type", x.type);
  io("shape", x.shape);
  io("dims", x.dims);
  io("text", x.text);
}
template <typename Io> void describe(Io &io, Source &x) {
  io("kind", x.kind);
  io("file", x.file);
  io("offset", x.offset);
  io("bytes", x.bytes);
  io("sha256", x.sha256);
  io("type", x.type);
  io("shape", x.shape);
}
template <typename Io> void describe(Io &io, RecipeStep &x) {
  io("kind", x.kind);
  io("values", x.values);
  io("dim", x.dim);
  io("start", x.start);
  io("size", x.size);
}
template <typename Io> void describe(Io &io, Parameter &x) {
  io("name", x.name);
  io("state", x.state);
  io("source", x.source);
  io("recipe", x.recipe);
  io("layout", x.layout);
  io("partial", x.partial);
  io("trainable", x.trainable);
  io("updated", x.updated);
}
template <typename Io> void describe(Io &io, Input &x) {
  io("name", x.name);
  io("layout", x.layout);
  io("dim_names", x.dimNames);
  io("lo", x.lo);
  io("hi", x.hi);
  io("range_reason", x.rangeReason);
  io("random", x.random);
}
template <typename Io> void describe(Io &io, Output &x) {
  io("name", x.name);
  io("layout", x.layout);
}
template <typename Io> void describe(Io &io, RankValue &x) {
  io("kind", x.kind);
  io("extent", x.extent);
  io("sharding", x.sharding);
}
template <typename Io> void describe(Io &io, BufferRef &x) {
  io("space", x.space);
  io("index", x.index);
  io("offset", x.offset);
  io("bytes", x.bytes);
}
template <typename Io> void describe(Io &io, TensorDesc &x) {
  io("type", x.type);
  io("shape", x.shape);
  io("strides", x.strides);
}
template <typename Io> void describe(Io &io, LibrarySite &x) {
  io("kind", x.kind);
  io("attributes", x.attributes);
  io("operands", x.operands);
  io("results", x.results);
}
template <typename Io> void describe(Io &io, CollectiveSite &x) {
  io("kind", x.kind);
  io("reduction", x.reduction);
  io("op", x.op);
  io("axes", x.axes);
  io("axis_name", x.axisName);
  io("type", x.type);
  io("in_shape", x.inShape);
  io("out_shape", x.outShape);
  io("dim", x.dim);
  io("split_dim", x.splitDim);
  io("extent", x.extent);
  io("split_extent", x.splitExtent);
  io("sharding", x.sharding);
  io("split_sharding", x.splitSharding);
  io("source_of", x.sourceOf);
  io("phase", x.phase);
  io("node", x.node);
  io("reason", x.reason);
  io("predicted_count", x.predictedCount);
  io("predicted_bytes", x.predictedBytes);
  io("part_of", x.partOf);
}
template <typename Io> void describe(Io &io, Instruction &x) {
  io("kind", x.kind);
  io("index", x.index);
  io("buffers", x.buffers);
  io("results", x.results);
  io("count", x.count);
  io("grain", x.grain);
  io("otherwise", x.otherwise);
  io("name", x.name);
}
template <typename Io> void describe(Io &io, Entry &x) {
  io("name", x.name);
  io("inputs", x.inputs);
  io("outputs", x.outputs);
  io("program", x.program);
  io("arena_bytes", x.arenaBytes);
}
template <typename Io> void describe(Io &io, GpuKernel &x) {
  io("symbol", x.symbol);
  io("grid", x.grid);
  io("block", x.block);
  io("shared_bytes", x.sharedBytes);
}
template <typename Io> void describe(Io &io, GpuCode &x) {
  io("arch", x.arch);
  io("kernels", x.kernels);
}
/// All but the two byte strings, which stand behind the manifest.
template <typename Io> void describe(Io &io, Artifact &x) {
  io("model", x.model);
  io("model_hash", x.modelHash);
  io("precision", x.precision);
  io("device", x.device);
  io("cpu_features", x.cpuFeatures);
  io("mesh", x.mesh);
  io("axes", x.axes);
  io("entries", x.entries);
  io("parameters", x.parameters);
  io("rank_values", x.rankValues);
  io("library_sites", x.librarySites);
  io("collective_sites", x.collectiveSites);
  io("faults", x.faults);
  io("kernel_names", x.kernelNames);
  io("gpu", x.gpu);
  io("plan", x.plan);
}

void put(std::string &bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i)
    bytes += static_cast<char>(value >> (8 * i));
}
uint64_t get(const std::string &bytes, size_t at, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i)
    value |= uint64_t(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

/// Splits the file into its sections and checks lengths and hash.
bool split(const std::string &bytes, std::string &manifest, std::string &object,
           std::string &data, std::string &error) {
  if (bytes.size() < 4 || std::memcmp(bytes.data(), kMagic, 4) != 0) {
    error = "this is not an .mtp artifact (no MTPA at its start)";
    return false;
  }
  if (bytes.size() < kHeaderBytes + kHashBytes) {
    error = "the artifact is cut short: " + std::to_string(bytes.size()) +
            " bytes are less than its header";
    return false;
  }
  uint64_t version = get(bytes, 4, 4);
  if (version != kFormatVersion) {
    error = "the artifact has format version " + std::to_string(version) +
            "; this build reads version " + std::to_string(kFormatVersion);
    return false;
  }
  uint64_t sizes[3] = {get(bytes, 8, 8), get(bytes, 16, 8), get(bytes, 24, 8)};
  uint64_t left = bytes.size() - kHeaderBytes - kHashBytes;
  for (uint64_t size : sizes) {
    if (size > left) {
      error = "the artifact is cut short: its header asks for more than its " +
              std::to_string(bytes.size()) + " bytes";
      return false;
    }
    left -= size;
  }
  if (left != 0) {
    error = "the artifact has " + std::to_string(left) + " bytes too many";
    return false;
  }
  size_t end = bytes.size() - kHashBytes;
  Sha256 hash;
  hash.update(bytes.data(), end);
  auto digest = hash.digest();
  if (std::memcmp(digest.data(), bytes.data() + end, kHashBytes) != 0) {
    error = "the artifact was damaged: its SHA-256 does not match its bytes";
    return false;
  }
  if (sizes[0] > kMaxManifestBytes) {
    error = "the artifact's manifest has " + std::to_string(sizes[0]) +
            " bytes, more than any manifest of this format";
    return false;
  }
  manifest = bytes.substr(kHeaderBytes, sizes[0]);
  object = bytes.substr(kHeaderBytes + sizes[0], sizes[1]);
  data = bytes.substr(kHeaderBytes + sizes[0] + sizes[1], sizes[2]);
  return true;
}

/// Refuses JSON nested so deep that reading it would overrun the stack.
bool tooDeep(const std::string &text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > 64)
        return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

} // namespace

std::string Artifact::serialize() const {
  Writer writer;
  std::string manifest =
      writer.value(*this).dump(-1, ' ', false, json::error_handler_t::replace);
  std::string bytes(kMagic, 4);
  bytes.reserve(kHeaderBytes + manifest.size() + object.size() + data.size() +
                kHashBytes);
  put(bytes, kFormatVersion, 4);
  put(bytes, manifest.size(), 8);
  put(bytes, object.size(), 8);
  put(bytes, data.size(), 8);
  bytes += manifest;
  bytes += object;
  bytes += data;
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  auto digest = hash.digest();
  bytes.append(reinterpret_cast<const char *>(digest.data()), digest.size());
  return bytes;
}

bool Artifact::parse(const std::string &bytes, Artifact &artifact,
                     std::string &error) {
  std::string manifest;
  Artifact result;
  if (!split(bytes, manifest, result.object, result.data, error))
    return false;
  if (tooDeep(manifest)) {
    error = "the artifact's manifest is nested too deep";
    return false;
  }
  try {
    json parsed = json::parse(manifest);
    Reader::read(parsed, result, "");
  } catch (const ManifestError &e) {
    error = e.what();
    return false;
  } catch (const json::exception &e) {
    error =
        std::string("the artifact's manifest is not valid JSON: ") + e.what();
    return false;
  }
  if (!result.verify(error))
    return false;
  artifact = std::move(result);
  return true;
}
