// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mtp-opt %s --spmd-split-reductions | FileCheck %s

// CHECK-LABEL: func.func @all_elements
// CHECK-SAME: %[[X:.*]]: tensor<4096x1024xf32>
// CHECK-NEXT: %[[CUT:.*]] = mtp.reshape %[[X]] : (tensor<4096x1024xf32>) -> tensor<512x8x1024xf32>
// CHECK-NEXT: %[[PARTS:.*]] = mtp.reduce_sum %[[CUT]] dims [1, 2] : (tensor<512x8x1024xf32>) -> tensor<512xf32>
// CHECK-NEXT: %[[Y:.*]] = mtp.reduce_sum %[[PARTS]] dims [0] : (tensor<512xf32>) -> tensor<f32>
// CHECK-NEXT: return %[[Y]]
func.func @all_elements(%x: tensor<4096x1024xf32>) -> tensor<f32> {
  %0 = mtp.reduce_sum %x dims [0, 1] : (tensor<4096x1024xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// A sum down columns: 24 blocks of 32 columns before.
// CHECK-LABEL: func.func @gradient_of_a_bias
// CHECK: mtp.reduce_sum %{{.*}} dims [1, 2] : (tensor<16x1x512x768xf32>) -> tensor<16x768xf32>
// CHECK: mtp.reduce_sum %{{.*}} dims [0] : (tensor<16x768xf32>) -> tensor<768xf32>
func.func @gradient_of_a_bias(%x: tensor<16x512x768xf32>) -> tensor<768xf32> {
  %0 = mtp.reduce_sum %x dims [0, 1] : (tensor<16x512x768xf32>) -> tensor<768xf32>
  return %0 : tensor<768xf32>
}

// Parts of 16 bits would lose what the sum has; kept dimensions come back.
// CHECK-LABEL: func.func @sum_of_bf16
// CHECK: mtp.convert %{{.*}} : (tensor<4x32768xbf16>) -> tensor<4x32768xf32>
// CHECK: mtp.reduce_sum %{{.*}} dims [2] : (tensor<4x8x4096xf32>) -> tensor<4x8xf32>
// CHECK: mtp.reduce_sum %{{.*}} dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK: mtp.convert %{{.*}} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK: mtp.reshape %{{.*}} : (tensor<4xbf16>) -> tensor<4x1xbf16>
func.func @sum_of_bf16(%x: tensor<4x32768xbf16>) -> tensor<4x1xbf16> {
  %0 = mtp.reduce_sum %x dims [1] {keep} : (tensor<4x32768xbf16>) -> tensor<4x1xbf16>
  return %0 : tensor<4x1xbf16>
}

// CHECK-LABEL: func.func @maximum
// CHECK: mtp.reduce_max %{{.*}} dims [1] : (tensor<8x4096xf16>) -> tensor<8xf16>
// CHECK: mtp.reduce_max %{{.*}} dims [0] : (tensor<8xf16>) -> tensor<f16>
func.func @maximum(%x: tensor<32768xf16>) -> tensor<f16> {
  %0 = mtp.reduce_max %x dims [0] : (tensor<32768xf16>) -> tensor<f16>
  return %0 : tensor<f16>
}

// Rows enough, or too little work, or no factor.
// CHECK-LABEL: func.func @as_they_are
// CHECK-NOT: mtp.reshape
// CHECK: return
func.func @as_they_are(%x: tensor<4096x50257xf32>, %y: tensor<8192xf32>, %z: tensor<32771xf32>) -> (tensor<4096xf32>, tensor<f32>, tensor<f32>) {
  %0 = mtp.reduce_sum %x dims [1] : (tensor<4096x50257xf32>) -> tensor<4096xf32>
  %1 = mtp.reduce_sum %y dims [0] : (tensor<8192xf32>) -> tensor<f32>
  %2 = mtp.reduce_sum %z dims [0] : (tensor<32771xf32>) -> tensor<f32>
  return %0, %1, %2 : tensor<4096xf32>, tensor<f32>, tensor<f32>
}
