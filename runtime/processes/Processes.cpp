// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/processes/Processes.h"
#include "runtime/processes/Pause.h"
#include "runtime/support/System.h"

#include <algorithm>
#include <nlohmann/json.hpp>

using namespace mtp;
using State = ProcessGroup::State;

namespace {

/// Failures of others are looked for this often, nanoseconds.
constexpr int64_t kLookNanoseconds = 50'000;
/// What has been given to others should be gone after this many seconds.
constexpr double kLastWords = 1;

/// JSON that fits; long messages end early.
template <size_t Size>
void pack(const Error &error, std::array<char, Size> &text) {
  nlohmann::json nodes = nlohmann::json::array();
  size_t room = Size / 4;
  for (const std::string &node : error.nodes) {
    if (node.size() + 8 > room)
      break;
    room -= node.size() + 8;
    nodes.push_back(node);
  }
  std::string message = error.message;
  while (true) {
    nlohmann::json json = {{"code", error.exitCode},
                           {"kind", error.kind},
                           {"message", message},
                           {"nodes", nodes}};
    std::string bytes =
        json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (bytes.size() < Size) {
      text.fill(0);
      std::memcpy(text.data(), bytes.data(), bytes.size());
      return;
    }
    message.resize(message.size() / 2);
    nodes.clear();
  }
}

template <size_t Size> Error unpack(std::array<char, Size> &text, int process) {
  text.back() = 0;
  Error error;
  auto json = nlohmann::json::parse(text.data(), nullptr, false);
  if (json.is_object() && json.value("code", 0) != 0)
    return {json.value("code", 0), json.value("kind", ""),
            json.value("message", ""),
            json.value("nodes", std::vector<std::string>())};
  return {exits::RankFailure,
          "communication",
          "rank " + std::to_string(process) + " failed and can't say why",
          {}};
}

std::string ranksText(const std::vector<int> &ranks) {
  std::string text;
  for (int rank : ranks)
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank);
  return text;
}

} // namespace

Processes::Processes(std::unique_ptr<ProcessGroup> given)
    : group(std::move(given)), self(group->rank()), count(group->size()),
      host(group->onThisHost()), inbox(static_cast<size_t>(count)) {
  for (int i = 0; i < count; ++i)
    failures.push_back(i == self ? -1
                                 : group->receive(i, Failure, inbox[i].data(),
                                                  inbox[i].size()));
}

Processes::~Processes() = default;

int Processes::placeOnThisHost() const {
  return static_cast<int>(std::find(host.begin(), host.end(), self) -
                          host.begin());
}

void Processes::announce(const Error &error) {
  std::lock_guard lock(mutex);
  if (failed)
    return;
  failed = true;
  pack(error, outbox);
  for (int i = 0; i < count; ++i)
    if (i != self)
      announced.push_back(
          group->send(i, Failure, outbox.data(), outbox.size()));
}

Error Processes::heard() {
  int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                    Pause::Clock::now().time_since_epoch())
                    .count();
  if (now < nextLook.load(std::memory_order_relaxed))
    return {};
  nextLook.store(now + kLookNanoseconds, std::memory_order_relaxed);
  std::lock_guard lock(mutex);
  for (int i = 0; i < count && !first; ++i) {
    if (failures[i] < 0)
      continue;
    State state = group->ask(failures[i]);
    if (state == State::UnderWay)
      continue;
    failures[i] = -1;
    first = state == State::Done ? unpack(inbox[i], i) : broken();
    failed = true;
  }
  return first;
}

Error Processes::broken() const {
  return {exits::RankFailure,
          "communication",
          "MPI, rank " + std::to_string(self) + ": " + group->failure(),
          {}};
}

bool Processes::await(std::vector<Ticket> tickets, double seconds,
                      const std::string &what, const std::vector<int> &of,
                      Error &error) {
  std::vector<bool> over(tickets.size(), false);
  size_t open = tickets.size();
  auto giveUp = [&](Error reason) {
    for (size_t i = 0; i < tickets.size(); ++i)
      if (!over[i])
        group->giveUp(tickets[i]);
    error = std::move(reason);
    return false;
  };
  for (Pause pause; true; pause()) {
    for (size_t i = 0; i < tickets.size(); ++i) {
      if (over[i])
        continue;
      State state = group->ask(tickets[i]);
      if (state == State::UnderWay)
        continue;
      over[i] = true;
      --open;
      if (state == State::Failed)
        return giveUp(broken());
    }
    if (open == 0)
      return true;
    if (Error other = heard())
      return giveUp(other);
    if (int signal = stopRequested())
      return giveUp(endedBySignal(signal));
    if (seconds <= 0 || pause.seconds() < seconds)
      continue;
    std::vector<int> missing;
    for (size_t i = 0; i < tickets.size(); ++i)
      if (!over[i] &&
          std::find(missing.begin(), missing.end(), of[i]) == missing.end())
        missing.push_back(of[i]);
    std::string time = std::to_string(seconds);
    time.resize(time.find('.') + 3);
    return giveUp({exits::RankFailure,
                   "communication",
                   "rank " + std::to_string(self) + " waited " + time +
                       " s for the others " + what +
                       "; missing: " + ranksText(missing),
                   {}});
  }
}

bool Processes::exchange(const void *mine, void *all, size_t size,
                         double seconds, const std::string &what,
                         Error &error) {
  std::vector<Ticket> tickets;
  std::vector<int> of;
  char *at = static_cast<char *>(all);
  for (int i = 0; i < count; ++i, at += size) {
    if (i == self) {
      std::memcpy(at, mine, size);
      continue;
    }
    tickets.push_back(group->receive(i, Meeting, at, size));
    tickets.push_back(group->send(i, Meeting, mine, size));
    of.insert(of.end(), 2, i);
  }
  return await(std::move(tickets), seconds, what, of, error);
}

bool Processes::meet(double seconds, const std::string &what, Error &error) {
  std::vector<char> all;
  return exchange('.', all, seconds, what, error);
}

bool Processes::share(std::string &bytes, double seconds,
                      const std::string &what, Error &error) {
  uint64_t size = bytes.size();
  std::vector<Ticket> tickets;
  std::vector<int> of;
  if (!isFirst()) {
    if (!await({group->receive(0, Shared, &size, sizeof(size))}, seconds, what,
               {0}, error))
      return false;
    bytes.assign(size, 0);
    return await({group->receive(0, Shared, bytes.data(), size)}, seconds, what,
                 {0}, error);
  }
  for (int i = 1; i < count; ++i) {
    tickets.push_back(group->send(i, Shared, &size, sizeof(size)));
    tickets.push_back(group->send(i, Shared, bytes.data(), size));
    of.insert(of.end(), 2, i);
  }
  return await(std::move(tickets), seconds, what, of, error);
}

bool Processes::collect(int from, char *bytes, size_t size, double seconds,
                        const std::string &what, Error &error) {
  if (from == 0 || (self != 0 && self != from))
    return true;
  Ticket ticket = self == 0 ? group->receive(from, Block, bytes, size)
                            : group->send(0, Block, bytes, size);
  return await({ticket}, seconds, what, {self == 0 ? from : 0}, error);
}

bool Processes::finish(Ticket ticket, double seconds,
                       const std::function<void()> &check) {
  for (Pause pause; true; pause()) {
    State state = group->ask(ticket);
    if (state != State::UnderWay)
      return state == State::Done;
    if (seconds > 0 && pause.seconds() > seconds) {
      group->giveUp(ticket);
      return false;
    }
    check();
  }
}

int Processes::conclude(const Error &error, double seconds,
                        const std::function<void(const Error &)> &speak) {
  if (error)
    announce(error);
  int code = isFirst() ? concludeFirst(error.exitCode, seconds)
                       : concludeOther(error, seconds, speak);
  for (Ticket ticket : failures)
    if (ticket >= 0)
      group->giveUp(ticket);
  // After a failure messages may be under way that nobody takes.
  if (code == 0)
    group->leave();
  return code;
}

int Processes::concludeFirst(int code, double seconds) {
  std::vector<Ticket> tickets;
  std::vector<char> words(static_cast<size_t>(count));
  for (int i = 1; i < count; ++i) {
    tickets.push_back(group->send(i, Verdict, &code, sizeof(code)));
    tickets.push_back(group->receive(i, Goodbye, &words[i], 1));
  }
  for (Pause pause; !tickets.empty(); pause()) {
    std::erase_if(tickets, [&](Ticket ticket) {
      return group->ask(ticket) != State::UnderWay;
    });
    if (pause.seconds() > seconds)
      group->endAll(code ? code : exits::RankFailure);
  }
  return code;
}

int Processes::concludeOther(const Error &error, double seconds,
                             const std::function<void(const Error &)> &speak) {
  int code = exits::RankFailure;
  Error reason = error;
  Ticket verdict = group->receive(0, Verdict, &code, sizeof(code));
  // Process 0 may still compute; only after a failure it has to come soon.
  Pause pause, sinceFailure;
  while (group->ask(verdict) == State::UnderWay) {
    pause();
    if (!reason)
      reason = heard();
    if (!reason) {
      sinceFailure = {};
    } else if (sinceFailure.seconds() > seconds) {
      speak(reason);
      group->endAll(reason.exitCode);
    }
  }
  char word = '.';
  Ticket goodbye = group->send(0, Goodbye, &word, 1);
  for (Pause last;
       group->ask(goodbye) == State::UnderWay && last.seconds() < kLastWords;)
    last();
  return code;
}
