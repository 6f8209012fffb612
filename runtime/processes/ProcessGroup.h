// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ProcessGroup.h - messages between the processes of a run -----------===//
//
// What mtp needs of MPI, and no more, so that only the library that implements
// it (runtime/mpi) knows MPI's headers. Nothing here throws or waits but
// leave(). Calls of several threads are put in a row by the implementation.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_PROCESSES_PROCESSGROUP_H
#define MTP_RUNTIME_PROCESSES_PROCESSGROUP_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mtp {

class ProcessGroup {
public:
  /// A message that is being sent or received.
  using Ticket = int64_t;
  enum class State { UnderWay, Done, Failed };

  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The processes of this host in their order, this one among them.
  virtual std::vector<int> onThisHost() const = 0;
  /// Tags are 0 to tags() - 1. Messages of one tag from one process to another
  /// come in the order in which they were sent.
  virtual int64_t tags() const = 0;

  /// The bytes stay as they are until the ticket is done. Any size.
  virtual Ticket send(int to, int64_t tag, const void *bytes, size_t size) = 0;
  /// Takes a message of at most `size` bytes; one larger than that fails.
  virtual Ticket receive(int from, int64_t tag, void *bytes, size_t size) = 0;
  /// A ticket that is done or failed is used up.
  virtual State ask(Ticket ticket) = 0;
  /// Gives up what has not ended; the bytes are not touched any more.
  virtual void giveUp(Ticket ticket) = 0;
  /// Why the last ticket failed.
  virtual std::string failure() const = 0;

  /// Ends the group, for which it may wait for all processes. Last call.
  virtual void leave() = 0;
  /// Ends all processes with `code`.
  virtual void endAll(int code) = 0;
};

/// Libraries with a process group have this function; `version` is
/// kProcessGroupVersion of the caller. Null with a reason in `error`.
inline constexpr int kProcessGroupVersion = 1;
extern "C" ProcessGroup *mtpJoinProcesses(int version, std::string *error);

} // namespace mtp

#endif // MTP_RUNTIME_PROCESSES_PROCESSGROUP_H
