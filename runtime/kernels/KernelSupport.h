// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- KernelSupport.h - what all library kernels share -------------------===//
//
// Checked access to a LibrarySite while a kernel is prepared. Anything that is
// wrong is thrown as a KernelError, which prepareLibraryKernel() turns into its
// error string; nothing throws during run().
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_KERNELS_KERNELSUPPORT_H
#define MTP_RUNTIME_KERNELS_KERNELSUPPORT_H

#include "runtime/kernels/LibraryKernel.h"
#include <optional>
#include <set>
#include <stdexcept>

namespace mtp {

struct KernelError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void refuse(const std::string &message);

/// An operand with its strides filled in.
struct Tensor {
  DType type = DType::F32;
  std::vector<int64_t> shape, strides;
  int rank() const { return int(shape.size()); }
  int64_t dim(int i) const { return shape[i < 0 ? rank() + i : i]; }
  int64_t stride(int i) const { return strides[i < 0 ? rank() + i : i]; }
  int64_t elements() const; ///< checked product of the shape
  bool isRowMajor() const; ///< dense or empty; dimensions of size 1 don't count
};

/// Row-major strides of `shape`.
std::vector<int64_t> rowMajorStrides(const std::vector<int64_t> &shape);

/// "2x3xf32".
std::string toString(const Tensor &tensor);

/// Reads a site: every operand and attribute that exists must be asked for, or
/// finish() refuses what is left.
class SiteReader {
public:
  SiteReader(const LibrarySite &site, const PrepareContext &context);

  const std::string &kind() const { return site.kind; }
  const PrepareContext &context;

  /// The next operand (inputs, then results); what: its name in messages.
  Tensor next(const char *what);
  /// Position in `operands` of what next() returns next.
  int position() const { return at; }

  int64_t integer(const char *name, std::optional<int64_t> otherwise,
                  int64_t least, int64_t most);
  double number(const char *name, std::optional<double> otherwise);
  bool flag(const char *name, bool otherwise);
  std::string choice(const char *name, const char *otherwise,
                     const std::vector<std::string> &choices);
  std::vector<int64_t> integers(const char *name);
  /// An axis of `rank` dimensions, counted from 0.
  int axis(const char *name, int rank, std::optional<int64_t> otherwise);

  void require(bool condition, const std::string &message) const;
  void finish() const;

private:
  const LibrarySite &site;
  int at = 0;
  std::set<std::string> known;
  const nlohmann::json *find(const char *name);
};

/// The bytes of constant operand `operand`, or null; and the cache key's
/// number.
const char *constantBytes(const PrepareContext &context, int operand);
uint64_t constantKey(const PrepareContext &context, int operand);

/// Packs through the context's cache if there is one.
std::shared_ptr<AlignedBytes>
packConstant(const PrepareContext &context, int operand,
             const std::string &format, size_t bytes,
             const std::function<void(char *)> &pack);

/// The context's scratch, or a new one.
std::shared_ptr<Scratch> scratchOf(const PrepareContext &context);

int64_t checkedMultiply(int64_t a, int64_t b);
inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline size_t alignUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

// The kinds, one function each.
std::unique_ptr<LibraryKernel> prepareMatmul(SiteReader &reader);
std::unique_ptr<LibraryKernel> prepareAttention(SiteReader &reader);
std::unique_ptr<LibraryKernel> prepareAttentionGradient(SiteReader &reader);
std::unique_ptr<LibraryKernel> prepareTopK(SiteReader &reader);
std::unique_ptr<LibraryKernel> prepareArgMax(SiteReader &reader);
std::unique_ptr<LibraryKernel> prepareCumSum(SiteReader &reader);
std::unique_ptr<LibraryKernel> prepareGatherNd(SiteReader &reader);
std::unique_ptr<LibraryKernel> prepareScatterElements(SiteReader &reader);
std::unique_ptr<LibraryKernel> prepareScatterNd(SiteReader &reader);
std::unique_ptr<LibraryKernel> prepareGatherGradient(SiteReader &reader);
std::unique_ptr<LibraryKernel> prepareConvolution(SiteReader &reader);
std::unique_ptr<LibraryKernel>
prepareConvolutionInputGradient(SiteReader &reader);
std::unique_ptr<LibraryKernel>
prepareConvolutionFilterGradient(SiteReader &reader);

} // namespace mtp

#endif // MTP_RUNTIME_KERNELS_KERNELSUPPORT_H
