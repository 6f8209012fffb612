// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mtp-opt %s --spmd-chunk-products=parts=2 --split-input-file | FileCheck %s
// RUN: mtp-opt %s --spmd-chunk-products=capability=90 --split-input-file | FileCheck %s --check-prefix=PAYS

mtp.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.*]]: tensor<2x128x64xf32>, %[[W:.*]]: tensor<64x64xf32>)
// CHECK-NEXT: %[[X0:.*]] = mtp.strided_slice %[[X]] dim 0 start 0 step 1 : (tensor<2x128x64xf32>) -> tensor<1x128x64xf32>
// CHECK-NEXT: %[[Y0:.*]] = mtp.matmul %[[X0]], %[[W]] : (tensor<1x128x64xf32>, tensor<64x64xf32>) -> tensor<1x128x64xf32>
// CHECK-NEXT: %[[S0:.*]] = spmd.all_reduce %[[Y0]] ["tp"]  sum for "reduce_from" {node = "down", predicted_bytes = 65536 : i64, predicted_count = 1 : i64, spmd.part = 0 : i64} : tensor<1x128x64xf32> to tensor<1x128x64xf32>
// CHECK-NEXT: %[[X1:.*]] = mtp.strided_slice %[[X]] dim 0 start 1 step 1
// CHECK-NEXT: %[[Y1:.*]] = mtp.matmul %[[X1]], %[[W]]
// CHECK-NEXT: %[[S1:.*]] = spmd.all_reduce %[[Y1]] ["tp"]  sum for "reduce_from" {node = "down, part 2 of 2", predicted_bytes = 0 : i64, predicted_count = 0 : i64, spmd.part = 1 : i64}
// CHECK-NEXT: %[[Y:.*]] = mtp.concat dim 0 %[[S0]], %[[S1]] : (tensor<1x128x64xf32>, tensor<1x128x64xf32>) -> tensor<2x128x64xf32>
// CHECK-NEXT: return %[[Y]]

// Too small to pay.
// PAYS-LABEL: func.func @rows
// PAYS-NOT: mtp.concat
func.func @rows(%x: tensor<2x128x64xf32>, %w: tensor<64x64xf32>) -> tensor<2x128x64xf32> {
  %0 = mtp.matmul %x, %w : (tensor<2x128x64xf32>, tensor<64x64xf32>) -> tensor<2x128x64xf32>
  %1 = spmd.all_reduce %0 ["tp"] sum for "reduce_from" {node = "down", predicted_bytes = 65536 : i64, predicted_count = 1 : i64} : tensor<2x128x64xf32> to tensor<2x128x64xf32>
  return %1 : tensor<2x128x64xf32>
}

// -----

mtp.mesh @mesh <tp = 2>

// A layer with h 4096 and 8192 tokens in four parts on H100s.
// PAYS-LABEL: func.func @layer
// PAYS-COUNT-4: spmd.all_reduce %{{.*}}tensor<1x2048x4096xbf16>
// PAYS: mtp.concat dim 0
func.func @layer(%x: tensor<4x2048x8192xbf16>, %w: tensor<8192x4096xbf16>) -> tensor<4x2048x4096xbf16> {
  %0 = mtp.matmul %x, %w : (tensor<4x2048x8192xbf16>, tensor<8192x4096xbf16>) -> tensor<4x2048x4096xbf16>
  %1 = spmd.all_reduce %0 ["tp"] sum for "reduce_from" : tensor<4x2048x4096xbf16> to tensor<4x2048x4096xbf16>
  return %1 : tensor<4x2048x4096xbf16>
}

// -----

mtp.mesh @mesh <tp = 2>

// Rows that don't divide, parts that begin anywhere, sums of the backward pass,
// maxima, and products that something else reads stay whole.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: mtp.strided_slice
func.func @whole(%x: tensor<3x128x64xf32>, %u: tensor<2x3x4xf32>, %b: tensor<2x128x64xf32>, %w: tensor<64x64xf32>, %v: tensor<4x4xf32>)
    -> (tensor<3x128x64xf32>, tensor<2x3x4xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>) {
  %0 = mtp.matmul %x, %w : (tensor<3x128x64xf32>, tensor<64x64xf32>) -> tensor<3x128x64xf32>
  %1 = spmd.all_reduce %0 ["tp"] sum for "reduce_from" : tensor<3x128x64xf32> to tensor<3x128x64xf32>
  %2 = mtp.matmul %u, %v : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
  %3 = spmd.all_reduce %2 ["tp"] sum for "reduce_from" : tensor<2x3x4xf32> to tensor<2x3x4xf32>
  %4 = mtp.matmul %b, %w : (tensor<2x128x64xf32>, tensor<64x64xf32>) -> tensor<2x128x64xf32>
  %5 = spmd.all_reduce %4 ["tp"] sum for "reduce_from" in "backward" : tensor<2x128x64xf32> to tensor<2x128x64xf32>
  %6 = mtp.matmul %b, %w : (tensor<2x128x64xf32>, tensor<64x64xf32>) -> tensor<2x128x64xf32>
  %7 = spmd.all_reduce %6 ["tp"] max for "reduce_max_from" : tensor<2x128x64xf32> to tensor<2x128x64xf32>
  %8 = mtp.matmul %b, %w {transpose_rhs} : (tensor<2x128x64xf32>, tensor<64x64xf32>) -> tensor<2x128x64xf32>
  %9 = spmd.all_reduce %8 ["tp"] sum for "reduce_from" : tensor<2x128x64xf32> to tensor<2x128x64xf32>
  return %1, %3, %5, %7, %9, %8 : tensor<3x128x64xf32>, tensor<2x3x4xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>
}
