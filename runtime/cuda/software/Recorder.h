// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Recorder.h - a driver that records and computes on the CPU ---------===//
//
// A library with the entry points of driver, cuBLASLt and NCCL that mtp uses.
// Device memory is memory of the process. Work isn't done when it is given to a
// stream but when somebody asks whether it is over, and then only what that
// stream's end depends on, in an order drawn by a seed: what isn't ordered by a
// stream or an event comes out wrong sooner or later.
//
// Copies, products and collectives are computed. A kernel is recorded; it is
// computed if a host function is registered for its name.
//
// Tests reach the functions below by dlsym. MTP_CUDA_RECORD=FILE writes the
// record as JSON when the process ends.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_SOFTWARE_RECORDER_H
#define MTP_RUNTIME_CUDA_SOFTWARE_RECORDER_H

#include "runtime/cuda/software/Record.h"

namespace mtp::software {

/// The body of a kernel: its parameters, each eight bytes; all of its threads
/// at once.
using KernelBody = void (*)(const uint64_t *parameters,
                            const unsigned *gridAndBlock);

/// What the recorder pretends to be.
struct Settings {
  int devices = 8;
  int initStatus = 0;                       ///< of cuInit
  uint64_t seed = 1;                        ///< of the order of execution
  uint64_t memoryBytes = uint64_t(1) << 34; ///< of a device
  int products = 2; ///< ways that cuBLASLt names to compute a product
  /// A fault to plant: "drop-wait" ignores a wait for an event in a capture,
  /// "allocate" takes memory at a launch in a capture, "free" gives the largest
  /// allocation back at the launch of a graph, "swap" exchanges a captured
  /// collective of the second rank of a communicator with the next one, or
  /// loses the last one. Empty: none.
  char plant[16] = "";
  int plantAt = 0; ///< how many such places come before it
};

} // namespace mtp::software

extern "C" {
/// Forgets record, kernels and settings. Nothing may be alive.
void mtpRecorderReset(const mtp::software::Settings *settings);
void mtpRecorderKernel(const char *name, mtp::software::KernelBody body);
/// Handles and allocations that are alive.
uint64_t mtpRecorderAlive();
/// A copy of the record so far, for mtpRecorderFree().
const mtp::software::Record *mtpRecorderTake();
void mtpRecorderFree(const mtp::software::Record *record);
}

#endif // MTP_RUNTIME_CUDA_SOFTWARE_RECORDER_H
