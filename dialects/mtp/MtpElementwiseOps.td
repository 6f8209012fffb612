// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MtpElementwiseOps.td - elementwise ops ------------------------------===//
#ifndef MTP_ELEMENTWISE_OPS_TD
#define MTP_ELEMENTWISE_OPS_TD

include "dialects/mtp/MtpDialect.td"

/// One operand; result has its shape and element type.
class Mtp_UnaryOp<string mnemonic, string sum, string formula, string linear = "">
    : Mtp_Op<mnemonic, [Pure, Mtp_Elementwise, ShardingRule<"(...)->(...)", linear>]> {
  let summary = sum;
  let description = "`" # formula # "`, elementwise.\n\n```mlir\n%y = mtp." # mnemonic #
    " %x : (tensor<4xf32>) -> tensor<4xf32>\n```\n";
  let arguments = (ins Mtp_Tensor:$input);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Mtp_NegOp : Mtp_UnaryOp<"neg", "Negation.", "y = -x", "0">;
def Mtp_AbsOp : Mtp_UnaryOp<"abs", "Absolute value.", "y = |x|">;
def Mtp_SignOp : Mtp_UnaryOp<"sign", "Sign: -1, 0, 1; NaN stays.", "y = sign(x)">;
def Mtp_ExpOp : Mtp_UnaryOp<"exp", "Exponential.", "y = e^x">;
def Mtp_LogOp : Mtp_UnaryOp<"log", "Natural logarithm.", "y = ln x">;
def Mtp_SqrtOp : Mtp_UnaryOp<"sqrt", "Square root.", "y = x^(1/2)">;
def Mtp_RsqrtOp : Mtp_UnaryOp<"rsqrt", "Reciprocal square root.", "y = x^(-1/2)">;
def Mtp_ReciprocalOp : Mtp_UnaryOp<"reciprocal", "Reciprocal.", "y = 1 / x">;
def Mtp_ErfOp : Mtp_UnaryOp<"erf", "Error function.", "y = erf x">;
def Mtp_TanhOp : Mtp_UnaryOp<"tanh", "Hyperbolic tangent.", "y = tanh x">;
def Mtp_SigmoidOp : Mtp_UnaryOp<"sigmoid", "Logistic function.", "y = 1 / (1 + e^-x)">;
def Mtp_ReluOp : Mtp_UnaryOp<"relu", "Rectifier; NaN stays.", "y = max(x, 0)">;
def Mtp_SiluOp : Mtp_UnaryOp<"silu", "Sigmoid linear unit.", "y = x / (1 + e^-x)">;
def Mtp_SinOp : Mtp_UnaryOp<"sin", "Sine.", "y = sin x">;
def Mtp_CosOp : Mtp_UnaryOp<"cos", "Cosine.", "y = cos x">;
def Mtp_FloorOp : Mtp_UnaryOp<"floor", "Largest integer not above.", "y = floor x">;
def Mtp_CeilOp : Mtp_UnaryOp<"ceil", "Smallest integer not below.", "y = ceil x">;
def Mtp_RoundOp : Mtp_UnaryOp<"round", "Nearest integer, halves to even.", "y = round x">;
def Mtp_NotOp : Mtp_UnaryOp<"not", "Logical not of booleans.", "y = !x">;

def Mtp_GeluOp : Mtp_Op<"gelu", [Pure, Mtp_Elementwise, ShardingRule<"(...)->(...)">]> {
  let summary = "Gaussian error linear unit, exact or by tanh.";
  let description = [{
    `x * (1 + erf(x / sqrt 2)) / 2`; with `tanh`:
    `x * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`.
    ```mlir
    %y = mtp.gelu %x {tanh} : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Mtp_Tensor:$input, UnitAttr:$tanh);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

/// A boolean result from one operand.
class Mtp_ActivationGradientOp<string mnemonic, string sum, dag extra>
    : Mtp_Op<mnemonic, [Pure, Mtp_Elementwise, ShardingRule<"(...),(...)->(...)", "1">]> {
  let summary = sum;
  let description = "The cotangent of the operand: `f'(x) · g`, linear in g.\n\n```mlir\n%dx = mtp." # mnemonic #
    " %x, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n```\n";
  let arguments = !con((ins Mtp_Tensor:$input, Mtp_Tensor:$cotangent), extra);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input `,` $cotangent attr-dict `:` functional-type(operands, results)";
}
def Mtp_GeluGradientOp : Mtp_ActivationGradientOp<"gelu_gradient",
  "Gradient of `mtp.gelu`.", (ins UnitAttr:$tanh)>;
def Mtp_SiluGradientOp : Mtp_ActivationGradientOp<"silu_gradient",
  "Gradient of `mtp.silu`.", (ins)>;

def Mtp_PhiloxOp : Mtp_Op<"philox",
    [Pure, Mtp_NoCotangent, Mtp_Elementwise, ShardingRule<"(...),(...),(...)->(...)">]> {
  let summary = "Counter-based random bits: 32 of them an element.";
  let description = [{
    The first word of Philox4x32-10 (Salmon et al., SC 2011) with the counter
    (low and high half of `index`, low half of `step`, `stream`) and the key
    (low and high half of `seed`), as an integer from 0 to 2^32 - 1. The bits
    are a function of seed, step, stream and global element index alone, so
    they are the same on any mesh and in recomputation.
    ```mlir
    %r = mtp.philox %index, %seed, %step {stream = 3 : i64} : (tensor<4x8xi64>, tensor<i64>, tensor<i64>) -> tensor<4x8xi64>
    ```
    Constraints:
    - All tensors have elements of type i64; seed and step are scalars.
  }];
  let arguments = (ins Mtp_Tensor:$index, Mtp_Tensor:$seed, Mtp_Tensor:$step, I64Attr:$stream);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$index `,` $seed `,` $step attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mtp_DropoutOp : Mtp_Op<"dropout",
    [Pure, Mtp_Elementwise, ShardingRule<"(...)->(...),(...)">]> {
  let summary = "Dropout as the model has it; `mtp-expand-dropout` replaces it.";
  let description = [{
    With `training` each element is zero with probability `ratio`, otherwise
    divided by 1 - ratio; the second result is true where an element is kept.
    `stream` is the op's identity in the generator, given at import. Without
    `training` it is the identity.
    ```mlir
    %y, %m = mtp.dropout %x {ratio = 0.1 : f64, stream = 3 : i64, training} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>)
    ```
    Constraints:
    - `ratio` is at least 0 and below 1.
  }];
  let arguments = (ins Mtp_Tensor:$input, F64Attr:$ratio, I64Attr:$stream, UnitAttr:$training);
  let results = (outs Mtp_Tensor:$result, Mtp_Tensor:$mask);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

class Mtp_TestOp<string mnemonic, string sum>
    : Mtp_Op<mnemonic, [Pure, Mtp_Elementwise, ShardingRule<"(...)->(...)">]> {
  let summary = sum;
  let description = "```mlir\n%y = mtp." # mnemonic # " %x : (tensor<4xf32>) -> tensor<4xi1>\n```\n";
  let arguments = (ins Mtp_Tensor:$input);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def Mtp_IsNanOp : Mtp_TestOp<"is_nan", "True where the element is NaN.">;
def Mtp_IsInfOp : Mtp_TestOp<"is_inf", "True where the element is infinite.">;

/// Two operands with numpy broadcast; result has their element type.
class Mtp_BinaryOp<string mnemonic, string sum, string linear = "", list<Trait> traits = []>
    : Mtp_Op<mnemonic, !listconcat([Pure, Mtp_Elementwise,
        ShardingRule<"(...),(...)->(...)", linear>], traits)> {
  let summary = sum;
  let description = "Elementwise with numpy broadcast.\n\n```mlir\n%z = mtp." # mnemonic #
    " %x, %y : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>\n```\n";
  let arguments = (ins Mtp_Tensor:$lhs, Mtp_Tensor:$rhs);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Mtp_AddOp : Mtp_BinaryOp<"add", "Sum.", "0&1">;
def Mtp_SubOp : Mtp_BinaryOp<"sub", "Difference.", "0&1">;
def Mtp_MulOp : Mtp_BinaryOp<"mul", "Product.", "0|1">;
def Mtp_DivOp : Mtp_BinaryOp<"div", "Quotient; integers round toward zero.", "0">;
def Mtp_PowOp : Mtp_BinaryOp<"pow", "Power.">;
def Mtp_ModOp : Mtp_BinaryOp<"mod", "Remainder with the sign of the divisor (integers and floats).">;
def Mtp_FmodOp : Mtp_BinaryOp<"fmod", "Remainder with the sign of the dividend.">;
def Mtp_AndOp : Mtp_BinaryOp<"and", "Logical (booleans) or bitwise and.">;
def Mtp_OrOp : Mtp_BinaryOp<"or", "Logical (booleans) or bitwise or.">;
def Mtp_XorOp : Mtp_BinaryOp<"xor", "Logical (booleans) or bitwise exclusive or.">;

class Mtp_ExtremumOp<string mnemonic, string sum>
    : Mtp_Op<mnemonic, [Pure, Mtp_Elementwise, ComputedRule]> {
  let summary = sum;
  let description = "Elementwise with numpy broadcast; NaN wins. Partial maxima (minima) of both operands pass through.\n\n```mlir\n%z = mtp." # mnemonic #
    " %x, %y : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>\n```\n";
  let arguments = (ins Mtp_Tensor:$lhs, Mtp_Tensor:$rhs);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}
def Mtp_MaxOp : Mtp_ExtremumOp<"max", "Larger of two.">;
def Mtp_MinOp : Mtp_ExtremumOp<"min", "Smaller of two.">;

def Mtp_CompareOp : Mtp_Op<"compare", [Pure, Mtp_Elementwise, ShardingRule<"(...),(...)->(...)">]> {
  let summary = "Comparison; false if either is NaN, except `ne`.";
  let description = [{
    ```mlir
    %m = mtp.compare le %x, %y : (tensor<8x4xi64>, tensor<4xi64>) -> tensor<8x4xi1>
    ```
  }];
  let arguments = (ins Mtp_CompareAttr:$predicate, Mtp_Tensor:$lhs, Mtp_Tensor:$rhs);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Mtp_SelectOp : Mtp_Op<"select", [Pure, Mtp_Elementwise, ShardingRule<"(...),(...),(...)->(...)", "1&2">]> {
  let summary = "Takes elements of one of two tensors by a boolean.";
  let description = [{
    Jointly linear in the branches.
    ```mlir
    %y = mtp.select %c, %a, %b : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Mtp_Tensor:$condition, Mtp_Tensor:$on_true, Mtp_Tensor:$on_false);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` functional-type(operands, results)";
}

def Mtp_ConvertOp : Mtp_Op<"convert", [Pure, Mtp_Elementwise, ComputedRule]> {
  let summary = "Changes the element type.";
  let description = [{
    Float to integer truncates toward zero; to boolean is `x != 0` (NaN is true).
    A widening float conversion is linear; no other is, except that with `terms`
    the terms of a partial sum are rounded one by one, as the cotangent of a
    widened value is.
    ```mlir
    %y = mtp.convert %x : (tensor<4xi64>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Mtp_Tensor:$input, UnitAttr:$terms);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

#endif // MTP_ELEMENTWISE_OPS_TD
