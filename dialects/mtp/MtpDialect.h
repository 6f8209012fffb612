// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MtpDialect.h - the graph dialect -----------------------------------===//
#ifndef MTP_DIALECT_MTPDIALECT_H
#define MTP_DIALECT_MTPDIALECT_H

#include "dialects/mtp/ShardingRule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mtp {

/// One entry of `#mtp.layout`, as written.
struct LayoutEntry {
  mlir::StringAttr axis;
  Kind kind = Kind::I;
  int64_t dim = -1;
  int64_t unit = 1;
  bool operator==(const LayoutEntry &other) const {
    return axis == other.axis && kind == other.kind && dim == other.dim &&
           unit == other.unit;
  }
};
inline llvm::hash_code hash_value(const LayoutEntry &entry) {
  return llvm::hash_combine(entry.axis, static_cast<int>(entry.kind), entry.dim,
                            entry.unit);
}

/// What the ranks of an axis do in a conversion.
enum class Transfer : uint8_t {
  None,  ///< nothing: same bytes
  Slice, ///< keep the own block, local
  Pad,   ///< own block among zeros, local
  Root,  ///< the first rank keeps its value, the others zero, local
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Permute
};

/// Values of an op with this trait have no cotangent.
template <typename ConcreteOp>
class NoCotangentTrait
    : public mlir::OpTrait::TraitBase<ConcreteOp, NoCotangentTrait> {};
/// Result elements depend on the same (broadcast) elements of the operands.
template <typename ConcreteOp>
class ElementwiseTrait
    : public mlir::OpTrait::TraitBase<ConcreteOp, ElementwiseTrait> {};

class GradientBuilder;

/// What `localize` may ask: where the block of this rank lies. `state` names
/// an optimizer state or accumulator of the piece (null: the piece itself).
/// Results are scalar tensors `tensor<i64>` (values that differ from rank to
/// rank).
class Localizer {
public:
  virtual ~Localizer() = default;
  virtual mlir::OpBuilder &builder() = 0;
  /// True if the dimension of the operand (result) is cut.
  virtual bool isSharded(mlir::OpOperand &operand, int64_t dim) = 0;
  virtual bool isSharded(mlir::OpResult result, int64_t dim) = 0;
  /// Global position of the first element of this rank's block.
  virtual mlir::Value blockOffset(mlir::OpOperand &operand, int64_t dim) = 0;
  virtual mlir::Value blockOffset(mlir::OpResult result, int64_t dim) = 0;
  /// Elements of the block that exist; the rest, at its end, is padding.
  virtual mlir::Value blockValid(mlir::OpOperand &operand, int64_t dim) = 0;
  /// The local block of a stored tensor (a parameter): `source` is its symbol,
  /// `recipe` what the loader does to it before it is cut by the result's
  /// layout.
  virtual mlir::Value loadBlock(mlir::OpResult result,
                                mlir::FlatSymbolRefAttr source,
                                mlir::ArrayAttr recipe,
                                mlir::StringAttr state = {}) = 0;
  /// Writes the local block `value` over the stored block `stored`.
  virtual void storeBlock(mlir::Location loc, mlir::Value value,
                          mlir::Value stored) = 0;
};

namespace detail {
mlir::LogicalResult verifyConversion(mlir::Operation *op);
} // namespace detail

} // namespace mtp

#include "dialects/mtp/MtpDialect.h.inc"
#include "dialects/mtp/MtpEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/mtp/MtpAttrs.h.inc"
#include "dialects/mtp/MtpInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/mtp/MtpOps.h.inc"

namespace mtp {

/// The layout that a type carries, or null.
LayoutAttr layoutOf(mlir::Type type);
/// `type` with `layout` as its encoding (null: none).
mlir::RankedTensorType withLayout(mlir::RankedTensorType type,
                                  LayoutAttr layout);
/// The mesh op named `symbol`, seen from `from`; null if there is none.
MeshOp lookupMesh(mlir::Operation *from, mlir::FlatSymbolRefAttr symbol);
/// Attribute to algorithm data. Emits a diagnostic at `op` if an axis is not in
/// the mesh or a refined axis is written in a form that is not canonical.
mlir::FailureOr<Layout> toLayout(mlir::Operation *op,
                                 mlir::RankedTensorType type,
                                 const MeshShape &mesh);
/// Algorithm data to attribute.
LayoutAttr toAttr(mlir::MLIRContext *context, const Layout &layout,
                  const MeshShape &mesh);

/// Creates the conversion op named `mnemonic` ("mtp.copy_to") on `axes`.
mlir::Value createConversion(mlir::OpBuilder &builder, mlir::Location loc,
                             llvm::StringRef mnemonic, mlir::Value input,
                             llvm::ArrayRef<int> axes, const Layout &result,
                             const MeshShape &mesh);
/// The mnemonic of the conversion from one state to another, "" if there is no
/// single one: ("I", "R") -> "mtp.copy_to".
llvm::StringRef conversionName(Kind from, Kind to);

} // namespace mtp

#endif // MTP_DIALECT_MTPDIALECT_H
