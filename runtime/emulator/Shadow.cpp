// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/emulator/Shadow.h"

#include <algorithm>

using namespace mtp::emulator;

Shadow::Shadow(int64_t bytes, int64_t granule, bool shared)
    : granule(granule), isShared(shared),
      cells(static_cast<size_t>((bytes + granule - 1) / granule)) {}

void Shadow::clear() { std::fill(cells.begin(), cells.end(), Cell()); }

Conflict Shadow::conflict(Conflict kind, Stamp with, Moment now) {
  other = with.thread();
  otherIsOutside = with.earlierBlocks() || with.phase() < now.first;
  return kind;
}

Conflict Shadow::read(int64_t offset, int64_t bytes, Moment now) {
  for (int64_t at = offset / granule, end = (offset + bytes - 1) / granule;
       at <= end; ++at) {
    Cell &cell = cells[static_cast<size_t>(at)];
    Stamp written = cell.written;
    if (isShared && (written.empty() || written.phase() < now.first))
      return Conflict::Uninitialised;
    if (written.thread() == Stamp::kCopy)
      return conflict(Conflict::ReadOfCopy, written, now);
    if (!written.empty() &&
        (written.phase() < now.first ||
         (written.phase() == now.phase && written.thread() != now.thread)))
      return conflict(Conflict::ReadAfterWrite, written, now);
    Stamp before = cell.readBy;
    if (before.phase() == now.phase) {
      if (before.thread() != now.thread)
        cell.readBy.set(Stamp::kSeveral, now.phase, before.earlierBlocks());
    } else {
      cell.readBy.set(now.thread, now.phase,
                      before.earlierBlocks() ||
                          (!before.empty() && before.phase() < now.first));
    }
  }
  return Conflict::None;
}

Conflict Shadow::write(int64_t offset, int64_t bytes, Moment now) {
  for (int64_t at = offset / granule, end = (offset + bytes - 1) / granule;
       at <= end; ++at) {
    Cell &cell = cells[static_cast<size_t>(at)];
    Stamp written = cell.written, readBy = cell.readBy;
    // Another block's array in shared memory is another array.
    bool isOld = isShared && written.phase() < now.first;
    if (!isOld && written.thread() == Stamp::kCopy)
      return conflict(Conflict::WriteOfCopy, written, now);
    if (!written.empty() && !isOld &&
        (written.phase() < now.first ||
         (written.phase() == now.phase && written.thread() != now.thread)))
      return conflict(Conflict::WriteWrite, written, now);
    isOld = isShared && readBy.phase() < now.first;
    if (!readBy.empty() && !isOld &&
        ((readBy.earlierBlocks() && !isShared) || readBy.phase() < now.first ||
         (readBy.phase() == now.phase && readBy.thread() != now.thread)))
      return conflict(Conflict::WriteAfterRead, readBy, now);
    cell.written.set(now.thread, now.phase);
  }
  return Conflict::None;
}

void Shadow::stamp(int64_t offset, int64_t bytes, uint32_t thread, Moment now) {
  for (int64_t at = offset / granule, end = (offset + bytes - 1) / granule;
       at <= end; ++at)
    cells[static_cast<size_t>(at)].written.set(thread, now.phase);
}

Conflict Shadow::beginCopy(int64_t offset, int64_t bytes, Moment now) {
  Conflict found = write(offset, bytes, now);
  if (found == Conflict::None)
    stamp(offset, bytes, Stamp::kCopy, now);
  return found;
}

void Shadow::endCopy(int64_t offset, int64_t bytes, Moment now) {
  stamp(offset, bytes, now.thread, now);
}
