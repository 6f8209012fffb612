// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TakeRule.cpp - the rule of an op is the one it builds --------------===//
//
// Alone in its file, so that test/fuzz can link another definition.
//
//===----------------------------------------------------------------------===//

#include "dialects/mtp/ShardingRule.h"

using namespace mlir;
using namespace mtp;

FailureOr<ShardingRule> mtp::detail::takeRule(Operation *,
                                              FailureOr<ShardingRule> built) {
  return built;
}
