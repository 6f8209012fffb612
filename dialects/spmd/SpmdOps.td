// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SpmdOps.td - rank data, blocks, fused regions -----------------------===//
#ifndef SPMD_OPS_TD
#define SPMD_OPS_TD

include "dialects/spmd/SpmdDialect.td"

//===----------------------------------------------------------------------===//
// What differs from rank to rank
//===----------------------------------------------------------------------===//

def Spmd_ParameterOp : Spmd_Op<"parameter", [Pure,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "This rank's block of a stored tensor.";
  let description = [{
    The loader applies the recipe to the initializer, converts it to the element
    type, cuts it by the layout and fills padding with zero. Each rank loads only
    its block. With `state` it is a tensor of the piece's shape that is kept from
    step to step and is zero at first: an optimizer state, an accumulator.

    ```mlir
    %w = spmd.parameter @w recipe [#mtp.step<"transpose", [1, 0]>] layout #mtp.layout<@mesh, tp = S(1)> global tensor<8x16xf32> : tensor<8x8xf32>
    ```

    Constraints:
    - The symbol is an `mtp.initializer`.
    - The result is the block that the layout gives of the global type.
  }];
  let arguments = (ins FlatSymbolRefAttr:$source,
                       DefaultValuedAttr<TypedArrayAttrBase<Mtp_RecipeStepAttr, "recipe">, "{}">:$recipe,
                       Mtp_LayoutAttr:$layout,
                       TypeAttrOf<AnyRankedTensor>:$global_type,
                       OptionalAttr<StrAttr>:$state);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = [{
    (`state` $state^ `of`)? $source (`recipe` $recipe^)? `layout` qualified($layout) `global` $global_type attr-dict `:` type($result)
  }];
}

def Spmd_StoreOp : Spmd_Op<"store", [MemoryEffects<[MemWrite]>, AllTypesMatch<["value", "stored"]>]> {
  let summary = "Writes this rank's block of a stored tensor, for the next step.";
  let description = [{
    ```mlir
    spmd.store %new to %w : tensor<8x8xf32>
    ```

    Constraints:
    - `stored` comes from an `spmd.parameter`, and is written once.
    - Both have the same type.
  }];
  let arguments = (ins Mtp_Tensor:$value, Mtp_Tensor:$stored);
  let assemblyFormat = "$value `to` $stored attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Spmd_RankValueOp : Spmd_Op<"rank_value", [Pure]> {
  let summary = "A scalar that the runtime computes for each rank.";
  let description = [{
    For the block that this rank has of a dimension: `offset`, the position of
    its first element in the whole dimension; `valid`, how many of its elements
    exist, the rest, at the end, being padding. `coordinate`: the rank's position
    on the one axis of the cut, whose extent counts for nothing.

    ```mlir
    %o = spmd.rank_value offset <101 by ["tp"]>
    %v = spmd.rank_value valid <1920 by ["dp", "tp"] unit 64>
    %c = spmd.rank_value coordinate <0 by ["tp"]>
    ```

    Constraints:
    - The axes exist in the module's mesh, and there is at least one.
    - A coordinate is of one axis that is not refined.
  }];
  let arguments = (ins Spmd_RankValueKindAttr:$kind, Spmd_CutAttr:$cut);
  let results = (outs Spmd_RankScalar:$result);
  let assemblyFormat = "$kind $cut attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Blocks, without communication
//===----------------------------------------------------------------------===//

def Spmd_MaskTailOp : Spmd_Op<"mask_tail", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Replaces padding by the neutral element of a reduction.";
  let description = [{
    Elements whose index in `dim` is `valid` or more become `neutral`, by
    selection: whatever padding holds, NaN included, is gone.

    ```mlir
    %y = spmd.mask_tail %x, %v dim 1 neutral 0.0 : f32 in tensor<8x4xf32>
    ```

    Constraints:
    - `dim` exists in the tensor.
    - `neutral` has the element type.
  }];
  let arguments = (ins Mtp_Tensor:$input, Spmd_RankScalar:$valid, I64Attr:$dim,
                       TypedAttrInterface:$neutral);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `,` $valid `dim` $dim `neutral` $neutral attr-dict `in` type($result)";
  let hasVerifier = 1;
}

def Spmd_TakeBlockOp : Spmd_Op<"take_block", [Pure]> {
  let summary = "Copies a block out of one dimension.";
  let description = [{
    `result[.., i, ..] = input[.., offset + i, ..]`, zero where that lies past the
    end of the input.

    ```mlir
    %y = spmd.take_block %x, %o dim 1 : tensor<8x6xf32> to tensor<8x3xf32>
    ```

    Constraints:
    - `dim` exists; both types differ only in it.
  }];
  let arguments = (ins Mtp_Tensor:$input, Spmd_RankScalar:$offset, I64Attr:$dim);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `,` $offset `dim` $dim attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
}

def Spmd_PlaceBlockOp : Spmd_Op<"place_block", [Pure]> {
  let summary = "Places a block into zeros.";
  let description = [{
    `result[.., i, ..]` is `input[.., i - offset, ..]` where 0 <= i - offset <
    valid, else zero.

    ```mlir
    %y = spmd.place_block %x, %o, %v dim 1 : tensor<8x3xf32> to tensor<8x6xf32>
    ```

    Constraints:
    - `dim` exists; both types differ only in it.
  }];
  let arguments = (ins Mtp_Tensor:$input, Spmd_RankScalar:$offset, Spmd_RankScalar:$valid,
                       I64Attr:$dim);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `,` $offset `,` $valid `dim` $dim attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
}

def Spmd_KeepOnRootOp : Spmd_Op<"keep_on_root", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Keeps a value where a coordinate is zero, else gives zeros.";
  let description = [{
    ```mlir
    %c = spmd.rank_value coordinate <0 by ["tp"]>
    %y = spmd.keep_on_root %x, %c : tensor<8xf32>
    ```
  }];
  let arguments = (ins Mtp_Tensor:$input, Spmd_RankScalar:$coordinate);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `,` $coordinate attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Library calls with an epilogue
//===----------------------------------------------------------------------===//

def Spmd_MatmulOp : Spmd_Op<"matmul", [Pure]> {
  let summary = "A matrix product whose rows get a bias and an activation before they are stored.";
  let description = [{
    `activation(lhs rhs + bias)`; the product is that of `mtp.matmul`.

    ```mlir
    %y = spmd.matmul %x, %w bias %b activation gelu_tanh : (tensor<2x8x64xf32>, tensor<64x256xf32>, tensor<256xf32>) -> tensor<2x8x256xf32>
    ```

    Constraints:
    - Operands have rank 2 or more; the contracted sizes agree.
    - The result ends with the rows of lhs and the columns of rhs.
    - The bias has the size and element type of the result's last dimension.
  }];
  let arguments = (ins Mtp_Tensor:$lhs, Mtp_Tensor:$rhs, Optional<Mtp_Tensor>:$bias,
                       Spmd_ActivationAttr:$activation,
                       UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`bias` $bias^)? `activation` $activation attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Fused regions
//===----------------------------------------------------------------------===//

def Spmd_FusedOp : Spmd_Op<"fused", [IsolatedFromAbove, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"::mtp::spmd::YieldOp">]> {
  let summary = "Ops that become one kernel.";
  let description = [{
    Device-neutral. The region takes the operands as arguments and yields the
    results; nothing else comes in.

    ```mlir
    %y = spmd.fused(%x, %b) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
    ^bb0(%0: tensor<8x4xf32>, %1: tensor<4xf32>):
      %2 = mtp.add %0, %1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
      %3 = mtp.gelu %2 : (tensor<8x4xf32>) -> tensor<8x4xf32>
      spmd.yield %3 : tensor<8x4xf32>
    }
    ```

    Constraints:
    - Block arguments have the types of the operands, yielded values those of the
      results.
    - The region holds no collective.
  }];
  let arguments = (ins Variadic<Mtp_Tensor>:$inputs);
  let results = (outs Variadic<Mtp_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) $body";
  let hasRegionVerifier = 1;
}

def Spmd_YieldOp : Spmd_Op<"yield", [Pure, Terminator, HasParent<"::mtp::spmd::FusedOp">]> {
  let summary = "Ends a fused region and gives its results.";
  let description = "`spmd.yield %0 : tensor<8xf32>`";
  let arguments = (ins Variadic<Mtp_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

include "dialects/spmd/SpmdCollectiveOps.td"

#endif // SPMD_OPS_TD
