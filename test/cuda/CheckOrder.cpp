// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CheckOrder.cpp - every read after its write ------------------------===//
#include "test/cuda/Checker.h"

#include <algorithm>
#include <map>
#include <set>

using namespace mtp::software;

namespace {

struct Hull {
  Range reads, writes;
};

Range hullOf(const std::vector<Range> &ranges) {
  Range hull{UINT64_MAX, 0};
  for (const Range &range : ranges)
    hull = {std::min(hull.begin, range.begin), std::max(hull.end, range.end)};
  return hull;
}

bool overlap(const Range &a, const Range &b) {
  return a.begin < b.end && b.begin < a.end;
}

bool anyOverlap(const std::vector<Range> &a, const std::vector<Range> &b) {
  for (const Range &x : a)
    for (const Range &y : b)
      if (overlap(x, y))
        return true;
  return false;
}

class OrderChecker {
public:
  OrderChecker(const Record &record, std::vector<std::string> &findings)
      : record(record), findings(findings) {
    for (const Work &work : record.work)
      hulls.push_back({hullOf(work.reads), hullOf(work.writes)});
  }

  void checkGraphs() {
    std::map<uint64_t, std::vector<size_t>> graphs;
    for (size_t i = 0; i < record.work.size(); ++i)
      if (record.work[i].graph)
        graphs[record.work[i].graph].push_back(i);
    for (auto &[graph, nodes] : graphs)
      checkGraph(nodes);
  }

  /// Outside of graphs only work that isn't over yet can be in the way.
  void checkEager() {
    std::vector<size_t> pending;
    for (size_t i = 0; i < record.work.size(); ++i) {
      const Work &work = record.work[i];
      if (work.graph)
        continue;
      std::erase_if(pending, [&](size_t other) {
        uint64_t done = record.work[other].doneAt;
        return done != 0 && done <= work.call;
      });
      std::set<size_t> before = ancestors(i, pending);
      for (size_t other : pending)
        if (!before.count(other) && conflict(other, i))
          report(other, i);
      pending.push_back(i);
    }
  }

private:
  bool conflict(size_t a, size_t b) const {
    const Work &x = record.work[a], &y = record.work[b];
    return (overlap(hulls[a].writes, hulls[b].writes) &&
            anyOverlap(x.writes, y.writes)) ||
           (overlap(hulls[a].writes, hulls[b].reads) &&
            anyOverlap(x.writes, y.reads)) ||
           (overlap(hulls[a].reads, hulls[b].writes) &&
            anyOverlap(x.reads, y.writes));
  }

  void checkGraph(const std::vector<size_t> &nodes) {
    std::map<size_t, size_t> position;
    std::vector<std::vector<bool>> before(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      position[nodes[i]] = i;
      before[i].assign(nodes.size(), false);
      for (uint64_t work : record.work[nodes[i]].after) {
        size_t other = position.at(work - 1);
        before[i][other] = true;
        for (size_t k = 0; k < other; ++k)
          if (before[other][k])
            before[i][k] = true;
      }
      for (size_t other = 0; other < i; ++other)
        if (!before[i][other] && conflict(nodes[other], nodes[i]))
          report(nodes[other], nodes[i]);
    }
  }

  std::set<size_t> ancestors(size_t of,
                             const std::vector<size_t> &among) const {
    std::set<size_t> wanted(among.begin(), among.end()), found;
    std::vector<size_t> open = {of};
    while (!open.empty()) {
      size_t next = open.back();
      open.pop_back();
      for (uint64_t work : record.work[next].after)
        if (wanted.count(work - 1) && found.insert(work - 1).second)
          open.push_back(work - 1);
    }
    return found;
  }

  void report(size_t a, size_t b) {
    auto text = [&](size_t i) {
      const Work &work = record.work[i];
      return "'" + work.what + "' (work " + std::to_string(i + 1) +
             ", stream " + std::to_string(work.stream) +
             (work.graph ? ", graph " + std::to_string(work.graph) : "") + ")";
    };
    findings.push_back("order: " + text(a) + " and " + text(b) +
                       " touch the same bytes, and nothing says which of them "
                       "is first");
  }

  const Record &record;
  std::vector<std::string> &findings;
  std::vector<Hull> hulls;
};

} // namespace

void mtp::software::checkOrder(const Record &record,
                               std::vector<std::string> &findings) {
  OrderChecker checker(record, findings);
  checker.checkGraphs();
  checker.checkEager();
}
