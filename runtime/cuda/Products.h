// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Products.h - matrix products by cuBLASLt ---------------------------===//
//
// A library site of kind "matmul" (runtime/kernels/LibraryKernel.h). cuBLASLt
// thinks in columns: a row-major Y [m, n] = A B is the column-major product
// Y' [n, m] = B' A', with the same bytes; a bias of n is then one of rows.
//
// Taken are f64, f32, f16 and bf16, 16-bit operands with f32 results, a bias,
// and as epilogues gelu_tanh, which is the form that cuBLASLt computes, its
// gradient, and sums that are gradients of a bias. Other activations are not
// computed as the op means them (its relu turns NaN into 0) and are refused,
// like residuals and integers: the compiler has kernels.
//
// What computes a shape is chosen once: rank 0 times the candidates of the
// heuristics, and all ranks take its choice, so that values that are equal on
// all ranks stay equal. Reductions with atomics are never among them. A call
// that stands for a product and kernels (Instruction::otherwise) is timed
// against those, and left out where it isn't faster or cuBLASLt has no way to
// compute it.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_PRODUCTS_H
#define MTP_RUNTIME_CUDA_PRODUCTS_H

#include "runtime/artifact/Artifact.h"
#include "runtime/comm/Crew.h"
#include "runtime/cuda/Handles.h"
#include "runtime/processes/Processes.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace mtp::cuda {

/// What rank 0 has chosen, by shape.
class ProductChoices {
public:
  struct Choice {
    BlasAlgorithm algorithm{};
    size_t workspaceBytes = 0;
    bool isTaken = true; ///< false: its other form is faster
  };
  /// False if there is none for `key`.
  bool find(const std::string &key, Choice &choice) const;
  void add(const std::string &key, const Choice &choice);
  /// Rank 0 has chosen for all its products.
  void finish();
  /// Waits for that; throws RankStopped.
  void await(Crew &crew) const;
  /// The same between processes: rank 0 sends what it has chosen, each of the
  /// others takes it. Throw RankStopped or RuntimeError.
  void send(Processes &processes, Crew &crew) const;
  void receive(Processes &processes, Crew &crew);

private:
  mutable std::mutex mutex;
  std::map<std::string, Choice> choices;
  std::atomic<bool> finished{false};
};

/// The products of one rank. All methods need its device to be current.
class Products {
public:
  /// What NVIDIA advises for Hopper; older devices need less.
  static constexpr int64_t kWorkspaceBytes = 32 << 20;

  Products(const CublasLtApi &blas, const Device &device,
           std::shared_ptr<Crew> crew, std::shared_ptr<ProductChoices> choices);
  ~Products();
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;

  /// One call site with its addresses, ready to be given to streams.
  class Call;
  /// What else computes a call's results.
  struct Otherwise {
    std::string key;               ///< equal: as fast
    std::function<void()> enqueue; ///< to the stream that prepare() is told
  };

  /// Checks the site and chooses how it is computed: by itself if `chooses`, or
  /// as was chosen. `tf32`: f32 products may round their operands to tf32.
  /// Null: it is computed `otherwise`. Throws RuntimeError that begins with
  /// `where`.
  const Call *prepare(const LibrarySite &site,
                      const std::vector<Address> &buffers, bool tf32,
                      bool chooses, const std::string &where,
                      StreamHandle *stream,
                      const Otherwise *otherwise = nullptr);
  void enqueue(const Call &call, StreamHandle *stream) const;

  /// Of the workspace that all products of the rank share.
  int64_t workspaceBytes() const { return kWorkspaceBytes; }
  /// "matmul: cuBLASLt".
  std::set<std::string> implementations() const;

private:
  void describe(Call &call, bool tf32) const;
  std::vector<BlasCandidate> candidatesOf(const Call &call,
                                          BlasStatus &status) const;
  void choose(Call &call, StreamHandle *stream, const Otherwise *otherwise);
  float time(const Call &call, const BlasCandidate &candidate, Address result,
             StreamHandle *stream) const;
  float time(const std::function<bool()> &enqueue, StreamHandle *stream) const;
  void checkBlas(BlasStatus status, const std::string &what) const;

  const CublasLtApi &blas;
  const Device &device;
  std::shared_ptr<Crew> crew;
  std::shared_ptr<ProductChoices> choices;
  BlasHandle *handle = nullptr;
  DeviceMemory workspace;
  std::vector<std::unique_ptr<Call>> calls;
};

/// Waits until `stream` has done all it was given; polls, so that a rank that
/// has to end does. Throws RankStopped or RuntimeError.
void finishStream(const DriverApi &driver, StreamHandle *stream, Crew &crew);

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_PRODUCTS_H
