// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-partition.h - from whole tensors to the program of one rank ----===//
#ifndef MTP_PASSES_MTPPARTITION_H
#define MTP_PASSES_MTPPARTITION_H

#include "dialects/spmd/SpmdDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"

#include <map>

namespace mtp::partition {

/// What padding becomes before a reduction: 0 for a sum, the lowest value for a
/// maximum, the highest for a minimum.
mlir::TypedAttr neutralElement(mlir::Builder &builder, mlir::Type element,
                               Kind reduction);

/// Scalars that differ from rank to rank, each made once a function.
class RankScalars {
public:
  RankScalars(mlir::OpBuilder &builder, const MeshShape &mesh)
      : builder(builder), mesh(mesh) {}
  /// Position of the first element of this rank's block.
  mlir::Value offset(mlir::Location loc, int64_t extent, const DimCut &cut);
  /// Elements of this rank's block that exist.
  mlir::Value valid(mlir::Location loc, int64_t extent, const DimCut &cut);
  mlir::Value coordinate(mlir::Location loc, int axis);

private:
  mlir::Value get(mlir::Location loc, spmd::RankValueKind kind, int64_t extent,
                  const DimCut &cut);
  mlir::OpBuilder &builder;
  const MeshShape &mesh;
  std::map<std::pair<spmd::RankValueKind, const void *>, mlir::Value> made;
};

/// Emits one change of layout. Let `outer` be the block of a dimension before
/// the listed axes cut it, as it is on the side where they don't:
///
///   transfer       emitted
///   None           nothing, the same bytes
///   Slice          take_block of the outer block
///   Pad            place_block into zeros of the outer block's size
///   Root           keep_on_root, once an axis
///   all others     the collective of that name; padding is left out of copies
///
/// On axes of one rank nothing is emitted, unless sizes change.
class ConversionEmitter {
public:
  ConversionEmitter(ConversionOpInterface op, const Layout &from,
                    const Layout &to, const MeshShape &mesh,
                    mlir::OpBuilder &builder, RankScalars &scalars);
  /// The converted local value; null after a diagnostic.
  mlir::Value emit(mlir::Value input);

private:
  mlir::LogicalResult checkNesting();
  mlir::Value emitSlice(mlir::Value input);
  mlir::Value emitPad(mlir::Value input);
  mlir::Value emitRoot(mlir::Value input);
  mlir::Value emitCollective(mlir::Value input);
  llvm::SmallVector<int64_t> sources() const;
  int64_t extent(int dim) const { return shape[dim]; }
  spmd::CutAttr cutOf(const Layout &layout, int dim) const;

  ConversionOpInterface op;
  const Layout &from, &to;
  const MeshShape &mesh;
  mlir::OpBuilder &builder;
  RankScalars &scalars;
  llvm::ArrayRef<int64_t> shape; ///< global
  llvm::SmallVector<int, 2> axes;
  mlir::RankedTensorType local; ///< of the result
};

/// Rewrites one function. Invariants while it runs: the old block keeps its
/// global types and is only read; the new block grows in the old one's order,
/// and `values` maps each old value to its local one.
class FunctionPartitioner : public Localizer {
public:
  FunctionPartitioner(mlir::func::FuncOp func, MeshShape mesh);
  mlir::LogicalResult run();

  mlir::OpBuilder &builder() override { return ops; }
  bool isSharded(mlir::OpOperand &operand, int64_t dim) override;
  bool isSharded(mlir::OpResult result, int64_t dim) override;
  mlir::Value blockOffset(mlir::OpOperand &operand, int64_t dim) override;
  mlir::Value blockOffset(mlir::OpResult result, int64_t dim) override;
  mlir::Value blockValid(mlir::OpOperand &operand, int64_t dim) override;
  mlir::Value loadBlock(mlir::OpResult result, mlir::FlatSymbolRefAttr source,
                        mlir::ArrayAttr recipe,
                        mlir::StringAttr state) override;
  void storeBlock(mlir::Location loc, mlir::Value value,
                  mlir::Value stored) override;

private:
  mlir::LogicalResult partition(mlir::Operation *op);
  mlir::LogicalResult partitionCompute(ShardingOpInterface op);
  mlir::LogicalResult partitionReturn(mlir::func::ReturnOp op);
  mlir::LogicalResult addArguments(mlir::Block &old);
  /// The local operands with padding of contracted factors and of positions
  /// neutral.
  llvm::SmallVector<mlir::Value> maskedOperands(mlir::Operation *op,
                                                const ShardingRule &rule);
  mlir::Value maskDim(mlir::OpOperand &operand, mlir::Value local, int64_t dim,
                      Kind reduction);
  /// Notes the layout of a value; fails with a diagnostic at `at` if it has
  /// none.
  mlir::LogicalResult addLayout(mlir::Operation *at, mlir::Value value);
  mlir::RankedTensorType localType(mlir::Value value);
  /// Names, layout and whole type of an argument or a result.
  mlir::DictionaryAttr describe(mlir::DictionaryAttr attrs, mlir::Type type);
  const Layout &layoutOfValue(mlir::Value value);

  mlir::func::FuncOp func;
  MeshShape mesh;
  mlir::OpBuilder ops;
  RankScalars scalars;
  mlir::IRMapping values;
  mlir::AttrTypeReplacer stripper;
  llvm::DenseMap<mlir::Value, Layout> layouts;
  std::map<std::tuple<const void *, int64_t, Kind>, mlir::Value> masks;
  mlir::Block *block = nullptr;
};

} // namespace mtp::partition

#endif // MTP_PASSES_MTPPARTITION_H
