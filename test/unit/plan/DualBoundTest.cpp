// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/DualBound.h"
#include "SolverFixture.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace mtp::plan;

namespace {

std::vector<int> inOrder(const Problem &problem) {
  std::vector<int> sequence(problem.variables.size());
  std::iota(sequence.begin(), sequence.end(), 0);
  return sequence;
}

TEST(DualBound, IsBelowEveryAssignment) {
  std::mt19937_64 random(3);
  double tightness = 0;
  int feasible = 0, infeasible = 0;
  for (int run = 0; run < 500; ++run) {
    Problem problem = randomProblem(random, run % 3 * 15);
    DualBound dual = dualBound(starsOf(problem), inOrder(problem));
    Time best = kIllegal;
    forEachAssignment(problem, [&](const std::vector<int> &assignment) {
      Time cost = costOf(problem, assignment);
      best = std::min(best, cost);
      // Of what is dearer than a known assignment no marginals are kept.
      for (size_t v = 0; cost <= dual.cost && v < assignment.size(); ++v)
        if (cost < kIllegal)
          EXPECT_LE(dual.marginals[v][assignment[v]], cost) << run;
    });
    if (best >= kIllegal) {
      if (dual.bound == kIllegal)
        ++infeasible;
      continue;
    }
    EXPECT_LE(dual.bound, best) << run;
    EXPECT_GE(dual.cost, best) << run;
    if (dual.cost < kIllegal)
      EXPECT_EQ(costOf(problem, dual.assignment), dual.cost) << run;
    tightness += best > 0 ? double(dual.bound) / double(best) : 1;
    ++feasible;
  }
  EXPECT_GT(feasible, 300);
  EXPECT_GT(infeasible, 0);
  EXPECT_GT(tightness / feasible, 0.8);
}

TEST(DualBound, IsTheOptimumOfAChain) {
  std::mt19937_64 random(4);
  for (int run = 0; run < 100; ++run) {
    Problem problem = randomProblem(random, 0);
    std::erase_if(problem.pairs,
                  [](const Pair &pair) { return pair.b != pair.a + 1; });
    DualBound dual = dualBound(starsOf(problem), inOrder(problem));
    Solver solver(problem);
    ASSERT_TRUE(solver.solve());
    // Parts of a cost are whole numbers.
    EXPECT_NEAR(double(dual.bound), double(solver.optimum()), 16) << run;
    EXPECT_LE(dual.bound, solver.optimum()) << run;
  }
}

//===----------------------------------------------------------------------===//
// Stars
//===----------------------------------------------------------------------===//

SharedTable randomTable(std::mt19937_64 &random, int rows, int columns,
                        bool isSquare) {
  std::vector<Time> costs;
  for (int i = 0; i < rows * columns; ++i) {
    bool isDiagonal = isSquare && i / columns == i % columns;
    costs.push_back(isDiagonal           ? 0
                    : random() % 10 == 0 ? kIllegal
                                         : Time(random() % 100));
  }
  return std::make_shared<const std::vector<Time>>(std::move(costs));
}

/// Values that one to three ends read, some of them of one op, some returned.
StarProblem randomStars(std::mt19937_64 &random) {
  StarProblem problem;
  const int variables = 3 + int(random() % 3);
  for (int v = 0; v < variables; ++v) {
    std::vector<Time> &unary = problem.unary.emplace_back(2 + random() % 3);
    for (Time &cost : unary)
      cost = random() % 12 == 0 ? kIllegal : Time(random() % 60);
  }
  for (int count = 2 + int(random() % 3); count > 0; --count) {
    Star star;
    star.rows = 2 + int(random() % 2);
    star.columns = 2 + int(random() % 3);
    auto end = [&](int layouts) {
      Star::End end{int(random() % size_t(variables)), {}};
      for (size_t x = 0; x < problem.unary[end.variable].size(); ++x)
        end.layoutOf.push_back(int(random() % size_t(layouts)));
      return end;
    };
    star.maker = end(star.rows);
    for (int reader = int(random() % 3); reader >= 0; --reader)
      star.readers.push_back(end(star.columns));
    star.made = randomTable(random, star.rows, star.columns, false);
    if (star.readers.size() > 1)
      star.copied = randomTable(random, star.columns, star.columns, true);
    if (random() % 3 == 0) {
      star.madeReturn = *randomTable(random, star.rows, 1, false);
      star.copiedReturn = *randomTable(random, star.columns, 1, false);
      star.copied = randomTable(random, star.columns, star.columns, true);
    }
    problem.stars.push_back(std::move(star));
  }
  return problem;
}

/// The same with one variable for each star: what it is made in, and its copy
/// or none.
Problem withCopies(const StarProblem &stars) {
  Problem problem;
  for (const std::vector<Time> &unary : stars.unary)
    problem.variables.push_back({unary, 0, ""});
  for (const Star &star : stars.stars) {
    const int copies = star.copied ? star.columns : 0, wide = copies + 1;
    const int variable = int(problem.variables.size());
    Variable copy;
    for (int state = 0; state < star.rows * wide; ++state) {
      int p = state / wide, c = state % wide - 1;
      Time cost = c < 0 ? 0 : (*star.made)[size_t(p * star.columns + c)];
      if (!star.madeReturn.empty())
        cost = add(cost, c < 0 ? star.madeReturn[size_t(p)]
                               : std::min(star.madeReturn[size_t(p)],
                                          star.copiedReturn[size_t(c)]));
      copy.unary.push_back(cost);
    }
    const size_t states = copy.unary.size();
    problem.variables.push_back(std::move(copy));
    Pair making{star.maker.variable, variable, {}};
    for (int p : star.maker.layoutOf)
      for (size_t state = 0; state < states; ++state)
        making.table.push_back(int(state) / wide == p ? 0 : kIllegal);
    problem.pairs.push_back(std::move(making));
    for (const Star::End &reader : star.readers) {
      Pair reading{reader.variable, variable, {}};
      for (int r : reader.layoutOf)
        for (size_t state = 0; state < states; ++state) {
          int p = int(state) / wide, c = int(state) % wide - 1;
          Time cost = (*star.made)[size_t(p * star.columns + r)];
          if (c >= 0)
            cost = std::min(cost, (*star.copied)[size_t(c * copies + r)]);
          reading.table.push_back(cost);
        }
      problem.pairs.push_back(std::move(reading));
    }
  }
  return problem;
}

TEST(DualBound, OfStarsIsThatOfTheModelWithCopies) {
  std::mt19937_64 random(5);
  double tightness = 0;
  int feasible = 0, infeasible = 0;
  for (int run = 0; run < 400; ++run) {
    StarProblem stars = randomStars(random);
    Problem problem = withCopies(stars);
    std::vector<int> sequence(stars.unary.size());
    std::iota(sequence.begin(), sequence.end(), 0);
    DualBound dual = dualBound(stars, sequence);
    Solver solver(problem);
    if (!solver.solve()) {
      ++infeasible;
      EXPECT_EQ(dual.cost, kIllegal) << run;
      continue;
    }
    ++feasible;
    EXPECT_LE(dual.bound, solver.optimum()) << run;
    EXPECT_GE(dual.cost, solver.optimum()) << run;
    auto exact = solver.minMarginals();
    for (size_t v = 0; v < sequence.size(); ++v)
      for (size_t x = 0; x < stars.unary[v].size(); ++x)
        if (exact[v][x] <= dual.cost && exact[v][x] < kIllegal)
          EXPECT_LE(dual.marginals[v][x], exact[v][x]) << run;
    for (size_t i = 0; i < stars.stars.size(); ++i) {
      const std::vector<Time> &states = exact[sequence.size() + i];
      const int columns = int(dual.copies[i].size());
      for (int state = 0; columns && state < int(states.size()); ++state)
        if (int c = state % (columns + 1) - 1;
            c >= 0 && states[size_t(state)] <= dual.cost)
          EXPECT_LE(dual.copies[i][size_t(c)], states[size_t(state)]) << run;
    }
    tightness += solver.optimum() > 0
                     ? double(dual.bound) / double(solver.optimum())
                     : 1;
    // The best copies of an assignment are those of the model.
    std::vector<int> chosen = *solver.solve();
    chosen.resize(sequence.size());
    EXPECT_EQ(costOf(stars, chosen), solver.optimum()) << run;
  }
  EXPECT_GT(feasible, 200);
  EXPECT_GT(infeasible, 0);
  EXPECT_GT(tightness / feasible, 0.8);
}

} // namespace
