// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/software/Engine.h"
#include "runtime/cuda/api/DriverApi.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>

using namespace mtp;
using namespace mtp::software;
namespace status = mtp::cuda::driver;

namespace {
/// Writes the record when the process ends.
struct Writer {
  ~Writer() {
    const char *file = std::getenv("MTP_CUDA_RECORD");
    if (file && *file)
      std::ofstream(file) << nlohmann::json(Engine::get().record).dump();
  }
};
} // namespace

uint64_t mtp::software::threadNumber() {
  static std::atomic<uint64_t> next{1};
  thread_local uint64_t number = next++;
  return number;
}

Engine &Engine::get() {
  static auto *engine = new Engine; // outlives every user
  static Writer writer;
  return *engine;
}

void Engine::reset(const Settings &given) {
  settings = given;
  firstCapture = 0;
  record = {};
  kernels.clear();
  tasks.clear();
  touched.clear();
  random.seed(given.seed);
}

size_t Engine::note(Call call) {
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

void Engine::touch(std::vector<Range> reads, std::vector<Range> writes) {
  touched[threadNumber()] = {std::move(reads), std::move(writes)};
}

void Engine::takeTouched(Work &work) {
  auto it = touched.find(threadNumber());
  if (it == touched.end())
    return;
  work.reads = std::move(it->second.first);
  work.writes = std::move(it->second.second);
  touched.erase(it);
}

bool Engine::give(uint64_t stream, Work work, Action action,
                  std::shared_ptr<Part> part) {
  auto it = streams.find(stream);
  if (it == streams.end())
    return false;
  Front &front = it->second.now();
  work.stream = stream;
  work.call = record.calls.size() - 1;
  work.after.assign(front.works.begin(), front.works.end());
  if (part) {
    Collective collective;
    collective.id = part->gathering->id;
    collective.rank = part->rank;
    collective.ranks = part->gathering->ranks;
    collective.what = part->what;
    collective.call = work.call;
    collective.graph = front.capture ? front.capture->number : 0;
    record.collectives.push_back(std::move(collective));
  }
  if (front.capture)
    work.graph = front.capture->number;
  record.work.push_back(std::move(work));
  uint64_t number = record.work.size();
  front.works = {number};
  if (front.capture) {
    front.capture->nodes.push_back(
        {number, std::move(action), std::move(part)});
    return true;
  }
  Task task;
  task.after = record.work.back().after;
  task.action = std::move(action);
  task.part = std::move(part);
  addTask(number, std::move(task));
  return true;
}

void Engine::addTask(uint64_t number, Task task) {
  if (task.part) {
    auto &given = task.part->gathering->given[task.part->rank];
    task.sequence = given.size();
    given.push_back(number);
  }
  tasks.emplace(number, std::move(task));
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
  // What the end of the origin stream follows.
  std::set<uint64_t> joined;
  std::vector<uint64_t> open(streams[stream].captured.works.begin(),
                             streams[stream].captured.works.end());
  while (!open.empty()) {
    uint64_t work = open.back();
    open.pop_back();
    if (!joined.insert(work).second)
      continue;
    const auto &after = record.work[work - 1].after;
    open.insert(open.end(), after.begin(), after.end());
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
  for (const CapturedGraph::Node &node : graph->nodes) {
    const Work &part = record.work[node.work - 1];
    work.reads.insert(work.reads.end(), part.reads.begin(), part.reads.end());
    work.writes.insert(work.writes.end(), part.writes.begin(),
                       part.writes.end());
  }
  give(stream, std::move(work), nullptr);
  uint64_t whole = record.work.size();
  std::vector<uint64_t> before = record.work.back().after;
  std::map<uint64_t, uint64_t> taskOf;
  for (const CapturedGraph::Node &node : graph->nodes) {
    Task task;
    task.after = before;
    for (uint64_t other : record.work[node.work - 1].after)
      task.after.push_back(taskOf.at(other));
    task.action = node.action;
    task.part = node.part;
    uint64_t number = nextNodeTask++;
    taskOf[node.work] = number;
    tasks.at(whole).after.push_back(number);
    addTask(number, std::move(task));
  }
  return status::Success;
}

std::vector<uint64_t> Engine::partners(const Task &task) const {
  std::vector<uint64_t> all;
  for (const auto &given : task.part->gathering->given) {
    if (given.size() <= task.sequence)
      return {};
    all.push_back(given[task.sequence]);
  }
  return all;
}

void Engine::collect(uint64_t number, std::set<uint64_t> &wanted) const {
  std::vector<uint64_t> open = {number};
  while (!open.empty()) {
    uint64_t next = open.back();
    open.pop_back();
    auto it = tasks.find(next);
    if (it == tasks.end() || !wanted.insert(next).second)
      continue;
    open.insert(open.end(), it->second.after.begin(), it->second.after.end());
    if (it->second.part)
      for (uint64_t partner : partners(it->second))
        open.push_back(partner);
  }
}

bool Engine::isReady(const Task &task) const {
  for (uint64_t before : task.after)
    if (tasks.count(before))
      return false;
  return true;
}

void Engine::erase(uint64_t number) {
  if (number < kFirstNodeTask)
    record.work[number - 1].doneAt = record.calls.size();
  tasks.erase(number);
}

/// Does a ready task; of a collective, those of all ranks at once.
void Engine::execute(uint64_t number) {
  Task &task = tasks.at(number);
  if (!task.part) {
    if (task.action)
      task.action();
    return erase(number);
  }
  std::vector<uint64_t> all = partners(task);
  std::vector<const Part *> parts;
  for (uint64_t partner : all)
    parts.push_back(tasks.at(partner).part.get());
  task.part->run(parts);
  for (uint64_t partner : all)
    erase(partner);
}

bool Engine::finish(const Front &front) {
  while (true) {
    std::set<uint64_t> wanted;
    for (uint64_t work : front.works)
      collect(work, wanted);
    if (wanted.empty())
      return true;
    std::vector<uint64_t> ready;
    for (uint64_t number : wanted) {
      const Task &task = tasks.at(number);
      bool can = isReady(task);
      if (can && task.part) {
        std::vector<uint64_t> all = partners(task);
        can = !all.empty();
        for (uint64_t partner : all)
          can = can && isReady(tasks.at(partner));
      }
      if (can)
        ready.push_back(number);
    }
    if (ready.empty())
      return false;
    // Half of what is ready, so that what becomes ready may overtake the rest.
    std::shuffle(ready.begin(), ready.end(), random);
    ready.resize((ready.size() + 1) / 2);
    for (uint64_t number : ready)
      if (tasks.count(number))
        execute(number);
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
