// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ArtifactTypes.h - types and layouts without MLIR -------------------===//
#ifndef MTP_COMPILER_CODEGEN_ARTIFACTTYPES_H
#define MTP_COMPILER_CODEGEN_ARTIFACTTYPES_H

#include "dialects/spmd/SpmdDialect.h"
#include "runtime/artifact/Artifact.h"

namespace mtp {

/// The element type of `type`, nothing if the runtime has none such.
std::optional<DType> dtypeOf(mlir::Type element);
/// Bytes of a tensor of static shape whose element type has a DType.
int64_t bytesOf(mlir::Type tensor);
std::vector<int64_t> vectorOf(llvm::ArrayRef<int64_t> values);

Mesh meshOf(const MeshShape &mesh);
DimSharding shardingOf(const DimCut &cut);
/// Layout of a whole tensor; diagnostics at `op`.
mlir::FailureOr<TensorLayout> tensorLayoutOf(mlir::Operation *op,
                                             mlir::RankedTensorType global,
                                             LayoutAttr layout,
                                             const MeshShape &mesh);

/// Elements in row-major order, little endian, booleans as bytes; nothing if
/// the attribute does not hold its elements.
std::optional<std::string> elementBytes(mlir::ElementsAttr value);

/// The name that a location carries (the ONNX node), "" if none.
std::string nodeName(mlir::Location loc);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_ARTIFACTTYPES_H
