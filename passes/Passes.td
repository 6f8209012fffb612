// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Passes.td - all passes of mtp ---------------------------------------===//
#ifndef MTP_PASSES_TD
#define MTP_PASSES_TD

include "mlir/Pass/PassBase.td"

def MtpSimplify : Pass<"mtp-simplify", "::mlir::ModuleOp"> {
  let summary = "Bring the graph into the form that planning expects.";
  let description = [{
    Removes what hides how dimensions relate: chains of reshapes and transposes,
    explicit broadcasts, reshapes around products, weights that are transposed or
    sliced after they are loaded. Needed for a good plan, never for a right result.

    ```mlir
    %w = mtp.parameter @w : tensor<256x64xf32>
    %t = mtp.transpose %w [1, 0] : (tensor<256x64xf32>) -> tensor<64x256xf32>
    ```
    becomes
    ```mlir
    %t = mtp.parameter @w recipe [#mtp.step<"transpose", [1, 0]>] : tensor<64x256xf32>
    ```
  }];
}

def MtpRaise : Pass<"mtp-raise", "::mlir::ModuleOp"> {
  let summary = "Recognise composite ops in the decomposed forms of exporters.";
  let description = [{
    LayerNorm, RMSNorm, GELU (erf and tanh), SiLU, rotary embedding, and attention
    with its scale, masks, cap and repeated key heads. Only for speed: numbers
    are right without it.

    ```mlir
    %s = mtp.matmul %q, %k {transpose_rhs} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
    %c = mtp.mul %s, %scale : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
    %p = mtp.softmax %c dim 3 : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
    %y = mtp.matmul %p, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
    ```
    becomes
    ```mlir
    %y, %l = mtp.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    ```
  }];
}

def MtpConvertPrecision : Pass<"mtp-convert-precision", "::mlir::ModuleOp"> {
  let summary = "Compute in the precision that was asked for.";
  let description = [{
    f64: every float of the program becomes a double, conversions to float
    included; stored weights are widened when they are loaded. bf16 and f16:
    operands of matrix products are rounded to 16 bits and accumulated in f32; all
    else stays. f32: nothing changes.

    ```mlir
    %w = mtp.parameter @w : tensor<64x256xf32>
    %y = mtp.matmul %x, %w : (tensor<8x64xf32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    ```
    becomes, with `precision=bf16`,
    ```mlir
    %w = mtp.parameter @w : tensor<64x256xbf16>
    %r = mtp.convert %x : (tensor<8x64xf32>) -> tensor<8x64xbf16>
    %y = mtp.matmul %r, %w : (tensor<8x64xbf16>, tensor<64x256xbf16>) -> tensor<8x256xf32>
    ```
  }];
  let options = [Option<"precision", "precision", "std::string", "\"f32\"",
                        "f32, f64, bf16 or f16">];
}

#endif // MTP_PASSES_TD
