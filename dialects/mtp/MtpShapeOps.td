// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MtpShapeOps.td - ops that move elements -----------------------------===//
#ifndef MTP_SHAPE_OPS_TD
#define MTP_SHAPE_OPS_TD

include "dialects/mtp/MtpDialect.td"

class Mtp_MoveOp<string mnemonic, list<Trait> traits = []>
    : Mtp_Op<mnemonic, !listconcat([Pure, ComputedRule], traits)> {
  let results = (outs Mtp_Tensor:$result);
}

def Mtp_ReshapeOp : Mtp_MoveOp<"reshape"> {
  let summary = "Same elements in row-major order, another shape.";
  let description = [{
    Factored by walking both shapes' products: a merged dimension carries the
    factors of its parts, major first.
    ```mlir
    %y = mtp.reshape %x : (tensor<2x8x64xf32>) -> tensor<2x8x4x16xf32>
    ```
    Constraints:
    - Both shapes have the same number of elements.
  }];
  let arguments = (ins Mtp_Tensor:$input);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Mtp_TransposeOp : Mtp_MoveOp<"transpose"> {
  let summary = "Permutes dimensions: result dimension i is operand dimension perm[i].";
  let description = [{
    ```mlir
    %y = mtp.transpose %x [0, 2, 1] : (tensor<2x8x4xf32>) -> tensor<2x4x8xf32>
    ```
    Constraints:
    - `perm` is a permutation of the operand's dimensions.
  }];
  let arguments = (ins Mtp_Tensor:$input, DenseI64ArrayAttr:$perm);
  let assemblyFormat = "$input $perm attr-dict `:` functional-type(operands, results)";
}

def Mtp_BroadcastOp : Mtp_MoveOp<"broadcast"> {
  let summary = "Numpy broadcast to the result's shape.";
  let description = [{
    Dimensions are aligned from the right; the operand's sizes are those of the
    result or 1.
    ```mlir
    %y = mtp.broadcast %x : (tensor<4x1xf32>) -> tensor<2x4x8xf32>
    ```
    Constraints:
    - The operand's rank does not exceed the result's.
    - Each size is that of the result, or 1.
  }];
  let arguments = (ins Mtp_Tensor:$input);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Mtp_StridedSliceOp : Mtp_MoveOp<"strided_slice"> {
  let summary = "Elements start, start + step, .. of one dimension.";
  let description = [{
    The size is the result's. Steps may be negative. (`mtp.slice` is a conversion
    between layouts.)
    ```mlir
    %y = mtp.strided_slice %x dim 1 start 4 step 1 : (tensor<2x8xf32>) -> tensor<2x4xf32>
    ```
    Constraints:
    - `dim` exists, `step` is not zero.
    - First and last element lie in the operand.
  }];
  let arguments = (ins Mtp_Tensor:$input, I64Attr:$dim, I64Attr:$start, I64Attr:$step);
  let assemblyFormat = "$input `dim` $dim `start` $start `step` $step attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mtp_ConcatOp : Mtp_MoveOp<"concat"> {
  let summary = "Joins tensors along one dimension.";
  let description = [{
    Jointly linear in all operands; the joined dimension is whole.
    ```mlir
    %y = mtp.concat dim 1 %a, %b : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
    ```
    Constraints:
    - At least one operand; `dim` exists.
    - Sizes along `dim` add up to the result's.
  }];
  let arguments = (ins I64Attr:$dim, Variadic<Mtp_Tensor>:$inputs);
  let assemblyFormat = "`dim` $dim $inputs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mtp_PadOp : Mtp_MoveOp<"pad"> {
  let summary = "Adds elements of one value around a tensor.";
  let description = [{
    Linear if the value is zero. Negative counts are not allowed (slice instead).
    ```mlir
    %y = mtp.pad %x value 0.0 low [0, 1] high [0, 2] : (tensor<2x3xf32>) -> tensor<2x6xf32>
    ```
    Constraints:
    - `low` and `high` have one non-negative entry a dimension.
    - Each size grows by low + high.
  }];
  let arguments = (ins Mtp_Tensor:$input, F64Attr:$value, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let assemblyFormat = "$input `value` $value `low` $low `high` $high attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mtp_GatherOp : Mtp_MoveOp<"gather", [DeclareOpInterfaceMethods<Mtp_LocalizeOpInterface>]> {
  let summary = "Looks up slices of one dimension by index.";
  let description = [{
    `result[a.., i.., b..] = data[a.., indices[i..], b..]`; an embedding is
    `dim 0` of a table. Negative indices count from the end; an index outside of
    the dimension is a fault at run time. The looked-up dimension may be sharded
    (vocabulary parallel): ranks give zero for rows they do not hold.
    ```mlir
    %y = mtp.gather %table[%ids] dim 0 : (tensor<101x64xf32>, tensor<2x12xi64>) -> tensor<2x12x64xf32>
    ```
    Constraints:
    - `dim` exists in the data; indices are integers.
  }];
  let arguments = (ins Mtp_Tensor:$data, Mtp_Tensor:$indices, I64Attr:$dim);
  let assemblyFormat = "$data `[` $indices `]` `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mtp_GatherGradientOp : Mtp_MoveOp<"gather_gradient", [DeclareOpInterfaceMethods<Mtp_LocalizeOpInterface>]> {
  let summary = "Sums slices into rows by index: the gradient of `mtp.gather`.";
  let description = [{
    `result[a.., r, b..] = sum of g[a.., i.., b..] where indices[i..] = r`, in
    the order of the indices. Negative indices count from the end. The rows may
    be cut: a rank sums those it holds. Linear in g.
    ```mlir
    %dt = mtp.gather_gradient %ids, %g dim 0 : (tensor<2x12xi64>, tensor<2x12x64xf32>) -> tensor<101x64xf32>
    ```
    Constraints:
    - `dim` exists in the result; indices are integers.
  }];
  let arguments = (ins Mtp_Tensor:$indices, Mtp_Tensor:$cotangent, I64Attr:$dim);
  let assemblyFormat = "$indices `,` $cotangent `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def Mtp_GatherElementsOp : Mtp_MoveOp<"gather_elements"> {
  let summary = "Looks up elements along one dimension, one index an element.";
  let description = [{
    `result[.., i, ..] = data[.., indices[.., i, ..], ..]` (ONNX GatherElements).
    ```mlir
    %y = mtp.gather_elements %x[%i] dim 1 : (tensor<2x8xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Mtp_Tensor:$data, Mtp_Tensor:$indices, I64Attr:$dim);
  let assemblyFormat = "$data `[` $indices `]` `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def Mtp_GatherNdOp : Mtp_MoveOp<"gather_nd"> {
  let summary = "Looks up slices by index tuples.";
  let description = [{
    As ONNX GatherND with `batch_dims`: the last dimension of the indices is the
    tuple.
    ```mlir
    %y = mtp.gather_nd %x[%i] batch_dims 0 : (tensor<2x8xf32>, tensor<5x2xi64>) -> tensor<5xf32>
    ```
  }];
  let arguments = (ins Mtp_Tensor:$data, Mtp_Tensor:$indices, I64Attr:$batch_dims);
  let assemblyFormat = "$data `[` $indices `]` `batch_dims` $batch_dims attr-dict `:` functional-type(operands, results)";
}

def Mtp_ScatterElementsOp : Mtp_MoveOp<"scatter_elements"> {
  let summary = "Writes elements along one dimension by index.";
  let description = [{
    As ONNX ScatterElements.
    ```mlir
    %y = mtp.scatter_elements %x[%i], %u dim 0 combine add : (tensor<4xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Mtp_Tensor:$data, Mtp_Tensor:$indices, Mtp_Tensor:$updates,
                       I64Attr:$dim, Mtp_CombineAttr:$combine);
  let assemblyFormat = "$data `[` $indices `]` `,` $updates `dim` $dim `combine` $combine attr-dict `:` functional-type(operands, results)";
}

def Mtp_ScatterNdOp : Mtp_MoveOp<"scatter_nd"> {
  let summary = "Writes slices by index tuples.";
  let description = [{
    As ONNX ScatterND.
    ```mlir
    %y = mtp.scatter_nd %x[%i], %u combine none : (tensor<4xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Mtp_Tensor:$data, Mtp_Tensor:$indices, Mtp_Tensor:$updates, Mtp_CombineAttr:$combine);
  let assemblyFormat = "$data `[` $indices `]` `,` $updates `combine` $combine attr-dict `:` functional-type(operands, results)";
}

#endif // MTP_SHAPE_OPS_TD
