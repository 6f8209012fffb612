// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- BytesFixture.h - the planner's sum beside what is allocated --------===//
#ifndef MTP_TEST_UNIT_PLAN_BYTESFIXTURE_H
#define MTP_TEST_UNIT_PLAN_BYTESFIXTURE_H

#include "PlanFixture.h"

#include "compiler/driver/CompilerApi.h"

namespace mtp::plan {

struct PlanBytes {
  int64_t sum = 0, transient = 0; ///< a part of the sum
  int64_t allocated = 0, arena = 0;
};

class BytesTest : public PlanTest {
protected:
  BytesTest();
  /// Reads a module; with `train` it gets the loss and is made ready for it.
  void read(const std::string &text, std::optional<TrainRequest> train = {});
  /// The module that is there gets the loss.
  void addLoss();
  /// The sum of Memory.h for the plan among `freedom` (nothing: that plan
  /// alone), and the bytes of the program that has it.
  PlanBytes bytesOf(const Plan &plan, std::optional<Freedom> freedom = {});

  std::optional<TrainRequest> train;
};

} // namespace mtp::plan

#endif // MTP_TEST_UNIT_PLAN_BYTESFIXTURE_H
