// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/cuda/Checker.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

using namespace mtp::software;

namespace {

bool isOneOf(const std::string &name,
             std::initializer_list<const char *> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char *other) { return name == other; });
}

bool allocates(const Call &call) {
  return isOneOf(call.name, {"cuMemAlloc_v2", "cuMemHostAlloc"});
}
bool givesBack(const Call &call) {
  return isOneOf(call.name, {"cuMemFree_v2", "cuMemFreeHost"});
}
bool loads(const Call &call) {
  return isOneOf(call.name,
                 {"lazy load", "cuModuleLoadDataEx", "cuModuleGetFunction",
                  "cublasLtCreate", "cublasLtMatmulAlgoGetHeuristic",
                  "ncclCommInitRankConfig"});
}

std::string place(const Record &record, size_t call) {
  const Call &c = record.calls[call];
  return c.name + (c.detail.empty() ? "" : " '" + c.detail + "'") + " (call " +
         std::to_string(call) + ", thread " + std::to_string(c.thread) + ")";
}

} // namespace

void mtp::software::checkStep(const Record &record,
                              std::vector<std::string> &findings) {
  for (size_t i = 0; i < record.calls.size(); ++i) {
    const Call &call = record.calls[i];
    if (call.name == "cuStreamEndCapture" && call.status != 0)
      findings.push_back("step: the capture doesn't end (status " +
                         std::to_string(call.status) +
                         "): " + place(record, i));
    if (call.capture == 0)
      continue;
    if (allocates(call) || givesBack(call))
      findings.push_back("step: an allocation while it is captured: " +
                         place(record, i));
    if (isOneOf(call.name, {"cuStreamQuery", "cuEventQuery"}))
      findings.push_back("step: a synchronisation while it is captured: " +
                         place(record, i));
    if (loads(call))
      findings.push_back("step: something is loaded while it is captured: " +
                         place(record, i));
  }
  for (const Work &work : record.work)
    if (!work.graph && work.call < record.calls.size() &&
        record.calls[work.call].capture)
      findings.push_back("step: '" + work.what +
                         "' is given to a stream that isn't captured: " +
                         place(record, work.call));
  // A communicator connects at its first collective.
  std::set<std::pair<std::string, int>> connected;
  for (const Collective &collective : record.collectives) {
    std::pair key{collective.id, collective.rank};
    if (collective.graph && !connected.count(key))
      findings.push_back(
          "step: communicator " + collective.id +
          " connects while it is captured: " + place(record, collective.call));
    connected.insert(key);
  }
  auto launches = [](const Call &call) { return call.name == "cuGraphLaunch"; };
  auto first = std::find_if(record.calls.begin(), record.calls.end(), launches);
  auto last =
      std::find_if(record.calls.rbegin(), record.calls.rend(), launches).base();
  for (auto it = first; it < last; ++it)
    if (it->capture == 0 && (allocates(*it) || loads(*it)))
      findings.push_back(
          "step: an allocation between captured steps: " +
          place(record, static_cast<size_t>(it - record.calls.begin())));
}

namespace {

/// Allocations over time.
class Memory {
public:
  void apply(const Call &call) {
    if (call.status != 0)
      return;
    if (allocates(call))
      alive[call.handle] = call.handle + call.bytes;
    else if (givesBack(call)) {
      auto it = alive.find(call.handle);
      if (it == alive.end())
        return;
      dead[it->first] = it->second;
      alive.erase(it);
    }
  }
  /// Addresses are never used twice.
  bool isDead(const Range &range) const {
    auto it = dead.upper_bound(range.begin);
    return it != dead.begin() && range.begin < std::prev(it)->second;
  }

private:
  std::map<uint64_t, uint64_t> alive, dead;
};

} // namespace

void mtp::software::checkMemory(const Record &record,
                                std::vector<std::string> &findings) {
  Memory memory;
  size_t next = 0;
  for (size_t i = 0; i < record.work.size(); ++i) {
    const Work &work = record.work[i];
    while (next <= work.call && next < record.calls.size())
      memory.apply(record.calls[next++]);
    for (const std::vector<Range> *ranges : {&work.reads, &work.writes}) {
      bool dead = std::any_of(ranges->begin(), ranges->end(),
                              [&](const Range &r) { return memory.isDead(r); });
      if (!dead)
        continue;
      findings.push_back("memory: '" + work.what + "' (work " +
                         std::to_string(i + 1) +
                         ") touches bytes that were given back");
      break;
    }
  }
  // Work that isn't over when its memory is given back.
  for (size_t i = 0; i < record.calls.size(); ++i) {
    if (!givesBack(record.calls[i]) || record.calls[i].status != 0)
      continue;
    Memory after;
    for (size_t k = 0; k <= i; ++k)
      if (record.calls[k].handle == record.calls[i].handle)
        after.apply(record.calls[k]);
    for (const Work &work : record.work) {
      if (work.graph || work.call >= i || (work.doneAt && work.doneAt <= i))
        continue;
      for (const std::vector<Range> *ranges : {&work.reads, &work.writes})
        for (const Range &range : *ranges)
          if (after.isDead(range)) {
            findings.push_back("memory: " + place(record, i) +
                               " gives back what '" + work.what +
                               "' still touches");
            goto nextCall;
          }
    }
  nextCall:;
  }
}

void mtp::software::checkCollectives(const Record &record,
                                     std::vector<std::string> &findings) {
  // Each rank of a communicator has a thread of its own.
  struct Given {
    std::string id, what;
    size_t launches;
    uint64_t call;
  };
  std::map<uint64_t, std::vector<Given>> byThread;
  std::map<uint64_t, std::set<std::string>> ids;
  std::map<uint64_t, size_t> launched;
  for (const Work &work : record.work)
    if (work.launched)
      ++launched[work.launched];
  for (const Collective &c : record.collectives) {
    uint64_t thread = record.calls[c.call].thread;
    auto it = launched.find(c.graph);
    size_t launches = c.graph == 0 ? 1 : it == launched.end() ? 0 : it->second;
    byThread[thread].push_back({c.id, c.what, launches, c.call});
    ids[thread].insert(c.id);
  }
  for (auto &[a, first] : byThread)
    for (auto &[b, second] : byThread) {
      if (b <= a)
        continue;
      auto shared = [&](const std::vector<Given> &all) {
        std::vector<Given> some;
        for (const Given &given : all)
          if (ids[a].count(given.id) && ids[b].count(given.id))
            some.push_back(given);
        return some;
      };
      std::vector<Given> x = shared(first), y = shared(second);
      for (size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
        std::string left = i < x.size() ? x[i].what + " on " + x[i].id : "none";
        std::string right =
            i < y.size() ? y[i].what + " on " + y[i].id : "none";
        bool sameCount =
            i < x.size() && i < y.size() && x[i].launches == y[i].launches;
        if (left == right && sameCount)
          continue;
        findings.push_back(
            "collectives: number " + std::to_string(i) + " is " + left +
            " in thread " + std::to_string(a) + " and " + right +
            " in thread " + std::to_string(b) +
            (left == right ? ", launched another number of times" : ""));
        break;
      }
    }
}

namespace {

class HandleChecker {
public:
  HandleChecker(const Record &record, std::vector<std::string> &findings)
      : record(record), findings(findings) {}

  void run(bool ended) {
    for (size_t i = 0; i < record.calls.size(); ++i)
      apply(i);
    if (ended)
      for (auto &[key, life] : lives)
        if (!life.end)
          findings.push_back("handles: never given back: " +
                             place(record, life.begin));
    checkGraphs();
    checkStreams();
  }

private:
  struct Life {
    size_t begin;
    std::optional<size_t> end;
    uint64_t context;
  };
  using Key = std::pair<std::string, uint64_t>;

  static std::string made(const std::string &name) {
    static const std::map<std::string, std::string> kinds = {
        {"cuStreamCreate", "stream"},
        {"cuEventCreate", "event"},
        {"cuMemAlloc_v2", "memory"},
        {"cuMemHostAlloc", "pinned"},
        {"cuModuleLoadDataEx", "module"},
        {"cuStreamEndCapture", "graph"},
        {"cuGraphInstantiateWithFlags", "executable"},
        {"cublasLtCreate", "blas"},
        {"ncclCommInitRankConfig", "communicator"},
        {"cuDevicePrimaryCtxRetain", "context"}};
    auto it = kinds.find(name);
    return it == kinds.end() ? "" : it->second;
  }
  static std::string ended(const std::string &name) {
    static const std::map<std::string, std::string> kinds = {
        {"cuStreamDestroy_v2", "stream"},
        {"cuEventDestroy_v2", "event"},
        {"cuMemFree_v2", "memory"},
        {"cuMemFreeHost", "pinned"},
        {"cuModuleUnload", "module"},
        {"cuGraphDestroy", "graph"},
        {"cuGraphExecDestroy", "executable"},
        {"cublasLtDestroy", "blas"},
        {"ncclCommDestroy", "communicator"},
        {"ncclCommAbort", "communicator"}};
    auto it = kinds.find(name);
    return it == kinds.end() ? "" : it->second;
  }

  void apply(size_t i) {
    const Call &call = record.calls[i];
    if (call.name == "cuDevicePrimaryCtxRelease_v2")
      return release(i);
    if (std::string kind = made(call.name); !kind.empty() && call.status != 1) {
      if (call.handle)
        lives[{kind, call.handle}] = {i, {}, call.context};
      return;
    }
    std::string kind = ended(call.name);
    if (kind.empty())
      return;
    if (call.status != 0) {
      findings.push_back("handles: not given back: " + place(record, i));
      return;
    }
    auto it = lives.find({kind, call.handle});
    if (it == lives.end() || it->second.end)
      findings.push_back("handles: given back twice or never made: " +
                         place(record, i));
    else
      it->second.end = i;
  }

  /// The context of that device ends: nothing made in it may be alive.
  void release(size_t i) {
    for (auto &[key, life] : lives) {
      if (key.first != "context" || life.end ||
          record.calls[life.begin].detail != record.calls[i].detail)
        continue;
      life.end = i;
      for (auto &[other, inside] : lives)
        if (other.first != "context" && inside.context == key.second &&
            !inside.end)
          findings.push_back("handles: its device is given back first: " +
                             place(record, inside.begin));
      return;
    }
    findings.push_back("handles: given back twice or never made: " +
                       place(record, i));
  }

  std::optional<size_t> endOf(const std::string &kind, uint64_t handle) const {
    auto it = lives.find({kind, handle});
    return it == lives.end() ? std::nullopt : it->second.end;
  }

  /// A communicator ends after the graphs that have its collectives.
  void checkGraphs() {
    std::map<uint64_t, std::set<uint64_t>> executables; // by graph
    for (const Work &work : record.work)
      if (work.launched)
        executables[work.launched].insert(record.calls[work.call].handle);
    std::set<std::pair<uint64_t, uint64_t>> seen;
    for (const Collective &c : record.collectives) {
      uint64_t comm = record.calls[c.call].handle;
      if (!c.graph || !seen.insert({c.graph, comm}).second)
        continue;
      auto commEnd = endOf("communicator", comm);
      for (uint64_t executable : executables[c.graph]) {
        auto graphEnd = endOf("executable", executable);
        if (commEnd && (!graphEnd || *graphEnd > *commEnd))
          findings.push_back(
              "handles: a communicator ends before the graph that uses it: " +
              place(record, *commEnd));
      }
    }
  }

  /// A stream ends after the communicators whose collectives it ran.
  void checkStreams() {
    std::set<std::pair<uint64_t, uint64_t>> seen;
    for (const Collective &c : record.collectives) {
      const Call &call = record.calls[c.call];
      if (!seen.insert({call.handle, call.stream}).second)
        continue;
      auto commEnd = endOf("communicator", call.handle);
      auto streamEnd = endOf("stream", call.stream);
      if (streamEnd && (!commEnd || *commEnd > *streamEnd))
        findings.push_back(
            "handles: a stream ends before a communicator that uses it: " +
            place(record, *streamEnd));
    }
  }

  const Record &record;
  std::vector<std::string> &findings;
  std::map<Key, Life> lives;
};

} // namespace

void mtp::software::checkHandles(const Record &record, bool ended,
                                 std::vector<std::string> &findings) {
  HandleChecker(record, findings).run(ended);
}

std::vector<std::string> mtp::software::checkRecord(const Record &record,
                                                    bool ended) {
  std::vector<std::string> findings;
  checkStep(record, findings);
  checkOrder(record, findings);
  checkMemory(record, findings);
  checkCollectives(record, findings);
  checkHandles(record, ended, findings);
  return findings;
}
