// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Artifact.h - a compiled model --------------------------------------===//
//
// The hand-over from compiler to runtime, without LLVM types. One program
// serves every rank; whatever differs between ranks (blocks of weights,
// offsets, valid extents) is described here and computed by the runtime per
// rank.
//
// On disk (`.mtp`): magic "MTPA", u32 format version, u64 manifest bytes,
// u64 object bytes, u64 data bytes (little endian), then the manifest (JSON,
// UTF-8), the shared object, and the data section (embedded constants, each
// aligned to 64), then a SHA-256 of everything before it.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_ARTIFACT_H
#define MTP_RUNTIME_ARTIFACT_H

#include "runtime/artifact/GpuCode.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mtp {

/// Element types. The text form (manifest, JSON output) is the lower-case name.
enum class DType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U64,
  U32,
  U16,
  U8,
  Bool
};
/// Bytes of one element; bool takes one byte (0 or 1).
int64_t byteSize(DType type);
const char *name(DType type);
/// The type of that name; false if there is none.
bool parseDType(const std::string &text, DType &type);
bool isFloat(DType type);

/// A mesh in its finest axes, slowest first: a refined axis `tp = 2 x 2` stands
/// here as "tp.0" = 2, "tp.1" = 2. Rank r has coordinates by mixed radix, the
/// last axis fastest.
struct Mesh {
  struct Axis {
    std::string name;
    int64_t size = 1;
  };
  std::vector<Axis> axes;
  int64_t ranks() const;
  /// Coordinates of `rank`, one for each axis.
  std::vector<int64_t> coordinates(int64_t rank) const;
};

/// How one dimension is cut. With no axes it is whole. Otherwise it is cut once
/// per axis, major first: a block of capacity c units becomes `size` blocks of
/// ceil(c / size) units each; a dimension of `extent` elements starts with
/// ceil(extent / unit) units. Blocks that reach past the extent are padded.
struct DimSharding {
  std::vector<int> axes; ///< indices into Mesh::axes, major to minor
  int64_t unit = 1;      ///< elements
};

/// One block of a dimension, in elements.
struct Block {
  int64_t offset = 0;   ///< of the block's first element in the whole dimension
  int64_t capacity = 0; ///< stored elements, the same on all ranks
  int64_t valid = 0; ///< elements that exist; the rest, at the end, is padding
};
/// The block that the rank with `coordinates` has of a dimension of `extent`.
/// Example: extent 5, unit 1, one axis of size 3: capacity 2, offsets 0 2 4,
/// valid 2 2 1. Extent 4 on 3: valid 2 2 0 (the last rank is all padding).
Block blockOf(int64_t extent, const DimSharding &sharding, const Mesh &mesh,
              const std::vector<int64_t> &coordinates);

/// A whole tensor and its cut. `shape` and `dims` have equal length.
struct TensorLayout {
  DType type = DType::F32;
  std::vector<int64_t> shape; ///< global extents
  std::vector<DimSharding> dims;
  std::string text; ///< as in IR, for people: "tp = S(1)", "" if invariant
  std::vector<int64_t> localShape(const Mesh &mesh) const;
};

/// Where bytes come from.
struct Source {
  /// Zero: nowhere, all elements are zero at first (`offset`, `bytes` are 0).
  enum class Kind : uint8_t { File, Embedded, Zero } kind = Kind::File;
  std::string file;    ///< path as given at compile time (Kind::File)
  uint64_t offset = 0; ///< bytes into file or data section
  uint64_t bytes = 0;
  /// SHA-256 of the `bytes` bytes at `offset`, hex; may be empty (not checked).
  std::string sha256;
  DType type = DType::F32;    ///< element type as stored
  std::vector<int64_t> shape; ///< shape as stored, row-major
};

/// One step of a load-time recipe, applied in order to the stored tensor.
struct RecipeStep {
  enum class Kind : uint8_t { Transpose, Slice, Reshape } kind;
  std::vector<int64_t> values; ///< permutation (result dim i = source dim
                               ///< values[i]) or new shape
  int64_t dim = 0, start = 0, size = 0; ///< Slice
};

/// A stored piece of a logical parameter, or a constant: recipe applied to the
/// source, converted to `layout.type`, cut by `layout`; padding is zero. Each
/// rank loads only its block. An optimizer state has a source of kind Zero in
/// the shape of its initializer, and the recipe of its piece.
struct Parameter {
  std::string name; ///< initializer name in the model
  /// "exp_avg", "gradient", ...: a tensor that belongs to the piece; "": the
  /// piece itself.
  std::string state;
  Source source;
  std::vector<RecipeStep> recipe;
  TensorLayout layout;
  /// Mesh axes over whose ranks the value is the sum of the blocks
  /// (accumulators of gradients).
  std::vector<int> partial;
  bool trainable = false;
  /// A step of some entry writes it: every rank has a copy of its own, which
  /// keeps its value from run to run, and no kernel may pack it.
  bool updated = false;
};

/// A model input: cut by `layout` on the way in; padding is unspecified.
struct Input {
  std::string name;
  TensorLayout layout;
  std::vector<std::string> dimNames; ///< symbolic name per dim, "" if static
  /// Inclusive range of valid values of integer inputs; lo > hi: unrestricted.
  int64_t lo = 1, hi = 0;
  std::string rangeReason; ///< "rows of transformer.wte.weight (101)"
  /// What --random-inputs draws: "normal", "ids", "mask", "positions", "zeros".
  std::string random = "normal";
};

/// A model output: assembled from the blocks of `layout`.
struct Output {
  std::string name;
  TensorLayout layout;
};

/// A value that the runtime computes for each rank (MtpRank::rankValues).
struct RankValue {
  enum class Kind : uint8_t { Offset, Valid, Coordinate } kind;
  int64_t extent = 0;   ///< Offset, Valid
  DimSharding sharding; ///< Offset, Valid; Coordinate: axes[0]
};

/// A buffer operand.
struct BufferRef {
  enum class Space : uint8_t {
    Arena,
    Parameter,
    Input,
    Output,
    RankValue
  } space = Space::Arena;
  int64_t index =
      0; ///< Parameter, Input, Output, RankValue (the address of its int64)
  int64_t offset = 0; ///< bytes
  int64_t bytes = 0;  ///< extent that is read or written
};

/// Shape of a library or collective operand, in elements, row-major unless
/// `strides` is given.
struct TensorDesc {
  DType type = DType::F32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

/// A call of a runtime kernel that is not compiled: matrix products, attention
/// and the like. `kind` and `attributes` are those of runtime/kernels.
struct LibrarySite {
  std::string kind; ///< "matmul", "attention", "topk", ...
  nlohmann::json attributes;
  std::vector<TensorDesc> operands; ///< inputs, then results, as in the launch
  int64_t results = 1;              ///< how many of `operands` are written
};

/// A collective on the communicators of `axes`.
struct CollectiveSite {
  enum class Kind : uint8_t {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Permute
  } kind;
  enum class Reduction : uint8_t { Sum, Max, Min } reduction = Reduction::Sum;
  std::string op;        ///< mtp op: "reduce_from", "all_gather", ...
  std::vector<int> axes; ///< Mesh::axes, the group varies over their product
  std::string axisName;  ///< for people and JSON: "tp", "dp,tp"
  DType type = DType::F32;
  std::vector<int64_t> inShape, outShape; ///< local shapes
  /// AllGather: dimension of concatenation; ReduceScatter: of the cut;
  /// AllToAll: `splitDim` is cut, `dim` is concatenated.
  int64_t dim = 0, splitDim = 0;
  /// Global extent and cut of `dim` (AllGather strips padding, ReduceScatter
  /// and AllToAll insert it) before the collective's axes are added or after
  /// they are removed: `outer` is the cut by all other (more major) axes.
  int64_t extent = 0, splitExtent = 0;
  DimSharding sharding,
      splitSharding; ///< of the sharded side, `axes` minor-most
  std::vector<int64_t>
      sourceOf; ///< Permute: rank i of the group receives from sourceOf[i]
  std::string phase = "forward";
  std::string node;   ///< ONNX node or value
  std::string reason; ///< why it is here
  int64_t predictedCount = 1, predictedBytes = 0;
  /// An all-reduce that is given in parts, so that the next part is computed
  /// while this one is summed: all but the first name the site of the first,
  /// with which they are one collective in every count. -1: no such part.
  int64_t partOf = -1;
};

/// One step of the program.
struct Instruction {
  enum class Kind : uint8_t {
    Kernel,
    Library,
    Start,
    Done,
    LoopBegin,
    LoopEnd
  } kind;
  int64_t index = 0;              ///< kernel, library site or collective site
  std::vector<BufferRef> buffers; ///< operands; for Start: input, output
  int64_t count = 1;              ///< Kernel: iterations; LoopBegin: trips
  int64_t grain = 1;              ///< Kernel: least iterations worth a thread
  std::string name;               ///< for traces and error messages
  int64_t results = 0; ///< Kernel: how many of its last buffers it writes
  /// Library: so many instructions that follow, kernels and library calls, give
  /// the same results; a device runs either this one or those. 0: this one.
  int64_t otherwise = 0;
};

/// One program of the artifact: forward, or a (part of a) training step. All
/// entries share the parameters.
struct Entry {
  std::string name = "main"; ///< of its function
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Instruction> program;
  int64_t arenaBytes = 0;
};

/// A compiled model. See the top of the file for its form on disk.
struct Artifact {
  std::string model;     ///< path of the model
  std::string modelHash; ///< SHA-256, hex
  std::string precision = "f32";
  std::string device = "cpu";
  std::vector<std::string> cpuFeatures; ///< features the object needs
  std::string mesh;                     ///< as the user wrote it
  Mesh axes;
  std::vector<Entry> entries;
  std::vector<Parameter> parameters;
  std::vector<RankValue> rankValues;
  std::vector<LibrarySite> librarySites;
  std::vector<CollectiveSite> collectiveSites;
  std::vector<std::string> faults; ///< messages for MtpRank::fault, 1-based
  std::vector<std::string> kernelNames;
  nlohmann::json plan; ///< what --json shows under `plan`
  GpuCode gpu;         ///< device "cuda"
  std::string object;  ///< ELF shared object; PTX for device "cuda"
  std::string data;    ///< embedded constants

  /// The file's bytes.
  std::string serialize() const;
  /// Checks every size, index, offset and hash. On failure returns false and
  /// sets `error` to one sentence that names what is wrong.
  static bool parse(const std::string &bytes, Artifact &artifact,
                    std::string &error);
  /// The checks of parse() but for the hash; for artifacts made in this
  /// process.
  bool verify(std::string &error) const;
};

} // namespace mtp

#endif // MTP_RUNTIME_ARTIFACT_H
