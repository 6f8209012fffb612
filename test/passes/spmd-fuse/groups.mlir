// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mtp-opt %s --spmd-fuse | FileCheck %s

mtp.mesh @mesh <tp = 2>

// Bias and activation between two products are one kernel.
// CHECK-LABEL: func.func @bias_and_activation_are_one_kernel(
// CHECK-SAME: %[[A0:[^ :]+]]: tensor<8x4xf32>, %[[A1:[^ :]+]]: tensor<4x6xf32>, %[[A2:[^ :]+]]: tensor<6xf32>, %[[A3:[^ :]+]]: tensor<6x4xf32>
// CHECK-NEXT: %[[V0:[^ :]+]] = mtp.matmul %[[A0]], %[[A1]] : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
// CHECK-NEXT: %[[V1:[^ :]+]] = spmd.fused(%[[V0]], %[[A2]]) : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32> {
// CHECK-NEXT: ^bb0(%[[A4:[^ :]+]]: tensor<8x6xf32>, %[[A5:[^ :]+]]: tensor<6xf32>):
// CHECK-NEXT: %[[V3:[^ :]+]] = mtp.add %[[A4]], %[[A5]] : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
// CHECK-NEXT: %[[V4:[^ :]+]] = mtp.gelu %[[V3]] : (tensor<8x6xf32>) -> tensor<8x6xf32>
// CHECK-NEXT: spmd.yield %[[V4]] : tensor<8x6xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V2:[^ :]+]] = mtp.matmul %[[V1]], %[[A3]] : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<8x4xf32>
func.func @bias_and_activation_are_one_kernel(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>, %v: tensor<6x4xf32>) -> tensor<8x4xf32> {
  %0 = mtp.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %1 = mtp.add %0, %b : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  %2 = mtp.gelu %1 : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %3 = mtp.matmul %2, %v : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// The residual sum is stored on the way; reshapes around the product are aliases.
// CHECK-LABEL: func.func @residual_sum_and_its_norm_share_a_kernel(
// CHECK-SAME: %[[A0:[^ :]+]]: tensor<2x8x4xf32>, %[[A1:[^ :]+]]: tensor<2x8x4xf32>, %[[A2:[^ :]+]]: tensor<4xf32>, %[[A3:[^ :]+]]: tensor<4xf32>, %[[A4:[^ :]+]]: tensor<4x4xf32>
// CHECK-NEXT: %[[V0:[^ :]+]]:2 = spmd.fused(%[[A0]], %[[A1]], %[[A2]], %[[A3]]) : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
// CHECK-NEXT: ^bb0(%[[A5:[^ :]+]]: tensor<2x8x4xf32>, %[[A6:[^ :]+]]: tensor<2x8x4xf32>, %[[A7:[^ :]+]]: tensor<4xf32>, %[[A8:[^ :]+]]: tensor<4xf32>):
// CHECK-NEXT: %[[V5:[^ :]+]] = mtp.add %[[A5]], %[[A6]] : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
// CHECK-NEXT: %[[V6:[^ :]+]] = mtp.layer_norm %[[V5]], %[[A7]], %[[A8]] {epsilon = 1.000000e-05 : f64} : (tensor<2x8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x8x4xf32>
// CHECK-NEXT: spmd.yield %[[V6]], %[[V5]] : tensor<2x8x4xf32>, tensor<2x8x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:[^ :]+]] = mtp.reshape %[[V0]]#0 : (tensor<2x8x4xf32>) -> tensor<16x4xf32>
// CHECK-NEXT: %[[V2:[^ :]+]] = mtp.matmul %[[V1]], %[[A4]] : (tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
// CHECK-NEXT: %[[V3:[^ :]+]] = mtp.reshape %[[V2]] : (tensor<16x4xf32>) -> tensor<2x8x4xf32>
// CHECK-NEXT: %[[V4:[^ :]+]] = spmd.fused(%[[V0]]#1, %[[V3]]) : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
// CHECK-NEXT: ^bb0(%[[A5:[^ :]+]]: tensor<2x8x4xf32>, %[[A6:[^ :]+]]: tensor<2x8x4xf32>):
// CHECK-NEXT: %[[V5:[^ :]+]] = mtp.add %[[A5]], %[[A6]] : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
// CHECK-NEXT: spmd.yield %[[V5]] : tensor<2x8x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V4]] : tensor<2x8x4xf32>
func.func @residual_sum_and_its_norm_share_a_kernel(%x: tensor<2x8x4xf32>, %y: tensor<2x8x4xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>, %w: tensor<4x4xf32>) -> tensor<2x8x4xf32> {
  %1 = mtp.add %x, %y : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %2 = mtp.layer_norm %1, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<2x8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x8x4xf32>
  %3 = mtp.reshape %2 : (tensor<2x8x4xf32>) -> tensor<16x4xf32>
  %4 = mtp.matmul %3, %w : (tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
  %5 = mtp.reshape %4 : (tensor<16x4xf32>) -> tensor<2x8x4xf32>
  %6 = mtp.add %1, %5 : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %6 : tensor<2x8x4xf32>
}

// Reductions over the same rows and what follows them are one kernel.
// CHECK-LABEL: func.func @softmax_in_parts_is_one_kernel(
// CHECK-SAME: %[[A0:[^ :]+]]: tensor<2x8x16xf32>
// CHECK-NEXT: %[[V0:[^ :]+]] = spmd.fused(%[[A0]]) : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
// CHECK-NEXT: ^bb0(%[[A1:[^ :]+]]: tensor<2x8x16xf32>):
// CHECK-NEXT: %[[V1:[^ :]+]] = mtp.reduce_max %[[A1]] dims [2] {keep} : (tensor<2x8x16xf32>) -> tensor<2x8x1xf32>
// CHECK-NEXT: %[[V2:[^ :]+]] = mtp.sub %[[A1]], %[[V1]] : (tensor<2x8x16xf32>, tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
// CHECK-NEXT: %[[V3:[^ :]+]] = mtp.exp %[[V2]] : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
// CHECK-NEXT: %[[V4:[^ :]+]] = mtp.reduce_sum %[[V3]] dims [2] : (tensor<2x8x16xf32>) -> tensor<2x8xf32>
// CHECK-NEXT: %[[V5:[^ :]+]] = mtp.reshape %[[V4]] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
// CHECK-NEXT: %[[V6:[^ :]+]] = mtp.div %[[V3]], %[[V5]] : (tensor<2x8x16xf32>, tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
// CHECK-NEXT: spmd.yield %[[V6]] : tensor<2x8x16xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V0]] : tensor<2x8x16xf32>
func.func @softmax_in_parts_is_one_kernel(%x: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %0 = mtp.reduce_max %x dims [2] {keep} : (tensor<2x8x16xf32>) -> tensor<2x8x1xf32>
  %1 = mtp.sub %x, %0 : (tensor<2x8x16xf32>, tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
  %2 = mtp.exp %1 : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %3 = mtp.reduce_sum %2 dims [2] : (tensor<2x8x16xf32>) -> tensor<2x8xf32>
  %4 = mtp.reshape %3 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
  %5 = mtp.div %2, %4 : (tensor<2x8x16xf32>, tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
  return %5 : tensor<2x8x16xf32>
}

// A norm behind a transpose would be swept again for each element: it is stored.
// CHECK-LABEL: func.func @a_norm_does_not_join_a_transpose(
// CHECK-SAME: %[[A0:[^ :]+]]: tensor<8x4xf32>, %[[A1:[^ :]+]]: tensor<4xf32>
// CHECK-NEXT: %[[V0:[^ :]+]] = spmd.fused(%[[A0]], %[[A1]]) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
// CHECK-NEXT: ^bb0(%[[A2:[^ :]+]]: tensor<8x4xf32>, %[[A3:[^ :]+]]: tensor<4xf32>):
// CHECK-NEXT: %[[V2:[^ :]+]] = mtp.rms_norm %[[A2]], %[[A3]] {epsilon = 9.9999999999999995E-7 : f64} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: spmd.yield %[[V2]] : tensor<8x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:[^ :]+]] = spmd.fused(%[[V0]]) : (tensor<8x4xf32>) -> tensor<4x8xf32> {
// CHECK-NEXT: ^bb0(%[[A2:[^ :]+]]: tensor<8x4xf32>):
// CHECK-NEXT: %[[V2:[^ :]+]] = mtp.transpose %[[A2]] [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: spmd.yield %[[V2]] : tensor<4x8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V1]] : tensor<4x8xf32>
func.func @a_norm_does_not_join_a_transpose(%x: tensor<8x4xf32>, %g: tensor<4xf32>) -> tensor<4x8xf32> {
  %0 = mtp.rms_norm %x, %g {epsilon = 1.0e-6 : f64} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %1 = mtp.transpose %0 [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// Nor does an expensive op that is read by several rows; a cheap one does.
// CHECK-LABEL: func.func @broadcasts_repeat_only_cheap_work(
// CHECK-SAME: %[[A0:[^ :]+]]: tensor<8x4xf32>, %[[A1:[^ :]+]]: tensor<4xf32>, %[[A2:[^ :]+]]: tensor<4xf32>
// CHECK-NEXT: %[[V0:[^ :]+]] = spmd.fused(%[[A1]]) : (tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: ^bb0(%[[A3:[^ :]+]]: tensor<4xf32>):
// CHECK-NEXT: %[[V2:[^ :]+]] = mtp.exp %[[A3]] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: spmd.yield %[[V2]] : tensor<4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:[^ :]+]] = spmd.fused(%[[A2]], %[[A0]], %[[V0]]) : (tensor<4xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
// CHECK-NEXT: ^bb0(%[[A3:[^ :]+]]: tensor<4xf32>, %[[A4:[^ :]+]]: tensor<8x4xf32>, %[[A5:[^ :]+]]: tensor<4xf32>):
// CHECK-NEXT: %[[V2:[^ :]+]] = mtp.neg %[[A3]] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V3:[^ :]+]] = mtp.mul %[[A4]], %[[A5]] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V4:[^ :]+]] = mtp.add %[[V3]], %[[V2]] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: spmd.yield %[[V4]] : tensor<8x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V1]] : tensor<8x4xf32>
func.func @broadcasts_repeat_only_cheap_work(%x: tensor<8x4xf32>, %a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = mtp.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %1 = mtp.neg %b : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mtp.mul %x, %0 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %3 = mtp.add %2, %1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// A constant and a conversion are copied to each kernel that uses them; the
// expensive tanh with two uses is computed once.
// CHECK-LABEL: func.func @cheap_producers_are_copied(
// CHECK-SAME: %[[A0:[^ :]+]]: tensor<8x4xi1>, %[[A1:[^ :]+]]: tensor<8x4xf32>, %[[A2:[^ :]+]]: tensor<4x4xf32>
// CHECK-NEXT: %[[V0:[^ :]+]] = spmd.fused(%[[A1]]) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
// CHECK-NEXT: ^bb0(%[[A3:[^ :]+]]: tensor<8x4xf32>):
// CHECK-NEXT: %[[V4:[^ :]+]] = mtp.tanh %[[A3]] : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: spmd.yield %[[V4]] : tensor<8x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:[^ :]+]] = mtp.matmul %[[V0]], %[[A2]] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V2:[^ :]+]] = spmd.fused(%[[A0]], %[[V1]]) : (tensor<8x4xi1>, tensor<8x4xf32>) -> tensor<8x4xf32> {
// CHECK-NEXT: ^bb0(%[[A3:[^ :]+]]: tensor<8x4xi1>, %[[A4:[^ :]+]]: tensor<8x4xf32>):
// CHECK-NEXT: %[[V4:[^ :]+]] = mtp.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[V5:[^ :]+]] = mtp.convert %[[A3]] : (tensor<8x4xi1>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V6:[^ :]+]] = mtp.add %[[A4]], %[[V5]] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V7:[^ :]+]] = mtp.mul %[[V6]], %[[V4]] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
// CHECK-NEXT: spmd.yield %[[V7]] : tensor<8x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V3:[^ :]+]] = spmd.fused(%[[A0]], %[[V0]]) : (tensor<8x4xi1>, tensor<8x4xf32>) -> tensor<4x8xf32> {
// CHECK-NEXT: ^bb0(%[[A3:[^ :]+]]: tensor<8x4xi1>, %[[A4:[^ :]+]]: tensor<8x4xf32>):
// CHECK-NEXT: %[[V4:[^ :]+]] = mtp.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[V5:[^ :]+]] = mtp.convert %[[A3]] : (tensor<8x4xi1>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V6:[^ :]+]] = mtp.add %[[A4]], %[[V5]] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V7:[^ :]+]] = mtp.transpose %[[V6]] [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[V8:[^ :]+]] = mtp.mul %[[V7]], %[[V4]] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
// CHECK-NEXT: spmd.yield %[[V8]] : tensor<4x8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V2]], %[[V3]] : tensor<8x4xf32>, tensor<4x8xf32>
func.func @cheap_producers_are_copied(%m: tensor<8x4xi1>, %x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<4x8xf32>) {
  %c = mtp.constant dense<2.0> : tensor<f32>
  %0 = mtp.convert %m : (tensor<8x4xi1>) -> tensor<8x4xf32>
  %1 = mtp.tanh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = mtp.matmul %1, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = mtp.add %2, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = mtp.mul %3, %c : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %5 = mtp.add %1, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = mtp.transpose %5 [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %7 = mtp.mul %6, %c : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %4, %7 : tensor<8x4xf32>, tensor<4x8xf32>
}

// Nothing crosses a collective; identities of training are gone.
// CHECK-LABEL: func.func @collectives_end_a_kernel(
// CHECK-SAME: %[[A0:[^ :]+]]: tensor<8x4xf32>
// CHECK-NEXT: %[[V0:[^ :]+]] = spmd.fused(%[[A0]]) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
// CHECK-NEXT: ^bb0(%[[A1:[^ :]+]]: tensor<8x4xf32>):
// CHECK-NEXT: %[[V3:[^ :]+]] = mtp.neg %[[A1]] : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: spmd.yield %[[V3]] : tensor<8x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:[^ :]+]] = spmd.all_reduce %[[V0]] ["tp"]  sum for "reduce_from" : tensor<8x4xf32> to tensor<8x4xf32>
// CHECK-NEXT: %[[V2:[^ :]+]] = spmd.fused(%[[V1]]) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
// CHECK-NEXT: ^bb0(%[[A1:[^ :]+]]: tensor<8x4xf32>):
// CHECK-NEXT: %[[V3:[^ :]+]] = mtp.abs %[[A1]] : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: spmd.yield %[[V3]] : tensor<8x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V2]] : tensor<8x4xf32>
func.func @collectives_end_a_kernel(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = mtp.neg %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = spmd.all_reduce %0 ["tp"] sum for "reduce_from" : tensor<8x4xf32> to tensor<8x4xf32>
  %2 = mtp.stop_gradient %1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = mtp.abs %2 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// The heads of an attention: bias, split and transpose are one kernel.
// CHECK-LABEL: func.func @split_of_heads_takes_the_bias_along(
// CHECK-SAME: %[[A0:[^ :]+]]: tensor<2x8x12xf32>, %[[A1:[^ :]+]]: tensor<12xf32>
// CHECK-NEXT: %[[V0:[^ :]+]] = spmd.fused(%[[A0]], %[[A1]]) : (tensor<2x8x12xf32>, tensor<12xf32>) -> tensor<2x3x8x4xf32> {
// CHECK-NEXT: ^bb0(%[[A2:[^ :]+]]: tensor<2x8x12xf32>, %[[A3:[^ :]+]]: tensor<12xf32>):
// CHECK-NEXT: %[[V1:[^ :]+]] = mtp.add %[[A2]], %[[A3]] : (tensor<2x8x12xf32>, tensor<12xf32>) -> tensor<2x8x12xf32>
// CHECK-NEXT: %[[V2:[^ :]+]] = mtp.reshape %[[V1]] : (tensor<2x8x12xf32>) -> tensor<2x8x3x4xf32>
// CHECK-NEXT: %[[V3:[^ :]+]] = mtp.transpose %[[V2]] [0, 2, 1, 3] : (tensor<2x8x3x4xf32>) -> tensor<2x3x8x4xf32>
// CHECK-NEXT: spmd.yield %[[V3]] : tensor<2x3x8x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V0]] : tensor<2x3x8x4xf32>
func.func @split_of_heads_takes_the_bias_along(%x: tensor<2x8x12xf32>, %b: tensor<12xf32>) -> tensor<2x3x8x4xf32> {
  %0 = mtp.add %x, %b : (tensor<2x8x12xf32>, tensor<12xf32>) -> tensor<2x8x12xf32>
  %1 = mtp.reshape %0 : (tensor<2x8x12xf32>) -> tensor<2x8x3x4xf32>
  %2 = mtp.transpose %1 [0, 2, 1, 3] : (tensor<2x8x3x4xf32>) -> tensor<2x3x8x4xf32>
  return %2 : tensor<2x3x8x4xf32>
}
