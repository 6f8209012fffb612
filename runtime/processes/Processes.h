// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Processes.h - a run whose ranks are processes ----------------------===//
//
// Rank r of the mesh is process r. All processes run the same commands in the
// same order; process 0 compiles, writes and speaks.
//
// A failure of one is announced to all others, which look for it wherever they
// wait and between any two instructions. At the end all processes wait for the
// verdict of process 0:
//
//   process 0   prints, writes   verdict ->   waits for all     ends
//   others      wait                          <- goodbye        end
//
// If process 0 or another one doesn't answer, all are ended by force.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_PROCESSES_PROCESSES_H
#define MTP_RUNTIME_PROCESSES_PROCESSES_H

#include "runtime/comm/Crew.h"
#include "runtime/processes/ProcessGroup.h"

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace mtp {

class Processes : public CrewLink {
public:
  /// What messages are about. Those of collectives come after these.
  enum Tag : int64_t {
    Failure,
    Verdict,
    Goodbye,
    Meeting,
    Shared,
    Block,
    NcclId,
    Choices,
    Collective ///< and all above it
  };

  explicit Processes(std::unique_ptr<ProcessGroup> group);
  ~Processes() override;

  int rank() const { return self; }
  int size() const { return count; }
  bool isFirst() const { return self == 0; }
  /// Processes of this host, and the place of this one among them.
  int onThisHost() const { return static_cast<int>(host.size()); }
  int placeOnThisHost() const;
  bool oneHost() const { return onThisHost() == count; }
  ProcessGroup &messages() { return *group; }

  // All processes call each of these in the same order. False with `error` if
  // another process has failed, a signal came, or the deadline passed (0:
  // there is none); `what` says in the message what others were awaited for.

  /// `all` gets `size` bytes of each process.
  bool exchange(const void *mine, void *all, size_t size, double seconds,
                const std::string &what, Error &error);
  template <typename T>
  bool exchange(T mine, std::vector<T> &all, double seconds,
                const std::string &what, Error &error) {
    all.resize(static_cast<size_t>(count));
    return exchange(&mine, all.data(), sizeof(T), seconds, what, error);
  }
  /// `bytes` of process 0 go to all.
  bool share(std::string &bytes, double seconds, const std::string &what,
             Error &error);
  /// A block of process `from` goes to process 0; others have nothing to do.
  bool collect(int from, char *bytes, size_t size, double seconds,
               const std::string &what, Error &error);

  /// Waits for a message; `check` is called in between and may throw. False if
  /// it failed or `seconds` passed (0: no end).
  bool finish(ProcessGroup::Ticket ticket, double seconds,
              const std::function<void()> &check);

  // CrewLink.
  void announce(const Error &error) override;
  Error heard() override;
  bool meet(double seconds, const std::string &what, Error &error) override;

  /// The end, see above. Process 0 calls it when it has written everything.
  /// `seconds`: how long others have to answer once something has failed.
  /// `speak` prints the failure where process 0 can't. Returns the exit code of
  /// all; doesn't return where processes must be ended by force.
  int conclude(const Error &error, double seconds,
               const std::function<void(const Error &)> &speak);

private:
  using Ticket = ProcessGroup::Ticket;
  /// Small enough that MPI sends it at once: the sender may be gone soon.
  static constexpr size_t kErrorBytes = 3072;
  using ErrorText = std::array<char, kErrorBytes>;

  bool await(std::vector<Ticket> tickets, double seconds,
             const std::string &what, const std::vector<int> &of, Error &error);
  Error broken() const;
  int concludeFirst(int code, double seconds);
  int concludeOther(const Error &error, double seconds,
                    const std::function<void(const Error &)> &speak);

  std::unique_ptr<ProcessGroup> group;
  int self, count;
  std::vector<int> host;

  std::mutex mutex; ///< of what follows
  std::vector<ErrorText> inbox;
  std::vector<Ticket> failures; ///< one a process, -1: none
  ErrorText outbox{};
  std::vector<Ticket> announced;
  bool failed = false; ///< here, or heard
  Error first;         ///< heard
  std::atomic<int64_t> nextLook{0};
};

/// Joins the processes that mpirun or --launch has started, through the library
/// that MTP_MPI_LIBRARY names, else ../lib/libmtp-mpi.so beside the folder of
/// the running program. Null with exit 6 in `error` if MPI is not here.
std::shared_ptr<Processes> joinProcesses(Error &error);
/// Whether that library opens.
bool canJoinProcesses(Error &error);

/// How many processes the launcher of MPI says there are, 1 if it says nothing,
/// and which of them this one is.
int launchedProcesses();
int launchedRank();
/// How many of them are on this host.
int launchedOnThisHost();

} // namespace mtp

#endif // MTP_RUNTIME_PROCESSES_PROCESSES_H
