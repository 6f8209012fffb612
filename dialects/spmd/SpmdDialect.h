// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SpmdDialect.h - the program of one rank ----------------------------===//
#ifndef MTP_DIALECT_SPMDDIALECT_H
#define MTP_DIALECT_SPMDDIALECT_H

#include "dialects/mtp/MtpDialect.h"

namespace mtp::spmd {
class CutAttr;
} // namespace mtp::spmd

#include "dialects/spmd/SpmdDialect.h.inc"
#include "dialects/spmd/SpmdEnums.h.inc"

namespace mtp::spmd {

namespace detail {
mlir::LogicalResult verifyCollective(mlir::Operation *op);
} // namespace detail

/// Attributes of the arguments and results of a partitioned function.
namespace names {
inline constexpr llvm::StringLiteral
    name("mtp.name"); ///< StringAttr, name in the model
inline constexpr llvm::StringLiteral layout("mtp.layout"); ///< LayoutAttr
inline constexpr llvm::StringLiteral
    globalType("mtp.global_type"); ///< TypeAttr of the whole tensor
inline constexpr llvm::StringLiteral
    dimNames("mtp.dim_names"); ///< strings, "" if static
inline constexpr llvm::StringLiteral
    range("mtp.range"); ///< array<i64: lo, hi>, inclusive
inline constexpr llvm::StringLiteral rangeReason("mtp.range_reason");
inline constexpr llvm::StringLiteral random("mtp.random");
/// Attributes that a plan may give to a conversion; collectives carry them.
inline constexpr llvm::StringLiteral phase("phase");
inline constexpr llvm::StringLiteral node("node");
inline constexpr llvm::StringLiteral reason("reason");
inline constexpr llvm::StringLiteral predictedCount("predicted_count");
inline constexpr llvm::StringLiteral predictedBytes("predicted_bytes");
} // namespace names

} // namespace mtp::spmd

#define GET_ATTRDEF_CLASSES
#include "dialects/spmd/SpmdAttrs.h.inc"
#include "dialects/spmd/SpmdInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/spmd/SpmdOps.h.inc"

namespace mtp::spmd {

/// The one mesh of the module around `op`; null and a diagnostic at `op` if
/// there is none or more than one.
MeshOp findMesh(mlir::Operation *op);

/// The mesh axes that `names` lists, in their order; a refined axis gives all
/// its factors. Empty if a name is unknown or an axis stands twice.
llvm::SmallVector<int, 2> findAxes(mlir::ArrayAttr names,
                                   const MeshShape &mesh);

/// The cut as algorithm data.
DimCut toCut(CutAttr cut, const MeshShape &mesh);
/// `cut` of a dimension of `extent` elements as an attribute.
CutAttr toCutAttr(mlir::MLIRContext *context, int64_t extent, const DimCut &cut,
                  const MeshShape &mesh);

} // namespace mtp::spmd

#endif // MTP_DIALECT_SPMDDIALECT_H
