// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MtpModuleOps.td - mesh, initializers, parameters, constants ---------===//
#ifndef MTP_MODULE_OPS_TD
#define MTP_MODULE_OPS_TD

include "dialects/mtp/MtpDialect.td"

def Mtp_MeshOp : Mtp_Op<"mesh", [Symbol]> {
  let summary = "A mesh of ranks with named axes.";
  let description = [{
    Axes are listed slowest first: the last axis has neighbouring ranks. An axis
    may be refined into factors, major first.

    ```mlir
    mtp.mesh @mesh <dp = 2, tp = 4>
    mtp.mesh @mesh <dp = 2, tp = 2 x 2>
    ```

    Constraints:
    - Every axis has a name of its own and positive factors.
    - The number of ranks does not exceed 65536.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axis_names,
                       ArrayAttr:$axis_factors);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The mesh in its finest axes.
    ::mtp::MeshShape getShape();
  }];
}

def Mtp_InitializerOp : Mtp_Op<"initializer", [Symbol]> {
  let summary = "A logical parameter or constant tensor: where its bytes are.";
  let description = [{
    Weights never enter the IR as literals: `file`, `offset` and `bytes` say
    where they lie; `value` holds the elements of constants computed at import.

    ```mlir
    mtp.initializer @wte.weight : tensor<50257x768xf32> {file = "model.onnx", offset = 128 : i64, bytes = 154389504 : i64, trainable}
    ```

    Constraints:
    - Either `value` or `file` with `offset` and `bytes` is given.
    - `bytes` is the size of the type.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
                       OptionalAttr<StrAttr>:$file, OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<I64Attr>:$bytes, OptionalAttr<StrAttr>:$sha256,
                       OptionalAttr<ElementsAttr>:$value,
                       UnitAttr:$parameter, UnitAttr:$trainable);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let hasVerifier = 1;
}

def Mtp_ParameterOp : Mtp_Op<"parameter", [Pure, ComputedRule,
    DeclareOpInterfaceMethods<Mtp_LocalizeOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A stored piece of an initializer, after its load-time recipe.";
  let description = [{
    The element type may differ from the initializer's (precision). The layout of
    the result is the storage layout: each rank loads only its block.

    ```mlir
    %q = mtp.parameter @c_attn.weight recipe [#mtp.step<slice, [1, 0, 768]>] : tensor<768x768xf32>
    ```

    Constraints:
    - The symbol is an `mtp.initializer`.
    - The recipe, applied to the initializer's shape, gives the result's shape.
  }];
  let arguments = (ins FlatSymbolRefAttr:$source,
                       DefaultValuedAttr<TypedArrayAttrBase<Mtp_RecipeStepAttr, "recipe">, "{}">:$recipe);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$source (`recipe` $recipe^)? attr-dict `:` type($result)";
}

def Mtp_StateOp : Mtp_Op<"state", [Pure, ComputedRule,
    DeclareOpInterfaceMethods<Mtp_LocalizeOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A stored tensor that belongs to a piece of a parameter, zero at first.";
  let description = [{
    An optimizer state or the accumulator of a gradient: kept from step to step,
    in the shape of the piece that `source` and `recipe` name. Its layout is its
    own (a state may be cut where the parameter is whole: ZeRO); an accumulator
    may be partial.

    ```mlir
    %m = mtp.state "exp_avg" of @c_attn.weight recipe [#mtp.step<slice, [1, 0, 768]>] : tensor<768x768xf32>
    ```

    Constraints:
    - The symbol is an `mtp.initializer`.
    - The recipe, applied to the initializer's shape, gives the result's shape.
  }];
  let arguments = (ins StrAttr:$name, FlatSymbolRefAttr:$source,
                       DefaultValuedAttr<TypedArrayAttrBase<Mtp_RecipeStepAttr, "recipe">, "{}">:$recipe);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$name `of` $source (`recipe` $recipe^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Mtp_StoreOp : Mtp_Op<"store", [ComputedRule, MemoryEffects<[MemWrite]>,
    DeclareOpInterfaceMethods<Mtp_LocalizeOpInterface>]> {
  let summary = "Replaces a stored tensor at the end of the step.";
  let description = [{
    `stored` is what an `mtp.parameter` or `mtp.state` gave in this step; later
    steps find `value` there.

    ```mlir
    mtp.store %new to %w : tensor<768x768xf32>, tensor<768x768xf32>
    ```

    Constraints:
    - `stored` comes from an `mtp.parameter` or `mtp.state`.
    - Both have the same type, layout included.
    - A stored tensor is replaced once.
  }];
  let arguments = (ins Mtp_Tensor:$value, Mtp_Tensor:$stored);
  let assemblyFormat = "$value `to` $stored attr-dict `:` type($value) `,` type($stored)";
  let hasVerifier = 1;
}

def Mtp_ConstantOp : Mtp_Op<"constant", [Pure, ConstantLike, Mtp_NoCotangent, ComputedRule,
    DeclareOpInterfaceMethods<Mtp_LocalizeOpInterface>]> {
  let summary = "A small constant or a splat.";
  let description = [{
    ```mlir
    %c = mtp.constant dense<0.5> : tensor<f32>
    ```
    A constant that is not a splat is whole in every dimension. The layout stands
    in the result type; the attribute's type has none.

    Constraints:
    - Shape and element type of the value are those of the result.
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Mtp_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value)>];
}

def Mtp_IotaOp : Mtp_Op<"iota", [Pure, Mtp_NoCotangent, ComputedRule,
    DeclareOpInterfaceMethods<Mtp_LocalizeOpInterface>]> {
  let summary = "Counts up along one dimension.";
  let description = [{
    `result[i0, ..] = i_dim`, as an integer or float.
    ```mlir
    %i = mtp.iota dim 1 : tensor<4x128xi64>
    ```
    Constraints:
    - `dim` exists in the result.
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "`dim` $dim attr-dict `:` type($result)";
}

def Mtp_StopGradientOp : Mtp_Op<"stop_gradient",
    [Pure, Mtp_NoCotangent, Mtp_Elementwise, ShardingRule<"(...)->(...)", "0">]> {
  let summary = "The identity whose gradient is zero.";
  let description = "`%y = mtp.stop_gradient %x : (tensor<4xf32>) -> tensor<4xf32>`";
  let arguments = (ins Mtp_Tensor:$input);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Mtp_BarrierOp : Mtp_Op<"barrier", [Mtp_Elementwise, ShardingRule<"(...)->(...)", "0">]> {
  let summary = "The identity that is not pure, so that CSE keeps clones apart.";
  let description = "Recomputed operations stand behind it: `%y = mtp.barrier %x : (tensor<4xf32>) -> tensor<4xf32>`";
  let arguments = (ins Mtp_Tensor:$input);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

#endif // MTP_MODULE_OPS_TD
