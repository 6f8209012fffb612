// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/emulator/Machine.h"

using namespace mtp::emulator;

std::string Machine::place(int64_t site) const {
  return site < 0 ? "the end of the kernel"
                  : kernel->sites[static_cast<size_t>(site)].where;
}

std::string Machine::describe(const Failure &what) const {
  auto threadName = [&](uint32_t number) {
    if (number == Stamp::kSeveral)
      return std::string("several threads");
    return "thread " + std::to_string(number);
  };
  auto blockName = "block (" + std::to_string(block[0]) + ", " +
                   std::to_string(block[1]) + ", " + std::to_string(block[2]) +
                   ")";
  std::string text = "kernel " + kernel->symbol + ", " + blockName + ", " +
                     threadName(what.thread) + ", at " + place(what.site) +
                     ": ";
  const Site &site = kernel->sites[static_cast<size_t>(what.site)];
  std::string memory = site.memory == Site::Memory::Parameter
                           ? "parameter " + std::to_string(site.index)
                       : site.memory == Site::Memory::Array
                           ? "shared array " + std::to_string(site.index)
                           : "memory";
  std::string bytes = std::to_string(what.bytes) + " bytes at offset " +
                      std::to_string(what.offset) + " of " + memory;
  std::string other =
      threadName(what.other) + (what.otherBlock ? " of another block" : "");
  switch (what.trouble) {
  case Trouble::None:
    break;
  case Trouble::Outside:
    return text + bytes + " are outside of its " + std::to_string(what.extent) +
           " bytes";
  case Trouble::Misaligned:
    return text + "the address of " + std::to_string(site.bytes) +
           " bytes is not a multiple of that";
  case Trouble::Conflict:
    switch (what.conflict) {
    case Conflict::None:
      break;
    case Conflict::Uninitialised:
      return text + bytes + " are read, but no thread of the block wrote them";
    case Conflict::WriteWrite:
      return text + bytes + " are written, and " + other +
             " wrote there with no barrier between";
    case Conflict::ReadAfterWrite:
      return text + bytes + " are read, and " + other +
             " wrote there with no barrier between";
    case Conflict::ReadOfCopy:
    case Conflict::WriteOfCopy:
      return text + bytes +
             (what.conflict == Conflict::ReadOfCopy ? " are read"
                                                    : " are written") +
             " while an asynchronous copy to there has not been waited for";
    case Conflict::WriteAfterRead:
      return text + bytes + " are written, and " + other +
             " read there with no barrier between";
    }
    break;
  case Trouble::LeftBarrier:
    return text + "the thread is at " + place(what.otherSite) + " while " +
           other + " waits for it at the barrier";
  case Trouble::LeftWarp:
    return text + "the thread is at " + place(what.otherSite) + " while " +
           other + " waits for its whole warp";
  case Trouble::NotShared:
    return text + "the copy is not to an array of shared memory";
  case Trouble::LeftCopy:
    return text + "the thread ends and has not waited for this copy";
  case Trouble::SourceChanged:
    return text + "what the copy reads changed before it was waited for";
  case Trouble::PartOfWarp:
    return text + "operations of a part of a warp are not emulated";
  }
  return text;
}
