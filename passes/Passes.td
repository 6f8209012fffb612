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

#endif // MTP_PASSES_TD
