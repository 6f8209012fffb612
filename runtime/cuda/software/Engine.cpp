// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/software/Engine.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

using namespace mtp;
using namespace mtp::software;
namespace status = mtp::cuda::driver;

namespace {

/// How long one question for the end of a stream works at most: whoever asks
/// also has to look after deadlines and signals.
constexpr auto kSlice = std::chrono::milliseconds(10);
/// How long it waits for work of other threads.
constexpr auto kPause = std::chrono::milliseconds(1);

const char *recordFile() {
  const char *file = std::getenv("MTP_CUDA_RECORD");
  return file && *file ? file : nullptr;
}

/// Writes the record when the process ends.
struct Writer {
  ~Writer() {
    if (const char *file = recordFile())
      std::ofstream(file) << nlohmann::json(Engine::get().record).dump();
  }
};

std::string &fault() {
  thread_local std::string text;
  return text;
}

} // namespace

uint64_t mtp::software::threadNumber() {
  static std::atomic<uint64_t> next{1};
  thread_local uint64_t number = next++;
  return number;
}

std::vector<cuda::Touched> &mtp::software::touchedByThread() {
  thread_local std::vector<cuda::Touched> touched;
  return touched;
}

void mtp::software::takeTouched(Work &work) {
  for (const cuda::Touched &range : touchedByThread())
    if (range.bytes > 0)
      (range.written ? work.writes : work.reads)
          .push_back({range.begin, range.begin + range.bytes});
  touchedByThread().clear();
}

const std::string &mtp::software::faultOfThread() { return fault(); }

Engine::Engine() : records(recordFile() != nullptr) {}

Engine &Engine::get() {
  static auto *engine = new Engine; // outlives every user
  static Writer writer;
  return *engine;
}

void Engine::reset(const Settings &given) {
  settings = given;
  firstCapture = 0;
  record = {};
  records = true;
  works = 0;
  kernels.clear();
  tasks.clear();
  random.seed(given.seed);
}

size_t Engine::note(Call call) {
  if (!records)
    return 0;
  call.thread = threadNumber();
  if (auto capture = captureOfThread())
    call.capture = capture->number;
  record.calls.push_back(std::move(call));
  return record.calls.size() - 1;
}

std::shared_ptr<CapturedGraph> Engine::captureOfThread() {
  for (auto &[number, stream] : streams)
    if (stream.captured.capture &&
        stream.captured.capture->thread == threadNumber())
      return stream.captured.capture;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// What is given
//===----------------------------------------------------------------------===//

bool Engine::give(uint64_t stream, Work work, Action action,
                  std::shared_ptr<Part> part) {
  auto it = streams.find(stream);
  if (it == streams.end())
    return false;
  Front &front = it->second.now();
  std::vector<uint64_t> after(front.works.begin(), front.works.end());
  uint64_t number = ++works;
  front.works = {number};
  ++front.given;
  if (records) {
    uint64_t graph = front.capture ? front.capture->number : 0;
    work.stream = stream;
    work.call = record.calls.size() - 1;
    work.after = after;
    work.graph = graph;
    if (part)
      record.collectives.push_back({part->gathering->id, part->rank,
                                    part->gathering->ranks, graph, part->what,
                                    work.call});
    record.work.push_back(std::move(work));
  }
  std::shared_ptr<const Action> shared;
  if (action)
    shared = std::make_shared<const Action>(std::move(action));
  if (front.capture) {
    front.capture->nodes.push_back(
        {number, std::move(after), std::move(shared), std::move(part)});
    return true;
  }
  Task task;
  task.after = std::move(after);
  task.action = std::move(shared);
  task.part = std::move(part);
  addTask(number, std::move(task));
  changed.notify_all();
  return true;
}

void Engine::addTask(uint64_t number, Task task) {
  if (task.part) {
    Gathering &gathering = *task.part->gathering;
    task.sequence = gathering.given[task.part->rank]++;
    auto &round = gathering.rounds[task.sequence];
    round.resize(static_cast<size_t>(gathering.ranks));
    round[task.part->rank] = number;
    if (gathering.aborted)
      task.failure = std::make_shared<Failure>(
          Failure{status::Unknown, "the communicator was aborted"});
  }
  for (uint64_t before : task.after)
    if (auto it = tasks.find(before); it != tasks.end()) {
      it->second.followers.push_back(number);
      ++task.open;
    }
  tasks.emplace(number, std::move(task));
}

void Engine::abort(Gathering &gathering) {
  gathering.aborted = true;
  auto failure = std::make_shared<Failure>(
      Failure{status::Unknown, "the communicator was aborted"});
  for (auto &[sequence, round] : gathering.rounds)
    for (uint64_t number : round)
      if (auto it = tasks.find(number); it != tasks.end())
        it->second.failure = failure;
  changed.notify_all();
}

int Engine::recordEvent(uint64_t event, uint64_t stream) {
  if (!streams.count(stream) || !events.count(event))
    return status::InvalidHandle;
  events[event] = streams[stream].now();
  return status::Success;
}

int Engine::waitEvent(uint64_t stream, uint64_t event) {
  if (!streams.count(stream) || !events.count(event))
    return status::InvalidHandle;
  StreamState &state = streams[stream];
  const Front &from = events[event];
  if (!from.capture) {
    if (state.captured.capture && !from.works.empty())
      return status::CaptureIsolation;
    state.eager.works.insert(from.works.begin(), from.works.end());
    return status::Success;
  }
  // An event of a capture that is over can't order anything.
  bool open = streams[from.capture->origin].captured.capture == from.capture;
  if (!open)
    return status::InvalidValue;
  if (state.captured.capture && state.captured.capture != from.capture)
    return status::CaptureMerge;
  state.captured.capture = from.capture;
  state.captured.works.insert(from.works.begin(), from.works.end());
  return status::Success;
}

int Engine::beginCapture(uint64_t stream) {
  if (!streams.count(stream) || streams[stream].captured.capture)
    return status::InvalidValue;
  auto graph = std::make_shared<CapturedGraph>();
  graph->number = newHandle();
  if (!firstCapture)
    firstCapture = graph->number;
  graph->origin = stream;
  graph->thread = threadNumber();
  streams[stream].captured = {{}, graph};
  return status::Success;
}

int Engine::endCapture(uint64_t stream, uint64_t &graph) {
  if (!streams.count(stream) || !streams[stream].captured.capture)
    return status::InvalidValue;
  auto captured = streams[stream].captured.capture;
  if (captured->origin != stream || captured->thread != threadNumber())
    return status::CaptureUnmatched;
  // What the end of the origin stream follows; nodes come after those that
  // they follow.
  std::set<uint64_t> joined = streams[stream].captured.works;
  for (size_t i = captured->nodes.size(); i-- > 0;) {
    const CapturedGraph::Node &node = captured->nodes[i];
    if (joined.count(node.work))
      joined.insert(node.after.begin(), node.after.end());
  }
  int result = status::Success;
  for (auto &[number, state] : streams) {
    if (state.captured.capture != captured)
      continue;
    for (uint64_t work : state.captured.works)
      if (!joined.count(work))
        result = status::CaptureUnjoined;
    state.captured = {};
  }
  if (result != status::Success)
    return result;
  graph = captured->number;
  graphs[graph] = captured;
  return result;
}

int Engine::launch(uint64_t executable, uint64_t stream) {
  auto it = executables.find(executable);
  if (it == executables.end() || !streams.count(stream))
    return status::InvalidHandle;
  if (streams[stream].captured.capture)
    return status::CaptureUnsupported;
  auto graph = it->second;
  Work work;
  work.what = "graph";
  work.launched = graph->number;
  if (records)
    for (const CapturedGraph::Node &node : graph->nodes) {
      const Work &part = record.work[node.work - 1];
      work.reads.insert(work.reads.end(), part.reads.begin(), part.reads.end());
      work.writes.insert(work.writes.end(), part.writes.begin(),
                         part.writes.end());
    }
  // The nodes come between what was before and the work "graph".
  const std::set<uint64_t> &front = streams[stream].eager.works;
  std::vector<uint64_t> before(front.begin(), front.end());
  give(stream, std::move(work), nullptr);
  uint64_t whole = works;
  std::unordered_map<uint64_t, uint64_t> taskOf;
  for (const CapturedGraph::Node &node : graph->nodes) {
    Task task;
    task.after = before;
    for (uint64_t other : node.after)
      task.after.push_back(taskOf.at(other));
    task.action = node.action;
    task.part = node.part;
    uint64_t number = nextNodeTask++;
    taskOf[node.work] = number;
    addTask(number, std::move(task));
    tasks.at(number).followers.push_back(whole);
    tasks.at(whole).after.push_back(number);
    ++tasks.at(whole).open;
  }
  changed.notify_all();
  return status::Success;
}

void Engine::destroyStream(uint64_t stream) {
  streams.erase(stream);
  // What failed, and what was after it, stays to the end.
  if (streams.empty())
    tasks.clear();
}

//===----------------------------------------------------------------------===//
// What is done
//===----------------------------------------------------------------------===//

std::vector<uint64_t> Engine::partners(const Task &task) const {
  const auto &rounds = task.part->gathering->rounds;
  const std::vector<uint64_t> &round = rounds.at(task.sequence);
  bool all = std::find(round.begin(), round.end(), 0u) == round.end();
  return all ? round : std::vector<uint64_t>();
}

/// The tasks that aren't done and that `works` depend on.
std::vector<uint64_t> Engine::collect(const std::set<uint64_t> &works) {
  std::vector<uint64_t> wanted;
  ++collections;
  auto want = [&](uint64_t number) {
    auto it = tasks.find(number);
    if (it == tasks.end() || it->second.seen == collections)
      return;
    it->second.seen = collections;
    wanted.push_back(number);
  };
  for (uint64_t work : works)
    want(work);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Task &task = tasks.at(wanted[i]);
    for (uint64_t before : task.after)
      want(before);
    if (task.part)
      for (uint64_t partner : partners(task))
        want(partner);
  }
  return wanted;
}

bool Engine::isReady(const Task &task) const {
  auto waits = [](const Task &one) {
    return one.open == 0 && !one.runs && !one.failure;
  };
  if (!task.part)
    return waits(task);
  std::vector<uint64_t> all = partners(task);
  return !all.empty() && std::all_of(all.begin(), all.end(), [&](uint64_t one) {
    auto it = tasks.find(one);
    return it != tasks.end() && waits(it->second);
  });
}

std::vector<uint64_t> Engine::execute(Lock &lock, uint64_t number) {
  std::vector<uint64_t> group = {number};
  std::shared_ptr<const Action> action = tasks.at(number).action;
  std::vector<std::shared_ptr<Part>> parts;
  size_t sequence = tasks.at(number).sequence;
  if (tasks.at(number).part)
    group = partners(tasks.at(number));
  std::vector<const Part *> list;
  for (uint64_t one : group) {
    tasks.at(one).runs = true;
    if (auto &part = tasks.at(one).part) {
      parts.push_back(part);
      list.push_back(part.get());
    }
  }
  std::shared_ptr<Failure> failure;
  lock.unlock();
  try {
    if (!parts.empty())
      parts[0]->run(list);
    else if (action)
      (*action)();
  } catch (const RuntimeError &e) {
    failure = std::make_shared<Failure>(
        Failure{status::LaunchFailed, e.error.message});
  } catch (const std::bad_alloc &) {
    failure = std::make_shared<Failure>(Failure{status::OutOfMemory, ""});
  }
  lock.lock();
  std::vector<uint64_t> next;
  for (uint64_t one : group) {
    auto it = tasks.find(one);
    if (it == tasks.end())
      continue;
    it->second.runs = false;
    if (failure) {
      it->second.failure = failure;
      continue;
    }
    if (records && one < kFirstNodeTask)
      record.work[one - 1].doneAt = record.calls.size();
    for (uint64_t follower : it->second.followers)
      if (auto after = tasks.find(follower); after != tasks.end())
        if (--after->second.open == 0)
          next.push_back(follower);
    tasks.erase(it);
  }
  if (!parts.empty() && !failure)
    parts[0]->gathering->rounds.erase(sequence);
  changed.notify_all();
  return next;
}

int Engine::finish(Lock &lock, const Front &front) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + kSlice;
  const std::set<uint64_t> ends = front.works;
  while (true) {
    std::vector<uint64_t> wanted = collect(ends), ready;
    if (wanted.empty())
      return status::Success;
    bool runs = false;
    for (uint64_t number : wanted) {
      const Task &task = tasks.at(number);
      if (task.failure) {
        fault() = task.failure->text;
        return task.failure->status;
      }
      runs |= task.runs;
      if (isReady(task))
        ready.push_back(number);
    }
    if (ready.empty()) {
      // Another thread may do what this one waits for, or give it.
      auto until = runs ? end : std::min(end, Clock::now() + kPause);
      if (changed.wait_until(lock, until) == std::cv_status::timeout)
        return status::NotReady;
      continue;
    }
    std::sort(wanted.begin(), wanted.end());
    while (!ready.empty()) {
      if (Clock::now() > end)
        return status::NotReady;
      // Any of what is ready, so that what becomes ready may overtake the rest.
      std::swap(ready[random() % ready.size()], ready.back());
      uint64_t number = ready.back();
      ready.pop_back();
      auto it = tasks.find(number);
      if (it == tasks.end() || !isReady(it->second))
        continue;
      for (uint64_t next : execute(lock, number))
        if (std::binary_search(wanted.begin(), wanted.end(), next))
          ready.push_back(next);
    }
  }
}

extern "C" {
void mtpRecorderReset(const Settings *settings) {
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  forgetHeld();
  engine.reset(*settings);
}
void mtpRecorderKernel(const char *name, KernelBody body) {
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  engine.kernels[name] = body;
}
uint64_t mtpRecorderAlive() {
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  return engine.streams.size() + engine.events.size() + engine.graphs.size() +
         engine.executables.size() + engine.allocations.size() +
         engine.pinned.size() + engine.otherHandles;
}
const Record *mtpRecorderTake() {
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  return new Record(engine.record);
}
void mtpRecorderFree(const Record *record) { delete record; }
}
