// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Kernels.h - fused regions to machine code --------------------------===//
//
// A `spmd.fused` region becomes one kernel `void k(rank, buffers, begin, end)`
// (runtime/abi/Abi.h). Kernels are destination-passing from the start: each
// element of a result is computed by an expression over elements of the
// operands and stored where the caller says. So there is no tensor to
// bufferize and no allocation inside a kernel (DESIGN section 5 planned
// one-shot bufferization; nothing is left for it to do).
//
//   region of mtp ops  --(add: one per structure)-->  func of scf, arith, math
//     --(emitObject)-->  LLVM IR  -->  object  -->  hermetic shared object
//
// Buffers of a kernel: the operands of the op in order, then its results, each
// the base address of a row-major local tensor, aligned to its element size
// (64 bytes are faster). Booleans are bytes 0 or 1. A result may not overlap an
// operand or another result, except for the pairs that are in place
// (InPlace.h); operands may overlap each other. A result of spmd.rank_value is
// passed as the address of the rank's int64.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_KERNELS_H
#define MTP_COMPILER_CODEGEN_KERNELS_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mtp {

/// What a launch needs to know: Instruction::count and Instruction::grain.
struct KernelInfo {
  std::string name;  ///< "layer_norm_3"; kernelNames[index] of the artifact
  int64_t count = 1; ///< iterations of the outermost parallel loop
  int64_t grain = 1; ///< least iterations that are worth a thread
};

/// How objects are made.
struct KernelOptions {
  std::string
      linker; ///< path of ld.lld; "" finds it (PATH, then where CMake did)
  unsigned threads = 2; ///< LLVM modules compiled at the same time
  std::string dumpDir;  ///< "" or where kernels.mlir and kernels.ll are written
};

/// A compiled set of kernels.
struct KernelObject {
  std::string bytes; ///< ELF shared object, exports mtp_kernels
  std::vector<std::string> cpuFeatures; ///< Artifact::cpuFeatures
  std::vector<std::pair<std::string, double>>
      stageMs; ///< lower, optimize, codegen, link
};

/// How a value lies in memory.
struct ValuePlace {
  llvm::SmallVector<int64_t> strides; ///< in elements; empty: row-major
  int64_t alignment = 1;              ///< of its address, bytes
};

/// One launch of a kernel: its buffers are those of the values, in order.
struct KernelLaunch {
  int index = 0;
  KernelInfo info;
  llvm::SmallVector<mlir::Value> buffers;
};

/// The kernels of one compile. Not for use by several threads.
class KernelModule {
public:
  using PlaceOf = llvm::function_ref<ValuePlace(mlir::Value)>;

  explicit KernelModule(mlir::MLIRContext *context);
  virtual ~KernelModule();

  /// The launches that compute `op`, one after the other; none if the runtime's
  /// library does. Emits a diagnostic at the op if neither can.
  virtual mlir::FailureOr<llvm::SmallVector<KernelLaunch>>
  launches(mlir::Operation *op, PlaceOf placeOf);

  /// The kernel of a `spmd.fused` op, or of a single fusible op that stands
  /// alone. Structurally equal regions (types, attributes and wiring; not
  /// locations or names) get the same index. Emits a diagnostic at the op and
  /// fails if an op in it has no emitter.
  mlir::FailureOr<int> add(mlir::Operation *fused, KernelInfo &info);

  /// The same for a function of mtp ops (tests, tools).
  mlir::FailureOr<int> addFunction(mlir::Operation *func, KernelInfo &info);

  /// All kernels, by index.
  const std::vector<KernelInfo> &kernels() const { return infos; }

  /// Messages of Artifact::faults: kernels store the 1-based position. Faults
  /// of the caller's own go behind them.
  const std::vector<std::string> &faults() const { return faultMessages; }

  /// Names the object in a cache: a SHA-256 (hex) of all regions, the target
  /// and the versions that produce the object. Equal keys, equal objects.
  std::string cacheKey() const;

  /// Features of this machine's processor, as in KernelObject::cpuFeatures.
  static std::vector<std::string> hostFeatures();

  /// Compiles all kernels for this machine. On failure `error` says why.
  mlir::FailureOr<KernelObject> emitObject(const KernelOptions &options,
                                           std::string &error);

  /// The module of regions, one func a kernel, for --dump-dir.
  mlir::ModuleOp regions() { return *regionModule; }
  /// The module of loops, one func a kernel: what emitObject compiles.
  mlir::ModuleOp loops() { return *loopModule; }

protected:
  /// Kernel `index` of a region, a func of mtp ops. `name` is for people.
  virtual mlir::FailureOr<KernelInfo>
  emitRegion(mlir::Operation *func, int index, llvm::StringRef name,
             llvm::function_ref<int64_t(const std::string &)> faultNumber);
  /// True if the op may stand in a region.
  virtual bool isAccepted(mlir::Operation *op) const;
  /// A func with the ops of a fused region, or with one op.
  mlir::Operation *regionOf(mlir::Operation *op);
  mlir::FailureOr<int> addRegion(mlir::Operation *func, mlir::Location loc,
                                 KernelInfo &info);

private:
  mlir::OwningOpRef<mlir::ModuleOp>
      regionModule;                             ///< mtp ops, one func a kernel
  mlir::OwningOpRef<mlir::ModuleOp> loopModule; ///< loops, one func a kernel
  std::vector<KernelInfo> infos;
  std::vector<std::string> faultMessages;
  std::vector<std::string> texts; ///< region text by kernel
  std::vector<std::vector<size_t>>
      faultsOf; ///< positions in faultMessages by kernel
  std::map<std::string, int> indexOfText; ///< structure -> kernel
};

/// True if `op` can be part of a kernel: an emitter is registered for it.
bool isFusible(mlir::Operation *op);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_KERNELS_H
