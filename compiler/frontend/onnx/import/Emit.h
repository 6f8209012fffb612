// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Emit.h - makes mtp ops with the types that follow ------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_IMPORT_EMIT_H
#define MTP_COMPILER_FRONTEND_ONNX_IMPORT_EMIT_H

#include "compiler/frontend/onnx/Constant.h"
#include "dialects/mtp/MtpDialect.h"

namespace mtp::onnx {

/// Thrown where shapes do not fit together; caught by the importer, which knows
/// the node.
struct ShapeMismatch {
  std::string reason;
};

/// Element type of mtp for an ONNX type.
mlir::Type elementType(mlir::MLIRContext *context, DType type);
DType dtypeOf(mlir::Type element);
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
}
inline mlir::Type elementOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getElementType();
}
/// Numpy broadcast of two shapes; throws ShapeMismatch.
Shape broadcastShapes(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

class Emit {
public:
  Emit(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(&builder), loc(loc) {}

  mlir::OpBuilder &b() { return *builder; }
  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape,
                              mlir::Type element) {
    return mlir::RankedTensorType::get(shape, element);
  }

  template <typename Op> mlir::Value unary(mlir::Value x) {
    return Op::create(*builder, loc, x.getType(), x);
  }
  template <typename Op> mlir::Value test(mlir::Value x) {
    return Op::create(*builder, loc, type(shapeOf(x), builder->getI1Type()), x);
  }
  template <typename Op> mlir::Value binary(mlir::Value a, mlir::Value b) {
    return Op::create(
        *builder, loc,
        type(broadcastShapes(shapeOf(a), shapeOf(b)), elementOf(a)), a, b);
  }
  template <typename Op>
  mlir::Value reduce(mlir::Value x, llvm::ArrayRef<int64_t> dims, bool keep);
  mlir::Value compare(Compare predicate, mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value convert(mlir::Value x, mlir::Type element);
  /// A scalar (rank 0) constant.
  mlir::Value scalar(mlir::Type element, double value);
  mlir::Value splat(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                    double value);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> perm);
  mlir::Value broadcast(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value slice(mlir::Value x, int64_t dim, int64_t start, int64_t size,
                    int64_t step = 1);
  mlir::Value concat(int64_t dim, llvm::ArrayRef<mlir::Value> values);
  mlir::Value gather(mlir::Value data, mlir::Value indices, int64_t dim);
  mlir::Value iota(llvm::ArrayRef<int64_t> shape, int64_t dim,
                   mlir::Type element);
  mlir::Value matmul(mlir::Value a, mlir::Value b, bool transposeA = false,
                     bool transposeB = false);
  mlir::Value mean(mlir::Value x, llvm::ArrayRef<int64_t> dims, bool keep);
  /// Inserts size-1 dimensions at `dims` of the result.
  mlir::Value unsqueeze(mlir::Value x, llvm::ArrayRef<int64_t> dims);

  mlir::OpBuilder *builder;
  mlir::Location loc;
};

template <typename Op>
mlir::Value Emit::reduce(mlir::Value x, llvm::ArrayRef<int64_t> dims,
                         bool keep) {
  Shape shape;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(x))) {
    bool reduced = llvm::is_contained(dims, static_cast<int64_t>(dim));
    if (!reduced || keep)
      shape.push_back(reduced ? 1 : extent);
  }
  return Op::create(*builder, loc, type(shape, elementOf(x)), x,
                    builder->getDenseI64ArrayAttr(dims),
                    keep ? builder->getUnitAttr() : mlir::UnitAttr());
}

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_IMPORT_EMIT_H
