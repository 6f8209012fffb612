// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/Compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mtp;

bool Difference::within(double rtol, double atol) const {
  return problem.empty() && maxAbs <= atol + slack + rtol * maxReference;
}

Difference mtp::compareTensors(const std::string &name, const HostTensor &a,
                               const HostTensor &b) {
  Difference difference;
  difference.name = name;
  if (a.shape != b.shape) {
    difference.problem =
        "shape " + shapeText(a.shape) + " instead of " + shapeText(b.shape);
    return difference;
  }
  for (int64_t i = 0, e = a.elements(); i < e; ++i) {
    double x = a.valueAt(i), y = b.valueAt(i);
    if (std::isfinite(y))
      difference.maxReference = std::max(difference.maxReference, std::abs(y));
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    double distance = std::abs(x - y);
    difference.maxAbs = std::isfinite(distance)
                            ? std::max(difference.maxAbs, distance)
                            : std::numeric_limits<double>::infinity();
  }
  if (difference.maxAbs > 0)
    difference.maxRel = difference.maxAbs / difference.maxReference;
  return difference;
}

std::vector<Difference> mtp::compareAll(const TensorMap &a,
                                        const TensorMap &b) {
  std::vector<Difference> differences;
  for (auto &[name, tensor] : b) {
    auto found = a.find(name);
    if (found != a.end())
      differences.push_back(compareTensors(name, found->second, tensor));
    else
      differences.push_back({name, 0, 0, 0, 0, "missing"});
  }
  for (auto &[name, tensor] : a)
    if (!b.count(name))
      differences.push_back({name, 0, 0, 0, 0, "not in the reference"});
  return differences;
}

void mtp::allowForRounding(Difference &difference, const HostTensor &a,
                           const HostTensor &b, const HostTensor &gradient,
                           const UpdateRounding &rounding) {
  if (!difference.problem.empty() || !std::isfinite(difference.maxAbs) ||
      gradient.shape != b.shape)
    return;
  double beyond = 0; // the largest that is left of |a - b|
  for (int64_t i = 0, e = a.elements(); i < e; ++i) {
    double distance = std::abs(a.valueAt(i) - b.valueAt(i));
    double size = std::abs(gradient.valueAt(i)) + rounding.eps;
    // Four times the bound: the states of earlier steps are off as well.
    double moved =
        rounding.rates * std::min(2.0, 8 * rounding.gradientError / size);
    if (distance > 0)
      beyond = std::max(beyond, distance - moved);
  }
  difference.slack = difference.maxAbs - beyond;
}
