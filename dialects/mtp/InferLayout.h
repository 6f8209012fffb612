// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- InferLayout.h - layouts of results from those of operands ----------===//
#ifndef MTP_DIALECT_INFERLAYOUT_H
#define MTP_DIALECT_INFERLAYOUT_H

#include "dialects/mtp/Layout.h"

#include "mlir/IR/Operation.h"

namespace mtp {

/// Types the results of `op`, which have no layout yet: its operands have one,
/// and the results follow by the op's sharding rule. Where several cases of the
/// rule fit on an axis, the first of these is taken: one that gives the results
/// their `wanted` layouts (one a result, or none), the invariant one, the
/// others in the order of enumerateCases. Two reasons for a choice:
///
///   op                          operand      wanted    result
///   broadcast (4) -> (4, 8)     R            S(1)      S(1)
///                               R            none      R
///   add of two constants        I, I         S(0)      I (no case gives S)
///
/// A source (constant, iota) is cut as wanted and invariant elsewhere, which is
/// accepted where R is required; nothing is wanted: invariant.
///
/// Fails with the reason in `why` if no case fits. Emits no diagnostic unless
/// the op itself is malformed.
mlir::LogicalResult
inferLayouts(mlir::Operation *op, const MeshShape &mesh, std::string &why,
             llvm::ArrayRef<std::optional<Layout>> wanted = {});

} // namespace mtp

#endif // MTP_DIALECT_INFERLAYOUT_H
