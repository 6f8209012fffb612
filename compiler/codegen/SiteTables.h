// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SiteTables.h - the tables of an artifact, while they grow ----------===//
#ifndef MTP_COMPILER_CODEGEN_SITETABLES_H
#define MTP_COMPILER_CODEGEN_SITETABLES_H

#include "dialects/spmd/SpmdDialect.h"
#include "runtime/artifact/Artifact.h"

#include "mlir/IR/SymbolTable.h"

#include <map>

namespace mtp {

/// Adds entries to the tables of an artifact; what is equal stands once.
/// Methods return an index, or fail with a diagnostic.
class SiteTables {
public:
  SiteTables(Artifact &artifact, MeshShape mesh)
      : artifact(artifact), mesh(std::move(mesh)) {}

  mlir::FailureOr<int64_t> add(spmd::ParameterOp op);
  /// Notes that `op` writes what `parameter` is an index of.
  void markUpdated(spmd::StoreOp op, int64_t parameter);
  /// Fails if one piece of an initializer is updated and another one is not:
  /// that would keep its old value.
  mlir::LogicalResult checkUpdates() const;
  mlir::FailureOr<int64_t> add(ConstantOp op);
  int64_t add(spmd::RankValueOp op);
  int64_t add(LibrarySite site);
  /// Collectives are never equal: each is counted on its own.
  mlir::FailureOr<int64_t> add(spmd::CollectiveOpInterface op);

  const MeshShape &meshShape() const { return mesh; }

private:
  mlir::FailureOr<Source> embed(mlir::Operation *op, mlir::ElementsAttr value);
  mlir::FailureOr<Source> sourceOf(mlir::Operation *op,
                                   InitializerOp initializer);
  int64_t intern(Parameter parameter);

  Artifact &artifact;
  MeshShape mesh;
  mlir::SymbolTableCollection symbols; ///< the module gains none meanwhile
  int64_t wholeSite = -1;                       ///< of the parts that follow
  std::map<std::string, spmd::StoreOp> updates; ///< by initializer, some store
  std::map<std::string, int64_t> parameterIndex, rankValueIndex, libraryIndex,
      dataOffset;
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_SITETABLES_H
