// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MtpInterfaces.td - what mtp ops say about themselves ----------------===//
#ifndef MTP_INTERFACES_TD
#define MTP_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Mtp_ShardingOpInterface : OpInterface<"ShardingOpInterface"> {
  let cppNamespace = "::mtp";
  let description = [{
    How the dimensions of an op relate (ShardingRule.h). Fixed rules come from
    the trait `ShardingRule<text, linear>`; ops whose rule depends on attributes
    or shapes implement the method.
  }];
  let methods = [InterfaceMethod<"Builds the sharding rule and checks it against the shapes.",
    "::mlir::FailureOr<::mtp::ShardingRule>", "buildShardingRule", (ins)>];
  let extraClassDeclaration = [{
    /// The sharding rule, checked against the shapes.
    ::mlir::FailureOr<::mtp::ShardingRule> getShardingRule() {
      return ::mtp::detail::takeRule(getOperation(), buildShardingRule());
    }
  }];
  let verify = [{ return ::mtp::detail::verifySharding($_op); }];
}

def Mtp_ConversionOpInterface : OpInterface<"ConversionOpInterface"> {
  let cppNamespace = "::mtp";
  let description = [{
    A change of layout on one or more mesh axes. `from` and `to` are the states
    of the operand and of the result on those axes. The conjugate of a
    conversion a -> b is the conversion dual(b) -> dual(a).
  }];
  let methods = [
    InterfaceMethod<"Names of the mesh axes, major first.",
      "::mlir::ArrayAttr", "getAxes", (ins)>,
    StaticInterfaceMethod<"State of the operand on the axes.",
      "::mtp::Kind", "fromKind", (ins)>,
    StaticInterfaceMethod<"State of the result on the axes.",
      "::mtp::Kind", "toKind", (ins)>,
    StaticInterfaceMethod<"What the axes' ranks do together.",
      "::mtp::Transfer", "getTransfer", (ins)>,
    StaticInterfaceMethod<"Mnemonic of the conjugate.",
      "::llvm::StringRef", "getConjugateName", (ins)>];
  let verify = [{ return ::mtp::detail::verifyConversion($_op); }];
}

def Mtp_LocalizeOpInterface : OpInterface<"LocalizeOpInterface"> {
  let cppNamespace = "::mtp";
  let description = [{
    Ops whose attributes or values are global positions: iota, look-up in a
    sharded table, causal masks. All other ops are localized by giving them
    local types.
  }];
  let methods = [InterfaceMethod<[{
      Emits the op on local blocks and returns its local results. Operands are
      local already; padding of contracted factors is already neutral.}],
    "::llvm::SmallVector<::mlir::Value>", "localize",
    (ins "::mtp::Localizer &":$localizer, "::mlir::ValueRange":$operands,
         "::mlir::TypeRange":$results)>];
}

def Mtp_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::mtp";
  let description = [{
    Ops with a gradient (Gradient.h). The emitted ops are ordinary typed ops: the
    layout of a cotangent is the dual of its value's, and it comes out by the
    rules alone. Implemented by external models, Gradients*.cpp.
  }];
  let methods = [InterfaceMethod<[{
      Emits the cotangents of the operands, given those of the results (null:
      zero). `gradients` has one entry an operand, null on entry; operands that
      `gradient.wants` says no to may stay null. Fails with a diagnostic.}],
    "::llvm::LogicalResult", "buildGradient",
    (ins "::mtp::GradientBuilder &":$gradient,
         "::mlir::ValueRange":$cotangents,
         "::llvm::MutableArrayRef<::mlir::Value>":$gradients)>];
}

def Mtp_FlopsOpInterface : OpInterface<"FlopsOpInterface"> {
  let cppNamespace = "::mtp";
  let description = "Contractions, whose work the planner counts.";
  let methods = [InterfaceMethod<
    "Floating point operations on tensors of the given (local) shapes.",
    "int64_t", "getFlops",
    (ins "::llvm::ArrayRef<::llvm::SmallVector<int64_t>>":$operandShapes,
         "::llvm::ArrayRef<::llvm::SmallVector<int64_t>>":$resultShapes)>];
}

#endif // MTP_INTERFACES_TD
