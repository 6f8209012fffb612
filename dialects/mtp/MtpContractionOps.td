// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MtpContractionOps.td - products, attention, convolution -------------===//
#ifndef MTP_CONTRACTION_OPS_TD
#define MTP_CONTRACTION_OPS_TD

include "dialects/mtp/MtpDialect.td"

defvar Flops = DeclareOpInterfaceMethods<Mtp_FlopsOpInterface>;

def Mtp_MatMulOp : Mtp_Op<"matmul", [Pure, ComputedRule, Flops]> {
  let summary = "Matrix product of the last two dimensions, numpy broadcast before them.";
  let description = [{
    Rule `(...,m,k),(...,k,n)->(...,m,n)`, linear in either operand. With
    `transpose_lhs` the left operand is (...,k,m), with `transpose_rhs` the right
    one is (...,n,k). f32 and bf16 accumulate in f32.
    ```mlir
    %y = mtp.matmul %x, %w : (tensor<2x8x64xf32>, tensor<64x256xf32>) -> tensor<2x8x256xf32>
    ```
    Constraints:
    - Operands have rank 2 or more; the contracted sizes agree.
  }];
  let arguments = (ins Mtp_Tensor:$lhs, Mtp_Tensor:$rhs,
                       UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Mtp_ConvolutionOp : Mtp_Op<"convolution", [Pure, ComputedRule, Flops]> {
  let summary = "Convolution as ONNX Conv.";
  let description = [{
    Input (n, c, spatial..), filter (o, c / groups, window..). With one group the
    channels c are contracted and linear in either operand; o is parallel;
    spatial and window dimensions are whole.
    ```mlir
    %y = mtp.convolution %x, %w {strides = array<i64: 16, 16>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x32x32xf32>, tensor<64x3x16x16xf32>) -> tensor<2x64x2x2xf32>
    ```
    Constraints:
    - Attributes have one entry (pads two) a spatial dimension; sizes agree.
  }];
  let arguments = (ins Mtp_Tensor:$input, Mtp_Tensor:$filter, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, I64Attr:$groups);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `,` $filter attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mtp_AttentionOp : Mtp_Op<"attention",
    [Pure, AttrSizedOperandSegments, ComputedRule, Flops,
     DeclareOpInterfaceMethods<Mtp_LocalizeOpInterface>]> {
  let summary = "Scaled dot-product attention that never stores the scores.";
  let description = [{
    `softmax(cap(scale · q kᵀ) + mask) v` over the last dimension, for q
    (b, h, s, d), k (b, hk, t, d), v (b, hk, t, e); query head i uses key head
    i / (h / hk). A float mask is added, a boolean one keeps where true; it
    broadcasts to (b, h, s, t). With `causal` query i sees keys j ≤ i + offset,
    where offset is `causal_offset` plus the optional operand `query_start` (a
    scalar, for blocks of queries). `softcap` c > 0 is c·tanh(x/c) before the
    mask. A row without any key gives 0 with `masked_row_zero`, the mean of all
    values with `masked_row_uniform` (equal finite scores), otherwise what the
    softmax of its scores gives (NaN where all are -inf). The second result is
    the logarithm of the sum of exponentials of a row, (b, h, s).

    Factors: b, key heads, query heads of a key head, s parallel; t, d and e are
    whole.
    ```mlir
    %y, %l = mtp.attention %q, %k, %v {scale = 0.125 : f64, causal} : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    ```
    Constraints:
    - q, k, v have rank 4; h is a multiple of hk.
    - The mask broadcasts to (b, h, s, t).
  }];
  let arguments = (ins Mtp_Tensor:$query, Mtp_Tensor:$key, Mtp_Tensor:$value,
                       Optional<Mtp_Tensor>:$mask, Optional<Mtp_Tensor>:$query_start,
                       F64Attr:$scale, UnitAttr:$causal,
                       DefaultValuedAttr<I64Attr, "0">:$causal_offset,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap,
                       UnitAttr:$masked_row_zero, UnitAttr:$masked_row_uniform);
  let results = (outs Mtp_Tensor:$result, Mtp_Tensor:$logsumexp);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`query_start` $query_start^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

def Mtp_WeightGradientOp : Mtp_Op<"weight_gradient",
    [Pure, ComputedRule, Flops, DeclareOpInterfaceMethods<Mtp_LocalizeOpInterface>]> {
  let summary = "Product that contracts all dimensions but the last.";
  let description = [{
    `result[k, n] = sum of x[.., k] · g[.., n]`: the cotangent of a weight that
    multiplies x. Leading dimensions are contracted, so that batch and sequence
    may be cut without a reshape; linear in either operand.
    ```mlir
    %dw = mtp.weight_gradient %x, %g : (tensor<2x8x64xf32>, tensor<2x8x256xf32>) -> tensor<64x256xf32>
    ```
    Constraints:
    - Both operands have the same rank, 1 or more, and the same leading sizes.
  }];
  let arguments = (ins Mtp_Tensor:$lhs, Mtp_Tensor:$rhs);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Mtp_AttentionGradientOp : Mtp_Op<"attention_gradient",
    [Pure, AttrSizedOperandSegments, ComputedRule, Flops,
     DeclareOpInterfaceMethods<Mtp_LocalizeOpInterface>]> {
  let summary = "Gradient of `mtp.attention`, from its results; stores no scores.";
  let description = [{
    Operands: those of the attention, its two results and the cotangent g of the
    first. Results: the cotangents of q, k, v and of the mask (its shape; a
    scalar without meaning if there is no float mask). With P = exp(scores -
    logsumexp): dv = Pᵀ g, dS = P · (g vᵀ - rowsum(g · result)), then through
    the softcap, dq = scale · dS k, dk = scale · dSᵀ q (Dao et al., 2022).
    Linear in g. Contracts s, and the query heads of a key head, for k and v.
    ```mlir
    %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v, %y, %l, %g {scale = 0.125 : f64, causal} : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<f32>)
    ```
    Constraints:
    - As `mtp.attention`; the cotangents have the shapes of their values.
  }];
  let arguments = (ins Mtp_Tensor:$query, Mtp_Tensor:$key, Mtp_Tensor:$value,
                       Optional<Mtp_Tensor>:$mask, Optional<Mtp_Tensor>:$query_start,
                       Mtp_Tensor:$output, Mtp_Tensor:$logsumexp, Mtp_Tensor:$cotangent,
                       F64Attr:$scale, UnitAttr:$causal,
                       DefaultValuedAttr<I64Attr, "0">:$causal_offset,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap,
                       UnitAttr:$masked_row_zero, UnitAttr:$masked_row_uniform);
  let results = (outs Mtp_Tensor:$query_gradient, Mtp_Tensor:$key_gradient,
                      Mtp_Tensor:$value_gradient, Mtp_Tensor:$mask_gradient);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`query_start` $query_start^)?
    `,` $output `,` $logsumexp `,` $cotangent attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

class Mtp_ConvolutionGradientOp<string mnemonic, string sum, string text>
    : Mtp_Op<mnemonic, [Pure, ComputedRule, Flops]> {
  let summary = sum;
  let description = text # "\nAttributes are those of `mtp.convolution`; linear in either operand.\n";
  let arguments = (ins Mtp_Tensor:$lhs, Mtp_Tensor:$cotangent, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, I64Attr:$groups);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$lhs `,` $cotangent attr-dict `:` functional-type(operands, results)";
}
def Mtp_ConvolutionInputGradientOp : Mtp_ConvolutionGradientOp<
  "convolution_input_gradient", "Cotangent of a convolution's input.",
  "From the filter (o, c / groups, window..) and the cotangent (n, o, spatial..) to (n, c, spatial..); contracts o.">;
def Mtp_ConvolutionFilterGradientOp : Mtp_ConvolutionGradientOp<
  "convolution_filter_gradient", "Cotangent of a convolution's filter.",
  "From the input (n, c, spatial..) and the cotangent (n, o, spatial..) to (o, c / groups, window..); contracts n.">;

#endif // MTP_CONTRACTION_OPS_TD
