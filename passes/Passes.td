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
    %t = mtp.parameter @w recipe [#mtp.step<transpose, [1, 0]>] : tensor<64x256xf32>
    ```
  }];
}

#endif // MTP_PASSES_TD
