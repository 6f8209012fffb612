// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- InPlace.h - kernels that write over an operand ---------------------===//
#ifndef MTP_COMPILER_CODEGEN_INPLACE_H
#define MTP_COMPILER_CODEGEN_INPLACE_H

#include "dialects/spmd/SpmdDialect.h"

namespace mtp {

/// Attribute of a `spmd.fused` op, and of a kernel's region: operand, result,
/// operand, result, ...: each result lies where the operand before it does.
inline constexpr llvm::StringLiteral kInPlace("mtp.in_place");

/// True if result `result` may be written over operand `operand`: whatever
/// depends on an element of the operand is the same element of the results.
bool mayOverwrite(spmd::FusedOp op, unsigned operand, unsigned result);

/// Adds a pair to the attribute.
void setInPlace(spmd::FusedOp op, unsigned operand, unsigned result);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_INPLACE_H
