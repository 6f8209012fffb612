// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SolverFixture.h"

namespace mtp::plan {

static Time randomCost(std::mt19937_64 &random, int illegalPercent) {
  return int(random() % 100) < illegalPercent ? kIllegal : Time(random() % 50);
}

Problem randomProblem(std::mt19937_64 &random, int illegalPercent) {
  Problem problem;
  int count = 1 + int(random() % 7);
  for (int v = 0; v < count; ++v) {
    Variable variable;
    variable.hash = random();
    variable.name = "v" + std::to_string(v);
    for (int s = 0, n = 1 + int(random() % 4); s < n; ++s)
      variable.unary.push_back(randomCost(random, illegalPercent));
    problem.variables.push_back(variable);
  }
  for (int a = 0; a < count; ++a)
    for (int b = a + 1; b < count; ++b) {
      if (random() % 2)
        continue;
      bool flip = random() % 2;
      Pair pair{flip ? b : a, flip ? a : b, {}};
      pair.table.resize(problem.variables[a].unary.size() *
                        problem.variables[b].unary.size());
      for (Time &cost : pair.table)
        cost = randomCost(random, illegalPercent);
      problem.pairs.push_back(pair);
    }
  return problem;
}

MemoryModel randomMemory(std::mt19937_64 &random, const Problem &problem) {
  MemoryModel memory;
  auto footprint = [&](size_t entries) {
    Footprint result;
    if (random() % 4)
      for (size_t i = 0; i < entries; ++i)
        result.bytes.push_back(int64_t(random() % 30));
    if (random() % 3 == 0)
      for (size_t i = 0; i < entries; ++i)
        result.transient.push_back(int64_t(random() % 60));
    return result;
  };
  for (const Variable &variable : problem.variables)
    memory.variables.push_back(footprint(variable.unary.size()));
  if (random() % 2)
    for (const Pair &pair : problem.pairs)
      memory.pairs.push_back(footprint(pair.table.size()));
  return memory;
}

void forEachAssignment(
    const Problem &problem,
    const std::function<void(const std::vector<int> &)> &visit) {
  std::vector<int> assignment(problem.variables.size(), 0);
  while (true) {
    visit(assignment);
    size_t v = 0;
    while (v < assignment.size() &&
           ++assignment[v] == int(problem.variables[v].unary.size()))
      assignment[v++] = 0;
    if (v == assignment.size())
      return;
  }
}

Problem layers(int count, int strategies, bool identical) {
  std::mt19937_64 random(11);
  Problem problem;
  auto variable = [&](uint64_t hash) {
    Variable v;
    v.hash = hash;
    for (int s = 0; s < strategies; ++s)
      v.unary.push_back(Time(random() % 1000));
    problem.variables.push_back(v);
    return int(problem.variables.size()) - 1;
  };
  auto connect = [&](int a, int b) {
    Pair pair{a, b, {}};
    for (int i = 0; i < strategies * strategies; ++i)
      pair.table.push_back(Time(random() % 1000));
    problem.pairs.push_back(pair);
  };
  int mask = variable(999), stream = variable(0);
  for (int layer = 0; layer < count; ++layer) {
    if (identical)
      random.seed(12);
    for (int branch = 0; branch < 2; ++branch) {
      int last = stream;
      for (int op = 0; op < 7; ++op) {
        int next = variable(uint64_t(branch * 10 + op + 1));
        connect(last, next);
        if (branch == 0 && op == 3) {
          connect(mask, next);
          for (int copy = 0; copy < 2; ++copy) { // keys and values
            int side = variable(uint64_t(50 + copy));
            connect(last, side);
            connect(side, next);
          }
        }
        last = next;
      }
      int sum = variable(uint64_t(branch * 10 + 9));
      connect(stream, sum);
      connect(last, sum);
      stream = sum;
    }
  }
  return problem;
}

MemoryModel layerBytes(const Problem &problem) {
  MemoryModel memory;
  for (const Variable &variable : problem.variables) {
    Footprint footprint;
    for (size_t x = 0; x < variable.unary.size(); ++x) {
      footprint.bytes.push_back((1100 - variable.unary[x]) * 1024);
      footprint.transient.push_back(int64_t(x % 3 + 1) * 4096);
    }
    memory.variables.push_back(std::move(footprint));
  }
  return memory;
}

} // namespace mtp::plan
