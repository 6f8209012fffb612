// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Shadow.h - who touched which memory when ---------------------------===//
//
// One cell for each granule of the watched memory. Time is counted in phases:
// one begins with each block and with each barrier of a block. Blocks run one
// after the other, but nothing on a GPU orders them, so what two blocks do to
// one place is a race whichever phases they did it in:
//
//   earlier access            ordered before this one, by thread t of phase p
//   same thread, same block   yes
//   same block, phase < p     yes, a barrier was between
//   same block, phase p       no
//   another block             no
//
// Two accesses that are not ordered, one of which writes, are a race. What an
// asynchronous copy writes may not be touched from the copy's begin until its
// thread has waited for it; the write belongs to the moment after that.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_EMULATOR_SHADOW_H
#define MTP_RUNTIME_EMULATOR_SHADOW_H

#include <cstdint>
#include <vector>

namespace mtp::emulator {

/// Most threads of a block on any GPU.
inline constexpr int64_t kMaxThreads = 1024;

/// A thread at a phase.
struct Moment {
  uint32_t phase; ///< from 1
  uint32_t first; ///< phase in which the block began
  uint32_t thread;
};

/// Last access of a granule: 1 bit "read by earlier blocks too", 11 bits
/// thread, 20 bits phase.
class Stamp {
public:
  static constexpr uint32_t kPhases = 1u << 20;
  /// Thread number of "several threads in this phase".
  static constexpr uint32_t kSeveral = kMaxThreads;
  /// Thread number of a write that an asynchronous copy has begun.
  static constexpr uint32_t kCopy = kMaxThreads + 1;

  bool empty() const { return bits == 0; }
  uint32_t phase() const { return bits & (kPhases - 1); }
  uint32_t thread() const { return bits >> 20 & 0x7ff; }
  bool earlierBlocks() const { return bits >> 31; }
  void set(uint32_t thread, uint32_t phase, bool earlierBlocks = false) {
    bits = uint32_t(earlierBlocks) << 31 | thread << 20 | phase;
  }

private:
  uint32_t bits = 0;
};

enum class Conflict {
  None,
  Uninitialised, ///< read before any thread of the block wrote
  WriteWrite,
  ReadAfterWrite, ///< another thread wrote, nothing is between
  WriteAfterRead,
  ReadOfCopy, ///< that nobody has waited for
  WriteOfCopy
};

/// Cells of one stretch of memory.
class Shadow {
public:
  Shadow() = default;
  /// `shared`: memory that a block finds without contents.
  Shadow(int64_t bytes, int64_t granule, bool shared);

  /// Notes an access of [offset, offset + bytes), which lies inside.
  Conflict read(int64_t offset, int64_t bytes, Moment now);
  Conflict write(int64_t offset, int64_t bytes, Moment now);
  /// The same for what an asynchronous copy will write, until endCopy: all
  /// other accesses are conflicts.
  Conflict beginCopy(int64_t offset, int64_t bytes, Moment now);
  void endCopy(int64_t offset, int64_t bytes, Moment now);
  /// Forgets everything.
  void clear();

  /// The thread that the last conflict was with; kSeveral: several.
  uint32_t otherThread() const { return other; }
  bool otherBlock() const { return otherIsOutside; }

private:
  struct Cell {
    Stamp written, readBy;
  };
  Conflict conflict(Conflict kind, Stamp with, Moment now);
  void stamp(int64_t offset, int64_t bytes, uint32_t thread, Moment now);

  int64_t granule = 1;
  bool isShared = false;
  std::vector<Cell> cells;
  uint32_t other = 0;
  bool otherIsOutside = false;
};

} // namespace mtp::emulator

#endif // MTP_RUNTIME_EMULATOR_SHADOW_H
