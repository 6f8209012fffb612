// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/StepRunner.h"
#include "runtime/cuda/GpuRank.h"

#include <chrono>
#include <sched.h>
#include <thread>

using namespace mtp;
using namespace mtp::cuda;

StepRunner::StepRunner(std::vector<GpuRank *> given)
    : ranks(std::move(given)), driver(ranks[0]->device().api()),
      origin(ranks[0]->compute()), forked(ranks[0]->device().makeEvent()),
      entries(ranks[0]->program().entries.size()) {
  for (size_t i = 0; i < 2 * ranks.size(); ++i)
    joined.push_back(ranks[0]->device().makeEvent());
  if (ranks.size() > 1)
    for (GpuRank *rank : ranks)
      rank->communicator().setTogether();
}

void StepRunner::run(int entry) {
  Captured &captured = entries[static_cast<size_t>(entry)];
  if (captured.warm && !captured.exec && ranks[0]->captures())
    capture(entry);
  for (GpuRank *rank : ranks)
    rank->beginStep();
  if (captured.exec) {
    static const std::string what = "a captured step";
    for (GpuRank *rank : ranks)
      rank->crew().note(rank->number(), &what);
    // The step records of the other ranks are written by their own streams.
    join();
    check(driver, driver.graphLaunch(captured.exec.get(), origin),
          "launching a captured step");
    fork();
  } else {
    fork();
    enqueue(entry);
    join();
    captured.warm = true;
  }
  for (GpuRank *rank : ranks)
    rank->endStep();
  for (GpuRank *rank : ranks)
    rank->countStep(entry);
  await(entry);
}

void StepRunner::capture(int entry) {
  Captured &captured = entries[static_cast<size_t>(entry)];
  check(driver, driver.beginCapture(origin, driver::CaptureThreadLocal),
        "beginning to capture a step");
  GraphHandle *handle = nullptr;
  try {
    fork();
    enqueue(entry);
    join();
  } catch (...) {
    // The stream must not stay in capture.
    if (driver.endCapture(origin, &handle) == driver::Success && handle)
      driver.graphDestroy(handle);
    throw;
  }
  check(driver, driver.endCapture(origin, &handle), "capturing a step");
  Graph graph(driver, handle);
  GraphExecHandle *exec = nullptr;
  check(driver, driver.graphInstantiate(&exec, graph.get(), 0),
        "making a captured step executable");
  captured.exec = GraphExec(driver, exec);
}

/// The streams of all ranks begin after what the first rank's was given.
void StepRunner::fork() {
  if (ranks.size() == 1)
    return;
  check(driver, driver.eventRecord(forked.get(), origin), "forking streams");
  for (size_t i = 1; i < ranks.size(); ++i)
    check(driver, driver.streamWaitEvent(ranks[i]->compute(), forked.get(), 0),
          "forking streams");
}

/// The first rank's stream goes on after all others.
void StepRunner::join() {
  for (size_t i = 0; i < ranks.size(); ++i) {
    StreamHandle *streams[] = {ranks[i]->compute(),
                               ranks[i]->communicator().commStream()};
    bool communicates = !ranks[i]->communicator().sitesGiven().empty();
    for (int which = 0; which < 2; ++which) {
      if (streams[which] == origin || (which == 1 && !communicates))
        continue;
      EventHandle *event = joined[2 * i + static_cast<size_t>(which)].get();
      check(driver, driver.eventRecord(event, streams[which]),
            "joining streams");
      check(driver, driver.streamWaitEvent(origin, event, 0),
            "joining streams");
    }
  }
}

void StepRunner::enqueue(int entry) {
  const auto &program =
      ranks[0]->program().entries[static_cast<size_t>(entry)].program;
  partners = loopPartners(program);
  for (GpuRank *rank : ranks)
    rank->beginInstructions();
  std::vector<int64_t> left; // trips of open loops
  for (size_t i = 0; i < program.size(); ++i) {
    ranks[0]->crew().checkStopped();
    switch (program[i].kind) {
    case Instruction::Kind::LoopBegin:
      if (program[i].count == 0)
        i = partners[i];
      else
        left.push_back(program[i].count);
      break;
    case Instruction::Kind::LoopEnd:
      if (--left.back() > 0)
        i = partners[i];
      else
        left.pop_back();
      break;
    default:
      enqueueInstruction(entry, i);
      i += ranks[0]->replaced(entry, i);
    }
  }
  std::vector<std::vector<int64_t>> &sites =
      entries[static_cast<size_t>(entry)].sites;
  sites.clear();
  for (GpuRank *rank : ranks) {
    rank->endInstructions(entry);
    sites.push_back(rank->communicator().sitesGiven());
  }
}

void StepRunner::enqueueInstruction(int entry, size_t position) {
  const Instruction &instruction =
      ranks[0]->program().entries[static_cast<size_t>(entry)].program[position];
  for (GpuRank *rank : ranks)
    rank->enqueue(entry, position);
  if (ranks.size() == 1 || instruction.kind != Instruction::Kind::Start)
    return;
  for (int phase = 0; phase < ranks[0]->communicator().phases(); ++phase)
    for (GpuRank *rank : ranks)
      rank->communicator().advance(instruction.index, phase);
}

/// Waits for the streams of all ranks. What a device does can't be timed as
/// such: the deadline is that of its collectives, so it begins anew with each
/// that finishes, and counts only where there are some.
void StepRunner::await(int entry) {
  using Clock = std::chrono::steady_clock;
  auto last = Clock::now();
  uint64_t seen = 0;
  bool communicates = false;
  for (const auto &sites : entries[static_cast<size_t>(entry)].sites)
    communicates |= !sites.empty();
  Crew &crew = ranks[0]->crew();
  for (int polls = 0;; ++polls) {
    bool over = true;
    for (GpuRank *rank : ranks) {
      DriverStatus status = driver.streamQuery(rank->compute());
      if (status != driver::Success && status != driver::NotReady)
        check(driver, status, "a step");
      over &= status == driver::Success;
    }
    if (over)
      return;
    crew.checkStopped();
    uint64_t finished = 0;
    for (GpuRank *rank : ranks) {
      rank->communicator().checkHealth();
      finished += rank->progress();
    }
    if (finished != seen)
      last = Clock::now();
    seen = finished;
    std::chrono::duration<double> idle = Clock::now() - last;
    if (communicates && idle.count() > crew.deadline())
      reportStall(entry);
    if (polls < 2000)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void StepRunner::reportStall(int entry) {
  GpuRank &rank = *ranks[0];
  Crew &crew = rank.crew();
  const std::vector<int64_t> &sites =
      entries[static_cast<size_t>(entry)].sites[0];
  size_t finished = rank.progress();
  std::string next = finished < sites.size()
                         ? rank.communicator().siteText(sites[finished])
                         : "what follows the last one";
  std::string others;
  for (int i = 0; i < crew.ranks(); ++i)
    if (i != rank.number())
      others += (others.empty() ? "" : ", ") + std::string("rank ") +
                std::to_string(i) + " is in " + crew.lastAction(i);
  fail(exits::RankFailure, "communication",
       "rank " + std::to_string(rank.number()) + " finished " +
           std::to_string(finished) + " of the " +
           std::to_string(sites.size()) +
           " collectives of its step, and then " + next +
           " made no progress for " + std::to_string(crew.deadline()) + " s" +
           (others.empty() ? "" : "; " + others));
}
