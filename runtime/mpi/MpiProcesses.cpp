// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MpiProcesses.cpp - messages by MPI ---------------------------------===//
//
// Only non-blocking calls, so that who waits can look at deadlines and at
// failures of others. Messages of more than 2^30 bytes go in pieces: counts of
// MPI are ints.
//
//===----------------------------------------------------------------------===//
#include "runtime/processes/ProcessGroup.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mpi.h>
#include <mutex>

using namespace mtp;

namespace {

constexpr size_t kPiece = size_t(1) << 30;

std::string errorText(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, static_cast<size_t>(length));
}

class MpiProcesses : public ProcessGroup {
public:
  MpiProcesses() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &self);
    MPI_Comm_size(comm, &count);
    int *bound = nullptr, found = 0;
    MPI_Comm_get_attr(comm, MPI_TAG_UB, &bound, &found);
    if (found)
      highestTag = *bound;
    findHost();
  }

  int rank() const override { return self; }
  int size() const override { return count; }
  std::vector<int> onThisHost() const override { return host; }
  int64_t tags() const override { return highestTag + 1; }

  Ticket send(int to, int64_t tag, const void *bytes, size_t size) override {
    return begin(size, [&](size_t offset, int part, MPI_Request *request) {
      return MPI_Isend(static_cast<const char *>(bytes) + offset, part,
                       MPI_BYTE, to, static_cast<int>(tag), comm, request);
    });
  }

  Ticket receive(int from, int64_t tag, void *bytes, size_t size) override {
    return begin(size, [&](size_t offset, int part, MPI_Request *request) {
      return MPI_Irecv(static_cast<char *>(bytes) + offset, part, MPI_BYTE,
                       from, static_cast<int>(tag), comm, request);
    });
  }

  State ask(Ticket ticket) override {
    std::lock_guard lock(mutex);
    auto it = messages.find(ticket);
    if (it == messages.end())
      return State::Failed;
    Message &message = it->second;
    while (message.code == MPI_SUCCESS && !message.pieces.empty()) {
      int over = 0;
      message.code = MPI_Test(&message.pieces.back(), &over, MPI_STATUS_IGNORE);
      if (message.code == MPI_SUCCESS && !over)
        return State::UnderWay;
      message.pieces.pop_back();
    }
    bool good = message.code == MPI_SUCCESS;
    if (!good)
      lastFailure = errorText(message.code);
    messages.erase(it);
    return good ? State::Done : State::Failed;
  }

  void giveUp(Ticket ticket) override {
    std::lock_guard lock(mutex);
    auto it = messages.find(ticket);
    if (it == messages.end())
      return;
    for (MPI_Request &request : it->second.pieces) {
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
    messages.erase(it);
  }

  std::string failure() const override {
    std::lock_guard lock(mutex);
    return lastFailure;
  }

  void leave() override { MPI_Finalize(); }
  void endAll(int code) override { MPI_Abort(comm, code); }

private:
  struct Message {
    std::vector<MPI_Request> pieces;
    int code = MPI_SUCCESS;
  };

  void findHost() {
    MPI_Comm near;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, self, MPI_INFO_NULL, &near);
    int size = 0;
    MPI_Comm_size(near, &size);
    host.resize(static_cast<size_t>(size));
    MPI_Allgather(&self, 1, MPI_INT, host.data(), 1, MPI_INT, near);
    MPI_Comm_free(&near);
    std::sort(host.begin(), host.end());
  }

  /// Pieces lie in reverse, so that the first one is asked for first.
  template <typename Call> Ticket begin(size_t size, Call &&call) {
    std::lock_guard lock(mutex);
    Message message;
    size_t offset = 0;
    do {
      size_t part = std::min(kPiece, size - offset);
      MPI_Request request = MPI_REQUEST_NULL;
      message.code = call(offset, static_cast<int>(part), &request);
      message.pieces.push_back(request);
      offset += part;
    } while (offset < size && message.code == MPI_SUCCESS);
    std::reverse(message.pieces.begin(), message.pieces.end());
    messages.emplace(next, std::move(message));
    return next++;
  }

  MPI_Comm comm = MPI_COMM_NULL;
  int self = 0, count = 1;
  int64_t highestTag = 32767; ///< MPI's least
  std::vector<int> host;
  mutable std::mutex mutex;
  std::map<Ticket, Message> messages;
  Ticket next = 0;
  std::string lastFailure;
};

} // namespace

ProcessGroup *mtp::mtpJoinProcesses(int version, std::string *error) {
  if (version != kProcessGroupVersion) {
    *error = "its interface is another";
    return nullptr;
  }
  // With more processes than cores Open MPI offers the core at every look at a
  // message; who waits here sleeps instead (Pause.h).
  setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
  int provided = MPI_THREAD_SINGLE;
  int code =
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (code != MPI_SUCCESS) {
    *error = "MPI_Init_thread: " + errorText(code);
    return nullptr;
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    *error = "this MPI can't be called by more than one thread of a process "
             "(MPI_THREAD_SERIALIZED)";
    MPI_Finalize();
    return nullptr;
  }
  return new MpiProcesses;
}
