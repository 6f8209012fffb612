// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Compare.h - how far two results are apart --------------------------===//
#ifndef MTP_TOOLS_COMMON_COMPARE_H
#define MTP_TOOLS_COMMON_COMPARE_H

#include "runtime/io/HostTensor.h"

#include <string>
#include <vector>

namespace mtp {

/// max|a-b| and max|a-b| / max|b| over a whole tensor. NaN equals NaN, and an
/// infinity equals itself; against anything else both are infinitely far.
struct Difference {
  std::string name;
  double maxAbs = 0, maxRel = 0, maxReference = 0;
  double slack = 0;    ///< the part of maxAbs that is no fault
  std::string problem; ///< "missing", "shape [2, 3] instead of [2, 4]"
  /// maxAbs <= atol + slack + rtol * max|b|, and no problem.
  bool within(double rtol, double atol) const;
};

Difference compareTensors(const std::string &name, const HostTensor &a,
                          const HostTensor &b);
/// One entry for each name of either map.
std::vector<Difference> compareAll(const TensorMap &a, const TensorMap &b);

/// What rounding may make of an update by AdamW.
struct UpdateRounding {
  double rates = 0;         ///< sum of the learning rates of all steps
  double eps = 0;           ///< of AdamW
  double gradientError = 0; ///< how far a gradient is off, at most
};

/// Sets the slack of `difference`, that of parameter `a` and its reference `b`.
/// AdamW divides a gradient by its own size and eps: where element g of
/// `gradient` (the reference's) is off by d, the element moves by up to
/// rate * 2 d / (|g| + eps) more or less, at most twice the rate a step. Where
/// g is zero up to rounding, parameters may be that far apart without a fault
/// (gradients are compared as well and show one); each element has its own
/// allowance, so one that rounding cannot explain counts in full.
void allowForRounding(Difference &difference, const HostTensor &a,
                      const HostTensor &b, const HostTensor &gradient,
                      const UpdateRounding &rounding);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_COMPARE_H
