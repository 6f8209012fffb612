// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mtp-opt %s --spmd-split-epilogues | FileCheck %s

// CHECK-LABEL: func.func @silu
// CHECK: %[[Y:.*]] = spmd.matmul %{{.*}}, %{{.*}} bias %{{.*}} activation none {transpose_rhs}
// CHECK: %[[Z:.*]] = mtp.silu %[[Y]]
// CHECK: return %[[Z]], %[[Z]]
func.func @silu(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %0 = spmd.matmul %x, %w bias %b activation silu {transpose_rhs} : (tensor<8x4xf32>, tensor<6x4xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  return %0, %0 : tensor<8x6xf32>, tensor<8x6xf32>
}

// CHECK-LABEL: func.func @relu
// CHECK: %[[Y:.*]] = spmd.matmul %{{.*}}, %{{.*}} activation none
// CHECK: mtp.relu %[[Y]]
func.func @relu(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %0 = spmd.matmul %x, %w activation relu : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// Both gelus are ops: whether cuBLASLt takes the one by tanh along is measured.
// CHECK-LABEL: func.func @gelu
// CHECK: %[[Y:.*]] = spmd.matmul %{{.*}}, %{{.*}} activation none
// CHECK: %[[Z:.*]] = mtp.gelu %[[Y]] :
// CHECK: %[[V:.*]] = spmd.matmul %[[Z]], %{{.*}} activation none
// CHECK: mtp.gelu %[[V]] {tanh}
func.func @gelu(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %v: tensor<6x6xf32>) -> tensor<8x6xf32> {
  %0 = spmd.matmul %x, %w activation gelu_erf : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %1 = spmd.matmul %0, %v activation gelu_tanh : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}
