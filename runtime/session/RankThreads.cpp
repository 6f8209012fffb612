// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/session/RankThreads.h"
#include "runtime/support/System.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

using namespace mtp;

namespace {
constexpr auto kPoll = std::chrono::milliseconds(20);
/// How long ranks have to end after a signal.
constexpr double kSignalGrace = 2;
} // namespace

RankThreads::RankThreads(std::shared_ptr<World> world)
    : shared(std::make_shared<Shared>()) {
  shared->world = world;
  shared->ranks = world->makeRanks();
  try {
    for (int i = 0; i < static_cast<int>(world->here.size()); ++i)
      threads.emplace_back(serve, shared, i);
  } catch (...) {
    endThreads();
    throw;
  }
}

RankThreads::~RankThreads() { endThreads(); }

void RankThreads::endThreads() {
  {
    std::lock_guard lock(shared->mutex);
    shared->end = true;
    ++shared->number;
  }
  shared->wake.notify_all();
  for (std::thread &thread : threads)
    if (left)
      thread.detach();
    else
      thread.join();
}

void RankThreads::serve(std::shared_ptr<Shared> shared, int index) {
  uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(shared->mutex);
      shared->wake.wait(lock, [&] { return shared->number != seen; });
      seen = shared->number;
      if (shared->end)
        break;
    }
    obey(*shared, index);
    std::lock_guard lock(shared->mutex);
    if (--shared->busy == 0)
      shared->finished.notify_all();
  }
  shared->ranks[index]->close();
}

void RankThreads::obey(Shared &shared, int index) {
  Crew &crew = *shared.world->crew;
  int number = shared.world->here[static_cast<size_t>(index)];
  std::string who = "rank " + std::to_string(number);
  try {
    shared.order(*shared.ranks[index], index);
  } catch (const RankStopped &) {
  } catch (const RuntimeError &e) {
    crew.report(e.error);
  } catch (const std::bad_alloc &) {
    crew.report({exits::BadInput,
                 "memory",
                 who + " is out of memory in " + crew.lastAction(number),
                 {}});
  } catch (const std::exception &e) {
    crew.report(
        {exits::Internal,
         "internal",
         who + " failed in " + crew.lastAction(number) + ": " + e.what(),
         {}});
  }
}

bool RankThreads::waitForAll(std::unique_lock<std::mutex> &lock) {
  Crew &crew = *shared->world->crew;
  auto done = [&] { return shared->busy == 0; };
  while (!shared->finished.wait_for(lock, kPoll, done)) {
    if (!crew.stopped() && !stopRequested())
      continue;
    double grace =
        stopRequested() ? kSignalGrace : std::max(1.0, crew.deadline());
    return shared->finished.wait_for(lock, std::chrono::duration<double>(grace),
                                     done);
  }
  return true;
}

bool RankThreads::run(Order order, Error &error) {
  Crew &crew = *shared->world->crew;
  if ((error = crew.firstError()))
    return false;
  std::unique_lock lock(shared->mutex);
  shared->order = std::move(order);
  shared->busy = static_cast<int>(threads.size());
  ++shared->number;
  shared->wake.notify_all();
  if (!waitForAll(lock)) {
    left = true;
    if (int signal = stopRequested())
      crew.report(endedBySignal(signal));
  }
  error = crew.firstError();
  return !error;
}
