// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/simulator/Fit.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace mtp::bench;
using namespace mtp::plan;

namespace {

/// A constant to fit, in logarithm: where it begins, and how much of the
/// objective a deviation from there costs (squared, in log).
struct Unknown {
  double Achieved::*value;
  double start, pull;
};

using Vector = std::vector<double>;
using Residuals = std::function<Vector(const Achieved &)>;

/// x of A x = b, A symmetric and positive definite.
Vector solve(std::vector<Vector> a, Vector b) {
  size_t n = b.size();
  for (size_t i = 0; i < n; ++i)
    for (size_t row = i + 1; row < n; ++row) {
      double factor = a[row][i] / a[i][i];
      for (size_t j = i; j < n; ++j)
        a[row][j] -= factor * a[i][j];
      b[row] -= factor * b[i];
    }
  for (size_t i = n; i-- > 0;) {
    for (size_t j = i + 1; j < n; ++j)
      b[i] -= a[i][j] * b[j];
    b[i] /= a[i][i];
  }
  return b;
}

/// Levenberg-Marquardt with Huber weights.
class Fit {
public:
  Fit(std::vector<Unknown> unknowns, Achieved fixed, double bend,
      Residuals residuals)
      : unknowns(std::move(unknowns)), fixed(fixed), bend(bend),
        residuals(std::move(residuals)) {}

  Achieved run() {
    Vector x(unknowns.size(), 0), r = at(x);
    double damping = 1e-2;
    for (int round = 0; round < 60 && damping < 1e6; ++round) {
      auto [matrix, slope] = normalEquations(x, r);
      for (; damping < 1e6; damping *= 4) {
        Vector next = step(matrix, slope, x, damping), moved = at(next);
        if (objective(moved, next) < objective(r, x)) {
          x = next;
          r = moved;
          damping = std::max(damping / 3, 1e-6);
          break;
        }
      }
    }
    return achieved(x);
  }

private:
  Achieved achieved(const Vector &x) const {
    Achieved result = fixed;
    for (size_t i = 0; i < unknowns.size(); ++i)
      result.*(unknowns[i].value) = unknowns[i].start * std::exp(x[i]);
    return result;
  }
  Vector at(const Vector &x) const { return residuals(achieved(x)); }

  double objective(const Vector &r, const Vector &x) const {
    double sum = 0;
    for (double value : r) {
      double size = std::abs(value);
      sum += size < bend ? size * size / bend : 2 * size - bend;
    }
    for (size_t i = 0; i < x.size(); ++i)
      sum += unknowns[i].pull * x[i] * x[i];
    return sum;
  }

  std::pair<std::vector<Vector>, Vector>
  normalEquations(const Vector &x, const Vector &r) const {
    constexpr double step = 1e-3;
    size_t n = x.size();
    std::vector<Vector> columns;
    for (size_t j = 0; j < n; ++j) {
      Vector shifted = x;
      shifted[j] += step;
      Vector column = at(shifted);
      for (size_t row = 0; row < r.size(); ++row)
        column[row] = (column[row] - r[row]) / step;
      columns.push_back(std::move(column));
    }
    std::vector<Vector> matrix(n, Vector(n, 0));
    Vector slope(n, 0);
    for (size_t i = 0; i < n; ++i) {
      for (size_t row = 0; row < r.size(); ++row) {
        double weight = 1 / std::max(std::abs(r[row]), bend);
        slope[i] += weight * columns[i][row] * r[row];
        for (size_t j = 0; j < n; ++j)
          matrix[i][j] += weight * columns[i][row] * columns[j][row];
      }
      slope[i] += unknowns[i].pull * x[i];
      matrix[i][i] += unknowns[i].pull;
    }
    return {matrix, slope};
  }

  static Vector step(std::vector<Vector> matrix, const Vector &slope, Vector x,
                     double damping) {
    double mean = 0;
    for (size_t i = 0; i < x.size(); ++i)
      mean += matrix[i][i] / double(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      matrix[i][i] += damping * mean;
    Vector change = solve(matrix, slope);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] -= std::clamp(change[i], -0.5, 0.5);
    return x;
  }

  std::vector<Unknown> unknowns;
  Achieved fixed;
  double bend;
  Residuals residuals;
};

} // namespace

Achieved mtp::bench::fitSingleNode(const Reference &reference) {
  // Large products reach about 0.8 of the peak, NVLink and memory 0.75 to 0.8
  // of theirs in every published benchmark; a product's sum starts and ends as
  // if it were about a tile of 128 longer. The other constants are free.
  std::vector<Unknown> unknowns = {
      {&Achieved::products, 0.8, 1200},    {&Achieved::memory, 0.8, 120},
      {&Achieved::inner, 0.767, 120},      {&Achieved::depth, 100, 120},
      {&Achieved::area, 3e5, 4},           {&Achieved::unaligned, 3, 0.4},
      {&Achieved::launchUs, 100, 0.4},     {&Achieved::sendUs, 20, 0.4},
      {&Achieved::layerUs, 1000, 0.4},     {&Achieved::headUs, 1000, 0.4},
      {&Achieved::logitBytes, 48, 0.4},    {&Achieved::updateBytes, 24, 0.4},
      {&Achieved::updateLayerUs, 20, 0.4}, {&Achieved::updateUs, 200, 0.4}};
  auto rows = reference.table("vtrain-single");
  auto residuals = [&](const Achieved &achieved) {
    Cluster cluster = reference.clusters.at("a100-hdr4");
    cluster.achieved = achieved;
    Vector result;
    for (const ReferenceRow *row : rows)
      result.push_back(std::log(double(simulate(cluster, row->job).step) *
                                1e-12 / row->measured));
    return result;
  };
  return Fit(unknowns, Achieved(), 0.03, residuals).run();
}

/// `unknowns` of one cluster, on differences or errors of tables.
static Achieved fitCluster(const Reference &reference, const char *cluster,
                           const Achieved &others,
                           std::vector<Unknown> unknowns,
                           std::vector<const char *> points,
                           std::vector<const char *> shares) {
  auto residuals = [&](const Achieved &achieved) {
    Reference copy = reference;
    copy.clusters.at(cluster).achieved = achieved;
    Vector result;
    for (const char *table : points)
      for (double value : copy.differences(table))
        result.push_back(value / 100);
    for (const char *table : shares)
      for (double value : copy.errors(table))
        result.push_back(value);
    return result;
  };
  return Fit(std::move(unknowns), others, 1, residuals).run();
}

Achieved mtp::bench::fitMegatron2019(const Reference &reference,
                                     const Achieved &others) {
  return fitCluster(reference, "dgx2h", others,
                    {{&Achieved::memory, 0.3, 1e-3},
                     {&Achieved::inner, 0.5, 1e-3},
                     {&Achieved::launchUs, 300, 1e-3},
                     {&Achieved::layerUs, 3000, 1e-3}},
                    {"megatron-mp", "megatron-strong"}, {});
}

Achieved mtp::bench::fitMegatronCore(const Reference &reference,
                                     const Achieved &others) {
  return fitCluster(reference, "h100", others,
                    {{&Achieved::products, 0.7, 1e-2},
                     {&Achieved::memory, 0.8, 1e-1},
                     {&Achieved::launchUs, 30, 1e-2},
                     {&Achieved::layerUs, 500, 1e-3}},
                    {}, {"megatron-core"});
}
