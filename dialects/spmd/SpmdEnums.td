// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SpmdEnums.td - enumerations of the spmd dialect ---------------------===//
#ifndef SPMD_ENUMS_TD
#define SPMD_ENUMS_TD

include "mlir/IR/EnumAttr.td"

class Spmd_Enum<string enumName, list<string> names>
    : I32EnumAttr<enumName, "", !foreach(i, !range(!size(names)),
        I32EnumAttrCase<names[i], i>)> {
  let cppNamespace = "::mtp::spmd";
  let genSpecializedAttr = 0;
}
def Spmd_Reduction : Spmd_Enum<"Reduction", ["sum", "max", "min"]>;
def Spmd_RankValueKind : Spmd_Enum<"RankValueKind", ["offset", "valid", "coordinate"]>;
def Spmd_Activation : Spmd_Enum<"Activation", ["none", "relu", "gelu_erf", "gelu_tanh", "silu"]>;

#endif // SPMD_ENUMS_TD
