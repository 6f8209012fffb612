// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LibraryKernel.h - kernels that are called, not compiled ------------===//
//
// A LibrarySite of an artifact names a kind, attributes and operand shapes.
// prepareLibraryKernel() checks all of them once, at load, and returns an
// object whose run() does nothing but compute. One object serves one rank; its
// calls don't overlap. All sizes, strides and attributes come from a file that
// isn't trusted: prepare returns null and one sentence that names what is
// wrong.
//
// Operands are TensorDescs, inputs first, then results, in the order below; all
// strides are in elements, row-major where they aren't given. Optional inputs
// stand in the list only if their attribute says so. Results must not overlap
// inputs, except where a kind says so. Dimensions may be 0 everywhere.
//
// matmul    A [batch..., M, K], B [batch..., K, N] -> Y [batch..., M, N]
//   Batch dimensions broadcast as in numpy. A rank-1 operand isn't accepted.
//   transposeA, transposeB  bool   the stored matrix is the transposed one
//   bias        bool     next input is [N], added to every row
//   residual    bool     next input has the shape of Y, added last
//   activation  "none" | "relu" | "gelu_erf" | "gelu_tanh" | "silu": applied
//               after the bias, before the residual
//   compute     "bf16": operands of type f32 are rounded to bf16 (nearest
//   even),
//               accumulated in f32
//   alpha       number, factor of the product, default 1
//   Types: f32, f64, f16, bf16 (accumulated in f32), i32, i64, u32, u64;
//   A and B of i8, u8 with Y of i32; 16 bit A and B with Y of f32.
//   K = 0 gives a product of zeros.
//   On GPUs, with types that are all the same:
//   aux         bool     gelu_tanh: a second result of the shape of Y, what the
//               activation is applied to
//   activation  "gelu_tanh_gradient": the input before Y has its shape; Y is
//               the product times the gradient of gelu_tanh there
//   biasGradient  "result": last result is [N], the sum of Y's rows, with
//               gelu_tanh_gradient; "a", "b": [M] or [N], A or B summed over
//               the contracted dimension, without activation
//
// attention Q [B, H, S, D], K [B, Hkv, T, D], V [B, Hkv, T, Dv], (mask),
//           (queryStart) -> Y [B, H, S, Dv], (logsumexp [B, H, S])
//   Y = softmax(cap(scale Q K') + mask) V. Query head h reads key head
//   h / (H / Hkv). All strides are free, so that memory in [B, S, H, D] order
//   is read and written where it lies. Scores are never stored: keys are
//   visited in blocks, with a running maximum and sum per query. scale number,
//   required mask           bool     next input broadcasts to [B, H, S, T]: of
//   Q's type
//                  (added) or bool (true keeps the score, false replaces it)
//   maskValue      number   what replaces a score under a bool mask, default
//   -inf causal         bool     query i sees the keys j <= i + offset only
//   causalOffset   integer  default 0
//   queryStart     bool     next input is one i64 or i32, added to the offset
//   causalOffsetRankValue  integer index into MtpRank::rankValues, added
//   softcap        number   c > 0: cap(x) = c tanh(x / c); 0: none (default)
//   windowLeft, windowRight  integer, -1 none: query i sees the keys with
//                  i + offset - left <= j <= i + offset + right only
//   maskedRow      "softmax" (default): a row without any visible key is NaN,
//   as
//                  softmax of nothing but -inf is; "zero": such a row is 0;
//                  "uniform": the mean of all values (equal finite scores)
//   logsumexp      bool     second result; -inf for a row without visible keys
//   compute        "bf16"   operands of both products are rounded to bf16
//   Types: f32, f64, f16, bf16 (the latter two computed in f32); logsumexp is
//   f64 for f64, else f32.
//   Keys that causal or window hides may be skipped: NaN in them may vanish.
//
// attention_gradient  Q, K, V, (mask), (queryStart), Y, logsumexp, G
//           -> (dQ), (dK), (dV), (dMask)
//   Attributes, operands and results of attention, the gradient G of its first
//   result; gradients of Q, K, V and of a mask that is added, each if its
//   attribute says so:
//   queryGradient, keyGradient, valueGradient  bool, default true
//   maskGradient   bool, default false; dMask has the mask's shape, row-major,
//                  f32 or f64
//   A row without any visible key gives nothing to Q, K and mask; with
//   maskedRow "uniform" all values get its G / T, with "softmax" NaN.
// gather_gradient  indices (i64 or i32) [I...], G [A..., I..., B...]
//           -> Y [A..., R, B...]
//   axis integer, the dimension R. Y's slice r is the sum of G's slices whose
//   index is r, in their order. Indices count from the end if negative; one
//   outside of R is left out. Floating point types.
//
// topk      X -> values, indices (i64), both of X's shape with `axis` cut to k
//   axis, k integers; largest, sorted bool (default true). Equal elements:
//   lower index first. NaN counts as the largest value.
// argmax, argmin  X -> indices (i64), `axis` of size 1 (keepdims) or absent
//   axis integer; selectLastIndex bool (default false). NaN wins.
// cumsum    X -> Y, same shape. axis integer; exclusive, reverse bool.
// gather_nd  data, indices (i64 or i32) [..., r] -> Y. batchDims integer.
// scatter_elements  data, indices, updates -> Y; axis integer
// scatter_nd        data, indices, updates -> Y
//   reduction "none" | "add" | "mul" | "max" | "min". Y may be data's buffer.
//   Updates are applied in row-major order of `indices`.
//   Negative indices count from the end; one out of range is an error that
//   names the position and the numbers.
// convolution  X [B, C, x1...], W [O, C / group, w1...], (bias [O])
//           -> Y [B, O, y1...]
//   strides, dilations: one integer a spatial dimension; pads: two (all begins,
//   then all ends); group integer; bias bool. Types: f32, f64, f16, bf16.
// convolution_input_gradient   W, G (as Y) -> dX
// convolution_filter_gradient  X, G (as Y) -> dW
//   Attributes as convolution, without bias. Types: f32, f64.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_KERNELS_LIBRARYKERNEL_H
#define MTP_RUNTIME_KERNELS_LIBRARYKERNEL_H

#include "runtime/abi/Abi.h"
#include "runtime/artifact/Artifact.h"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace mtp {

/// 64-byte aligned bytes that are freed with the object.
class AlignedBytes {
public:
  AlignedBytes() = default;
  explicit AlignedBytes(size_t bytes); ///< throws std::bad_alloc
  char *data() const { return memory.get(); }
  size_t size() const { return bytes; }

private:
  struct Free {
    void operator()(char *pointer) const;
  };
  std::unique_ptr<char, Free> memory;
  size_t bytes = 0;
};

/// Constants packed for the kernels that read them. Sites with equal (key,
/// format) share one copy. Thread safe; one cache may serve all ranks if keys
/// are unique among them.
class PackCache {
public:
  using Key = std::pair<uint64_t, std::string>;
  /// The copy for `key`, made by `pack` (which fills `bytes` bytes) if it isn't
  /// there yet.
  std::shared_ptr<AlignedBytes> get(const Key &key, size_t bytes,
                                    const std::function<void(char *)> &pack);
  /// Bytes of all copies.
  int64_t bytes() const;

private:
  mutable std::mutex mutex;
  std::map<Key, std::shared_ptr<AlignedBytes>> copies;
};

/// Memory that the kernels of one rank use during run(), one after the other.
/// It grows while kernels are prepared and doesn't move once the first one
/// runs.
class Scratch {
public:
  /// Raises the size to at least `bytes`; only before the first data().
  void reserve(size_t bytes) { needed = bytes > needed ? bytes : needed; }
  size_t size() const { return needed; }
  /// The memory, 64-byte aligned, allocated at the first call.
  char *data();

private:
  size_t needed = 0;
  AlignedBytes memory;
};

/// What a rank gives to its kernels when they are prepared.
struct PrepareContext {
  int threads = 1; ///< that one run() may use
  /// For each operand of the site: the bytes of a parameter that never changes,
  /// or null. May be shorter than the list of operands.
  std::vector<const char *> constant;
  /// Identity of those bytes: equal numbers promise equal bytes (for example
  /// parameter number and offset). Where it is missing the address is taken,
  /// which is right only while no constant's memory is freed during loading.
  std::vector<uint64_t> constantKeys;
  PackCache *packs = nullptr;       ///< null: nothing is shared
  std::shared_ptr<Scratch> scratch; ///< null: the kernel makes its own
  int64_t rankValueCount = 0;       ///< valid indices of MtpRank::rankValues
};

class LibraryKernel {
public:
  virtual ~LibraryKernel() = default;
  /// Computes the results. `buffers` holds the address of each operand of the
  /// site, in order; an operand for which keepsConstant() is false may be null.
  /// False and one sentence in `error` if the data can't be computed with (an
  /// index out of range); results are unspecified then.
  virtual bool run(const MtpRank *rank, char *const *buffers,
                   std::string &error) = 0;
  /// False if run() doesn't read operand `operand` because prepare packed it:
  /// the runtime may free or unmap those bytes.
  virtual bool keepsConstant(int operand) const {
    (void)operand;
    return true;
  }
  /// Bytes of packed constants, shared ones included.
  virtual int64_t packedBytes() const { return 0; }
  /// How it computes, for --verbose: "oneDNN brg:avx512_core", "tiled avx512".
  virtual std::string implementation() const = 0;
};

/// Checks `site` and makes its kernel. Null and one sentence in `error` if the
/// kind is unknown or an attribute, type or shape isn't supported.
std::unique_ptr<LibraryKernel>
prepareLibraryKernel(const LibrarySite &site, const PrepareContext &context,
                     std::string &error);

/// All kinds, sorted.
std::vector<std::string> libraryKernelKinds();

} // namespace mtp

#endif // MTP_RUNTIME_KERNELS_LIBRARYKERNEL_H
