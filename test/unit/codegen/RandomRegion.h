// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RandomRegion.h - random funcs of fusible ops -----------------------===//
#ifndef MTP_TEST_UNIT_CODEGEN_RANDOMREGION_H
#define MTP_TEST_UNIT_CODEGEN_RANDOMREGION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <set>
#include <string>

namespace mtp::test {

/// A func of `ops` random ops on small f32 tensors, appended to `module`.
/// Values stay near 1, and no op jumps, so that f32 and double agree. Integer
/// arguments carry mtp.below. With `several` it returns several values of
/// different shapes. The mnemonics that occur are added to `covered`.
mlir::func::FuncOp randomRegion(mlir::ModuleOp module, const std::string &name,
                                uint64_t seed, int ops, bool several,
                                std::set<std::string> &covered);

} // namespace mtp::test

#endif // MTP_TEST_UNIT_CODEGEN_RANDOMREGION_H
