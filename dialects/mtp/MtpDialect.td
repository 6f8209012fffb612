// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MtpDialect.td - dialect, attributes, op classes ---------------------===//
#ifndef MTP_DIALECT_TD
#define MTP_DIALECT_TD

include "dialects/mtp/MtpInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Mtp_Dialect : Dialect {
  let name = "mtp";
  let cppNamespace = "::mtp";
  let summary = "Transformer graphs on whole tensors, with layouts in the types.";
  let description = [{
    Tensors have global shapes. Before a plan is applied types carry no layout;
    after it every tensor type carries one (`#mtp.layout`), and layouts change
    only through the conversion ops, each of which knows its conjugate.

    ```mlir
    mtp.mesh @mesh <dp = 2, tp = 4>
    func.func @main(%x: tensor<4x128x768xf32, #mtp.layout<@mesh, dp = S(0)>>) ...
    ```
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 0;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Mtp_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Mtp_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Mtp_LayoutAttr : Mtp_Attr<"Layout", "layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "How a tensor lies on a mesh: one state per mesh axis.";
  let description = [{
    The encoding of tensor types. Axes that are not named are invariant.

    ```mlir
    tensor<4x128x3072xf32, #mtp.layout<@mesh, tp = S(2)>>
    tensor<8x1920xf32, #mtp.layout<@mesh, tp = S(1, unit 64), dp = R>>
    tensor<8xf32, #mtp.layout<@mesh>>
    ```

    Entries that shard the same dimension are listed major first. `tp.0` is the
    major factor of a refined axis tp.

    Constraints:
    - An axis is named at most once.
    - A sharded dimension exists in the tensor; its unit is positive.
    - A tensor has at most one kind of reduction.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh,
                        ArrayRefParameter<"::mtp::LayoutEntry">:$entries);
  let hasCustomAssemblyFormat = 1;
}

def Mtp_RecipeStepAttr : Mtp_Attr<"RecipeStep", "step"> {
  let summary = "One step of the load-time recipe of a parameter.";
  let description = [{
    `#mtp.step<transpose, [1, 0]>` (result dim i = source dim values[i]),
    `#mtp.step<slice, [dim, start, size]>`, `#mtp.step<reshape, [shape...]>`.
  }];
  let parameters = (ins StringRefParameter<>:$kind, ArrayRefParameter<"int64_t">:$values);
  let assemblyFormat = "`<` $kind `,` `[` $values `]` `>`";
}

class Mtp_Enum<string enumName, list<string> names>
    : I32EnumAttr<enumName, "", !foreach(i, !range(!size(names)),
        I32EnumAttrCase<names[i], i>)> {
  let cppNamespace = "::mtp";
  let genSpecializedAttr = 0;
}
class Mtp_EnumAttr<EnumAttrInfo info, string attrMnemonic>
    : EnumAttr<Mtp_Dialect, info, attrMnemonic> {
  let assemblyFormat = "$value";
}

def Mtp_Compare : Mtp_Enum<"Compare", ["eq", "ne", "lt", "le", "gt", "ge"]>;
def Mtp_CompareAttr : Mtp_EnumAttr<Mtp_Compare, "compare">;
def Mtp_Combine : Mtp_Enum<"Combine", ["none", "add", "mul", "max", "min"]>;
def Mtp_CombineAttr : Mtp_EnumAttr<Mtp_Combine, "combine">;

//===----------------------------------------------------------------------===//
// Op classes
//===----------------------------------------------------------------------===//

def Mtp_Tensor : Type<AnyRankedTensor.predicate, "ranked tensor", "::mlir::RankedTensorType">;

/// Values of this op have no cotangent although they are floats.
def Mtp_NoCotangent : NativeOpTrait<"NoCotangentTrait"> { let cppNamespace = "::mtp"; }
/// Elementwise: result element i depends on element i of the (broadcast) operands.
def Mtp_Elementwise : NativeOpTrait<"ElementwiseTrait"> { let cppNamespace = "::mtp"; }

class Mtp_RuleTrait<string rule, string linear>
    : ParamNativeOpTrait<"ShardingRuleTrait", "\"" # rule # "\", \"" # linear # "\""> {
  let cppNamespace = "::mtp";
}
/// The rule in one line, see ShardingRule.h.
class ShardingRule<string rule, string linear = "">
    : TraitList<[Mtp_RuleTrait<rule, linear>, Mtp_ShardingOpInterface]>;
/// The rule is computed by `buildShardingRule` of the op (OpRules.cpp).
defvar ComputedRule = DeclareOpInterfaceMethods<Mtp_ShardingOpInterface>;

class Mtp_Op<string mnemonic, list<Trait> traits = []> : Op<Mtp_Dialect, mnemonic, traits>;

#endif // MTP_DIALECT_TD
