// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two matrices with a GELU between them, as in every transformer layer:
//   build/bin/mtp-opt examples/mlp.mlir --mtp-shard="mesh=tp=2"
module {
  mtp.initializer @up : tensor<8x32xf32> {parameter, value = dense<0.5> : tensor<8x32xf32>}
  mtp.initializer @down : tensor<32x8xf32> {parameter, value = dense<0.25> : tensor<32x8xf32>}
  func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %up = mtp.parameter @up : tensor<8x32xf32>
    %down = mtp.parameter @down : tensor<32x8xf32>
    %0 = mtp.matmul %x, %up : (tensor<4x8xf32>, tensor<8x32xf32>) -> tensor<4x32xf32>
    %1 = mtp.gelu %0 : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %2 = mtp.matmul %1, %down : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
    return %2 : tensor<4x8xf32>
  }
}
