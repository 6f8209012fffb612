// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Passes.h - all passes of mtp ---------------------------------------===//
#ifndef MTP_PASSES_H
#define MTP_PASSES_H

#include "dialects/spmd/SpmdDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mtp {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace mtp

#endif // MTP_PASSES_H
