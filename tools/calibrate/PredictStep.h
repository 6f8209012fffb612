// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PredictStep.h - the time of an artifact's step ---------------------===//
//
// A product or attention costs its operations at the rate of its shape, any
// other kernel the memory of its operands, at least the time of the smallest
// kernel; a collective costs what the cost functions say of its bytes.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_CALIBRATE_PREDICTSTEP_H
#define MTP_TOOLS_CALIBRATE_PREDICTSTEP_H

#include "compiler/cost/Calibration.h"
#include "runtime/artifact/Artifact.h"

namespace mtp {

struct PredictedStep {
  plan::Time products = 0, kernels = 0, collectives = 0;
  plan::Time total() const {
    return plan::add(products, plan::add(kernels, collectives));
  }
};

PredictedStep predictStep(const Artifact &artifact, const Entry &entry,
                          const plan::Calibration &calibration);

/// One collective of the artifact.
plan::Time predictCollective(const Artifact &artifact,
                             const CollectiveSite &site,
                             const plan::Machine &machine);

} // namespace mtp

#endif // MTP_TOOLS_CALIBRATE_PREDICTSTEP_H
