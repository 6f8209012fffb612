// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SpmdInterfaces.td - what collectives say about themselves -----------===//
#ifndef SPMD_INTERFACES_TD
#define SPMD_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Spmd_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::mtp::spmd";
  let description = [{
    An operation in which the ranks of some mesh axes take part together. It has
    one operand and one result. All ranks issue all collectives in one order.
  }];
  let methods = [
    InterfaceMethod<"Names of the mesh axes, major first.",
      "::mlir::ArrayAttr", "getAxes", (ins)>,
    InterfaceMethod<"Mnemonic of the conversion it comes from, without dialect.",
      "::llvm::StringRef", "getMtpOp", (ins)>,
    InterfaceMethod<"forward, backward or update.", "::llvm::StringRef", "getPhase", (ins)>,
    InterfaceMethod<"Dimension that is concatenated or cut; -1 if none is.",
      "int64_t", "getChangedDim", (ins), "", [{ return -1; }]>,
    InterfaceMethod<"Cut of that dimension on its sharded side; null if there is none.",
      "::mtp::spmd::CutAttr", "getChangedCut", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"What it does with the elements of the ranks.",
      "::mtp::spmd::Reduction", "getReductionKind",
      (ins), "", [{ return ::mtp::spmd::Reduction::sum; }]>];
  let verify = [{ return ::mtp::spmd::detail::verifyCollective($_op); }];
}

#endif // SPMD_INTERFACES_TD
