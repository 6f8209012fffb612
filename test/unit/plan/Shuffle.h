// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Shuffle.h - the same graph in another order, under other names -----===//
#ifndef MTP_TEST_UNIT_PLAN_SHUFFLE_H
#define MTP_TEST_UNIT_PLAN_SHUFFLE_H

#include "compiler/plan/Plan.h"

#include <random>

namespace mtp::plan {

/// Any other order of @main in which every op stands behind its operands.
void shuffle(mlir::ModuleOp module, std::mt19937_64 &random);

/// New names for every op and initializer.
void rename(mlir::ModuleOp module, std::mt19937_64 &random);

/// What a plan chooses for each op, whatever the order and the names are.
using ChoicesByOp = llvm::DenseMap<mlir::Operation *, PlannedOp>;
ChoicesByOp choicesByOp(mlir::ModuleOp module, const Plan &plan);

/// The name of an op that they have different layouts for; "" if there is none.
std::string differingChoice(const ChoicesByOp &expected,
                            const ChoicesByOp &found);

} // namespace mtp::plan

#endif // MTP_TEST_UNIT_PLAN_SHUFFLE_H
