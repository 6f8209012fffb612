// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mtp-opt %s --spmd-overlap-collectives | FileCheck %s

mtp.mesh @mesh <tp = 2>

// The gradient of the weight doesn't wait for the sum, nor the sum for it.
// CHECK-LABEL: func.func @backward
// CHECK-NEXT: %[[DX:.*]] = mtp.matmul %{{.*}}, %{{.*}} {transpose_rhs}
// CHECK-NEXT: %[[SUM:.*]] = spmd.all_reduce %[[DX]] ["tp"]  sum for "reduce_from" in "backward" {spmd.overlaps}
// CHECK-NEXT: %[[DW:.*]] = mtp.matmul %{{.*}}, %{{.*}} {transpose_lhs}
// CHECK-NEXT: %[[Y:.*]] = mtp.neg %[[SUM]]
// CHECK-NEXT: return %[[Y]], %[[DW]]
func.func @backward(%g: tensor<8x4xf32>, %w: tensor<6x4xf32>, %x: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<6x4xf32>) {
  %0 = mtp.matmul %g, %w {transpose_rhs} : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %1 = mtp.matmul %x, %g {transpose_lhs} : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %2 = spmd.all_reduce %0 ["tp"] sum for "reduce_from" in "backward" : tensor<8x6xf32> to tensor<8x6xf32>
  %3 = mtp.neg %2 : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return %3, %1 : tensor<8x6xf32>, tensor<6x4xf32>
}

// What went behind one sum doesn't go behind the next, and sums keep their order.
// CHECK-LABEL: func.func @once
// CHECK-SAME: (%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK-NEXT: spmd.all_reduce %[[A]]
// CHECK-NEXT: mtp.exp %[[B]]
// CHECK-NEXT: spmd.all_reduce %[[B]]
// CHECK-NEXT: return
func.func @once(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = mtp.exp %b : (tensor<4xf32>) -> tensor<4xf32>
  %1 = spmd.all_reduce %a ["tp"] sum for "reduce_from" : tensor<4xf32> to tensor<4xf32>
  %2 = spmd.all_reduce %b ["tp"] sum for "reduce_from" : tensor<4xf32> to tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What a sum is made of stays before it.
// CHECK-LABEL: func.func @needed
// CHECK-NEXT: mtp.exp
// CHECK-NEXT: mtp.add
// CHECK-NEXT: spmd.all_reduce
func.func @needed(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mtp.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %1 = mtp.add %0, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = spmd.all_reduce %1 ["tp"] sum for "reduce_from" : tensor<4xf32> to tensor<4xf32>
  return %2 : tensor<4xf32>
}
