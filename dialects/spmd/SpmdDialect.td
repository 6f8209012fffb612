// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SpmdDialect.td - dialect, attributes, op classes --------------------===//
#ifndef SPMD_DIALECT_TD
#define SPMD_DIALECT_TD

include "dialects/mtp/MtpDialect.td"
include "dialects/spmd/SpmdEnums.td"
include "dialects/spmd/SpmdInterfaces.td"

def Spmd_Dialect : Dialect {
  let name = "spmd";
  let cppNamespace = "::mtp::spmd";
  let summary = "The program of one rank: local tensors, collectives, rank values.";
  let description = [{
    All ranks run one program. Tensors are a rank's blocks, without layouts; what
    differs from rank to rank is data: blocks of stored tensors
    (`spmd.parameter`) and scalars (`spmd.rank_value`). Compute ops are those of
    the mtp dialect, on local types. The module has one `mtp.mesh`.

    ```mlir
    mtp.mesh @mesh <tp = 2>
    func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %w = spmd.parameter @w layout #mtp.layout<@mesh, tp = S(1)> global tensor<8x16xf32> : tensor<8x8xf32>
      ...
    }
    ```
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mtp::MtpDialect"];
}

def Spmd_CutAttr : AttrDef<Spmd_Dialect, "Cut"> {
  let mnemonic = "cut";
  let summary = "How one dimension is cut: extent, mesh axes major first, unit.";
  let description = [{
    A dimension of `extent` elements starts with ceil(extent / unit) units; each
    axis cuts what is left into equal blocks of ceil(units / size) units.

    ```mlir
    #spmd.cut<101 by ["tp"]>
    #spmd.cut<1920 by ["dp", "tp"] unit 64>
    ```

    Constraints:
    - The extent is not negative, the unit is positive.
  }];
  let parameters = (ins "int64_t":$extent, "::mlir::ArrayAttr":$axes,
                        DefaultValuedParameter<"int64_t", "1">:$unit);
  let assemblyFormat = "`<` $extent `by` $axes (`unit` $unit^)? `>`";
  let genVerifyDecl = 1;
}

class Spmd_EnumAttr<EnumAttrInfo info, string attrMnemonic>
    : EnumAttr<Spmd_Dialect, info, attrMnemonic> {
  let assemblyFormat = "$value";
}
def Spmd_ReductionAttr : Spmd_EnumAttr<Spmd_Reduction, "reduction">;
def Spmd_ActivationAttr : Spmd_EnumAttr<Spmd_Activation, "activation">;
def Spmd_RankValueKindAttr : Spmd_EnumAttr<Spmd_RankValueKind, "rank_value_kind">;

class Spmd_Op<string mnemonic, list<Trait> traits = []> : Op<Spmd_Dialect, mnemonic, traits>;

/// A scalar that differs from rank to rank.
def Spmd_RankScalar : Type<CPred<"$_self == ::mlir::RankedTensorType::get({}, "
    "::mlir::IntegerType::get($_self.getContext(), 64))">, "scalar tensor<i64>",
    "::mlir::RankedTensorType">,
    BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI64Type())">;

#endif // SPMD_DIALECT_TD
