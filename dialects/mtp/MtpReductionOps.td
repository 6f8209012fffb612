// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MtpReductionOps.td - reductions, softmax, norms ---------------------===//
#ifndef MTP_REDUCTION_OPS_TD
#define MTP_REDUCTION_OPS_TD

include "dialects/mtp/MtpDialect.td"

class Mtp_ReduceOp<string mnemonic, string sum>
    : Mtp_Op<mnemonic, [Pure, ComputedRule]> {
  let summary = sum;
  let description = "Reduced dimensions stay with size 1 if `keep` is given. (A mean is a sum times a constant: its divisor is global.)\n\n```mlir\n%y = mtp." # mnemonic #
    " %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>\n```\nConstraints:\n- `dims` are distinct, ascending dimensions of the operand.\n";
  let arguments = (ins Mtp_Tensor:$input, DenseI64ArrayAttr:$dims, UnitAttr:$keep);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `dims` $dims attr-dict `:` functional-type(operands, results)";
}
def Mtp_ReduceSumOp : Mtp_ReduceOp<"reduce_sum", "Sum over dimensions.">;
def Mtp_ReduceMaxOp : Mtp_ReduceOp<"reduce_max", "Maximum over dimensions; NaN wins.">;
def Mtp_ReduceMinOp : Mtp_ReduceOp<"reduce_min", "Minimum over dimensions; NaN wins.">;
def Mtp_ReduceProdOp : Mtp_ReduceOp<"reduce_prod", "Product over dimensions, which are whole.">;

class Mtp_ArgOp<string mnemonic, string sum> : Mtp_Op<mnemonic, [Pure, ComputedRule]> {
  let summary = sum;
  let description = "The dimension is whole and dropped; the first of equal elements wins, with `last` the last.\n\n```mlir\n%y = mtp." # mnemonic #
    " %x dim 1 : (tensor<8x4xf32>) -> tensor<8xi64>\n```\n";
  let arguments = (ins Mtp_Tensor:$input, I64Attr:$dim, UnitAttr:$last);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` functional-type(operands, results)";
}
def Mtp_ArgMaxOp : Mtp_ArgOp<"argmax", "Index of the largest element.">;
def Mtp_ArgMinOp : Mtp_ArgOp<"argmin", "Index of the smallest element.">;

def Mtp_TopKOp : Mtp_Op<"topk", [Pure, ComputedRule]> {
  let summary = "The k largest (or smallest) elements of a dimension and their indices.";
  let description = [{
    Sorted; equal elements by ascending index. k is the result's size.
    ```mlir
    %v, %i = mtp.topk %x dim 1 : (tensor<8x4xf32>) -> (tensor<8x2xf32>, tensor<8x2xi64>)
    ```
    Constraints:
    - k does not exceed the dimension's size.
  }];
  let arguments = (ins Mtp_Tensor:$input, I64Attr:$dim, UnitAttr:$smallest);
  let results = (outs Mtp_Tensor:$values, Mtp_Tensor:$indices);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mtp_CumsumOp : Mtp_Op<"cumsum", [Pure, ComputedRule]> {
  let summary = "Running sum along a dimension, which is whole.";
  let description = [{
    `exclusive` leaves the element itself out; `reverse` runs from the end.
    ```mlir
    %y = mtp.cumsum %x dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Mtp_Tensor:$input, I64Attr:$dim, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` functional-type(operands, results)";
}

class Mtp_SoftmaxLikeOp<string mnemonic, string sum> : Mtp_Op<mnemonic, [Pure, ComputedRule]> {
  let summary = sum;
  let description = "The dimension is whole. The maximum is subtracted first.\n\n```mlir\n%y = mtp." # mnemonic #
    " %x dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>\n```\n";
  let arguments = (ins Mtp_Tensor:$input, I64Attr:$dim);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` functional-type(operands, results)";
}
def Mtp_SoftmaxOp : Mtp_SoftmaxLikeOp<"softmax", "Exponentials over their sum.">;
def Mtp_LogSoftmaxOp : Mtp_SoftmaxLikeOp<"log_softmax", "Logarithm of the softmax.">;

class Mtp_SoftmaxGradientOp<string mnemonic, string sum, string formula>
    : Mtp_Op<mnemonic, [Pure, ComputedRule]> {
  let summary = sum;
  let description = formula # ", from the result y and the cotangent g; the dimension is whole, linear in g.\n\n```mlir\n%dx = mtp." # mnemonic #
    " %y, %g dim 1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>\n```\n";
  let arguments = (ins Mtp_Tensor:$output, Mtp_Tensor:$cotangent, I64Attr:$dim);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$output `,` $cotangent `dim` $dim attr-dict `:` functional-type(operands, results)";
}
def Mtp_SoftmaxGradientOp : Mtp_SoftmaxGradientOp<"softmax_gradient",
  "Gradient of `mtp.softmax`.", "`y · (g - sum(g · y))`">;
def Mtp_LogSoftmaxGradientOp : Mtp_SoftmaxGradientOp<"log_softmax_gradient",
  "Gradient of `mtp.log_softmax`.", "`g - e^y · sum(g)`">;

class Mtp_NormGradientOp<string mnemonic, string sum, string formula>
    : Mtp_Op<mnemonic, [Pure, ComputedRule]> {
  let summary = sum;
  let description = "The cotangent of the input, h = g · scale: " # formula #
    ". Normalized dimensions are whole; linear in g. (Those of scale and bias are sums of g · normalized input and of g.)\n\n```mlir\n%dx = mtp." # mnemonic #
    " %x, %s, %g {epsilon = 1.0e-5 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>, tensor<2x8x64xf32>) -> tensor<2x8x64xf32>\n```\n";
  let arguments = (ins Mtp_Tensor:$input, Mtp_Tensor:$scale, Mtp_Tensor:$cotangent, F64Attr:$epsilon);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `,` $scale `,` $cotangent attr-dict `:` functional-type(operands, results)";
}
def Mtp_LayerNormGradientOp : Mtp_NormGradientOp<"layer_norm_gradient",
  "Gradient of `mtp.layer_norm` with respect to its input.",
  "`r · (h - mean(h) - n · mean(h · n))` with n the normalized input and r = 1 / sqrt(var + epsilon)">;
def Mtp_RmsNormGradientOp : Mtp_NormGradientOp<"rms_norm_gradient",
  "Gradient of `mtp.rms_norm` with respect to its input.",
  "`r · (h - n · mean(h · n))` with n the normalized input and r = 1 / sqrt(mean(x²) + epsilon)">;

def Mtp_LayerNormOp : Mtp_Op<"layer_norm", [Pure, ComputedRule]> {
  let summary = "Normalizes the last dimensions to mean 0 and variance 1, then scale and bias.";
  let description = [{
    `(x - mean) / sqrt(var + epsilon) · scale + bias`, mean and variance over the
    last `scale` rank dimensions, which are whole. Statistics are taken in f32
    for f16 and bf16.
    ```mlir
    %y = mtp.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<2x8x64xf32>
    ```
    Constraints:
    - Scale and bias have the shape of the last dimensions.
  }];
  let arguments = (ins Mtp_Tensor:$input, Mtp_Tensor:$scale, Optional<Mtp_Tensor>:$bias, F64Attr:$epsilon);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `,` $scale (`,` $bias^)? attr-dict `:` functional-type(operands, results)";
}

def Mtp_RmsNormOp : Mtp_Op<"rms_norm", [Pure, ShardingRule<"(...,!d),(!d)->(...,!d)">]> {
  let summary = "Divides the last dimension by its root mean square, then scales.";
  let description = [{
    `x / sqrt(mean(x²) + epsilon) · scale`.
    ```mlir
    %y = mtp.rms_norm %x, %g {epsilon = 1.0e-6 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>) -> tensor<2x8x64xf32>
    ```
  }];
  let arguments = (ins Mtp_Tensor:$input, Mtp_Tensor:$scale, F64Attr:$epsilon);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `,` $scale attr-dict `:` functional-type(operands, results)";
}

def Mtp_RotaryOp : Mtp_Op<"rotary", [Pure, ComputedRule]> {
  let summary = "Rotary position embedding of the last dimension.";
  let description = [{
    x (..., s, d); cos and sin broadcast to (..., s, r/2) where r ≤ d is rotated
    and the rest is passed on. Without `interleaved` element i is paired with
    i + r/2, with it 2i with 2i + 1:
    `y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin`. d is whole; linear in x.
    ```mlir
    %y = mtp.rotary %x, %c, %s : (tensor<2x4x8x16xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) -> tensor<2x4x8x16xf32>
    ```
    Constraints:
    - cos and sin have one shape; twice their last size is at most d.
  }];
  let arguments = (ins Mtp_Tensor:$input, Mtp_Tensor:$cos, Mtp_Tensor:$sin, UnitAttr:$interleaved);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `,` $cos `,` $sin attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // MTP_REDUCTION_OPS_TD
