// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LayoutMaker.h - whole values in any layout -------------------------===//
#ifndef MTP_TEST_FUZZ_LAYOUTMAKER_H
#define MTP_TEST_FUZZ_LAYOUTMAKER_H

#include "dialects/mtp/MtpDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mtp::fuzz {

/// Brings whole values into a layout, and results back. Partial values are made
/// of terms of mixed signs that are not proportional to the value.
class LayoutMaker {
public:
  LayoutMaker(mlir::OpBuilder &builder, mlir::Location loc,
              const MeshShape &mesh)
      : builder(builder), loc(loc), mesh(mesh) {}

  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                              Layout layout);
  /// From all-invariant to `target`; null, with the reason, if this state
  /// cannot be made.
  mlir::Value make(mlir::Value whole, const Layout &target);
  /// From any layout to one without partial states.
  mlir::Value finish(mlir::Value value, Layout layout);
  /// From any layout to a whole invariant value. Replicated states go through a
  /// partial sum, so that the cotangent of the value is one of mixed signs.
  mlir::Value bringBack(mlir::Value value, Layout layout);

  std::string reason; ///< why `make` gave nothing

private:
  std::nullptr_t fail(const char *why);
  mlir::Value convert(mlir::Value value, int axis, Layout layout);
  mlir::Value splat(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                    int64_t value, const Layout &layout);
  Layout beside(const Layout &like, int rank);
  mlir::Value zeroSum(int axis, mlir::Type element, const Layout &around);
  mlir::Value indexSum(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                       const Layout &layout, int64_t from);
  mlir::Value partialSum(mlir::Value value, const Layout &layout,
                         llvm::ArrayRef<int> axes);
  mlir::Value spreadOver(mlir::Value value, const Layout &layout, int axis);
  mlir::Value partialExtremum(mlir::Value value, const Layout &layout,
                              llvm::ArrayRef<int> axes, Kind kind);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const MeshShape &mesh;
};

/// A module with an empty function `main` that has the inputs of another.
struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp main;
  mlir::OpBuilder builder;

  /// With a mesh the inputs are invariant on it; without one they have no
  /// layout.
  explicit Program(mlir::func::FuncOp like, const MeshShape *mesh = nullptr);
  void add(mlir::Value value, std::string name);
  mlir::OwningOpRef<mlir::ModuleOp> finish();

private:
  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<std::string> names;
};

} // namespace mtp::fuzz

#endif // MTP_TEST_FUZZ_LAYOUTMAKER_H
