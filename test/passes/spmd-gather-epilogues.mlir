// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mtp-opt %s --spmd-gather-epilogues | FileCheck %s

// A gelu goes behind its product; the backward pass reads the product, too.
// CHECK-LABEL: func.func @gelu
// CHECK-NEXT: %[[H:.*]] = spmd.matmul %{{.*}}, %{{.*}} bias %{{.*}} activation none {spmd.epilogue = 1 : i64}
// CHECK-NEXT: %[[Y:.*]] = spmd.fused(%[[H]])
// CHECK: %[[Z:.*]] = mtp.neg
// CHECK-NEXT: return %[[H]], %[[Y]], %[[Z]]
func.func @gelu(%x: tensor<2x6x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>, %z: tensor<4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<4xf32>) {
  %0 = spmd.matmul %x, %w bias %b activation none : (tensor<2x6x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<2x6x8xf32>
  %1 = mtp.neg %z : (tensor<4xf32>) -> tensor<4xf32>
  %2 = spmd.fused(%0) : (tensor<2x6x8xf32>) -> tensor<2x6x8xf32> {
  ^bb0(%a: tensor<2x6x8xf32>):
    %3 = mtp.gelu %a {tanh} : (tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
    spmd.yield %3 : tensor<2x6x8xf32>
  }
  return %0, %2, %1 : tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<4xf32>
}

// The gradient and the sum of its rows; the sum of rows is then not the weight
// gradient's.
// CHECK-LABEL: func.func @gelu_gradient
// CHECK-NEXT: %[[G:.*]] = mtp.matmul %{{.*}}, %{{.*}} {spmd.epilogue = 2 : i64, transpose_rhs}
// CHECK-NEXT: %[[X:.*]] = spmd.fused(%{{.*}}, %[[G]])
// CHECK: %[[B:.*]] = spmd.fused(%[[X]])
// CHECK: mtp.matmul %{{.*}}, %[[X]] {transpose_lhs}
// CHECK-NEXT: return
func.func @gelu_gradient(%g: tensor<6x4xf32>, %w: tensor<8x4xf32>, %h: tensor<6x8xf32>, %x: tensor<6x5xf32>) -> (tensor<5x8xf32>, tensor<8xf32>) {
  %0 = mtp.matmul %g, %w {transpose_rhs} : (tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<6x8xf32>
  %1 = spmd.fused(%h, %0) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x8xf32>, %b: tensor<6x8xf32>):
    %4 = mtp.gelu_gradient %a, %b {tanh} : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    spmd.yield %4 : tensor<6x8xf32>
  }
  %2 = mtp.matmul %x, %1 {transpose_lhs} : (tensor<6x5xf32>, tensor<6x8xf32>) -> tensor<5x8xf32>
  %3 = spmd.fused(%1) : (tensor<6x8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<6x8xf32>):
    %4 = mtp.reduce_sum %a dims [0] : (tensor<6x8xf32>) -> tensor<8xf32>
    spmd.yield %4 : tensor<8xf32>
  }
  return %2, %3 : tensor<5x8xf32>, tensor<8xf32>
}

// The gradient of a bias goes with that of the weight.
// CHECK-LABEL: func.func @bias_gradient
// CHECK: mtp.matmul %{{.*}}, %{{.*}} {spmd.epilogue = 1 : i64, transpose_lhs}
// CHECK-NEXT: spmd.fused
// CHECK: mtp.neg
func.func @bias_gradient(%x: tensor<2x3x5xf32>, %g: tensor<2x3x7xf32>) -> (tensor<5x7xf32>, tensor<7xf32>, tensor<2x3x7xf32>) {
  %0 = mtp.reshape %x : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
  %1 = mtp.reshape %g : (tensor<2x3x7xf32>) -> tensor<6x7xf32>
  %2 = mtp.matmul %0, %1 {transpose_lhs} : (tensor<6x5xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>
  %3 = mtp.neg %g : (tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  %4 = spmd.fused(%g) : (tensor<2x3x7xf32>) -> tensor<7xf32> {
  ^bb0(%a: tensor<2x3x7xf32>):
    %5 = mtp.reduce_sum %a dims [0, 1] : (tensor<2x3x7xf32>) -> tensor<7xf32>
    spmd.yield %5 : tensor<7xf32>
  }
  return %2, %4, %3 : tensor<5x7xf32>, tensor<7xf32>, tensor<2x3x7xf32>
}

// The sum is read before the product stands there: the product goes before it.
// CHECK-LABEL: func.func @read_early
// CHECK-NEXT: mtp.reshape
// CHECK-NEXT: mtp.reshape
// CHECK-NEXT: mtp.matmul %{{.*}}, %{{.*}} {spmd.epilogue = 1 : i64, transpose_lhs}
// CHECK-NEXT: %[[B:.*]] = spmd.fused
// CHECK: mtp.neg %[[B]]
func.func @read_early(%x: tensor<2x3x5xf32>, %g: tensor<2x3x7xf32>) -> (tensor<5x7xf32>, tensor<7xf32>) {
  %0 = spmd.fused(%g) : (tensor<2x3x7xf32>) -> tensor<7xf32> {
  ^bb0(%a: tensor<2x3x7xf32>):
    %5 = mtp.reduce_sum %a dims [0, 1] : (tensor<2x3x7xf32>) -> tensor<7xf32>
    spmd.yield %5 : tensor<7xf32>
  }
  %1 = mtp.neg %0 : (tensor<7xf32>) -> tensor<7xf32>
  %2 = mtp.reshape %x : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
  %3 = mtp.reshape %g : (tensor<2x3x7xf32>) -> tensor<6x7xf32>
  %4 = mtp.matmul %2, %3 {transpose_lhs} : (tensor<6x5xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>
  return %4, %1 : tensor<5x7xf32>, tensor<7xf32>
}

// The exact gelu, rows that are no multiple of eight, a kernel of more than one
// op, f64, and sums along other dimensions are no epilogues.
// CHECK-LABEL: func.func @none
// CHECK-NOT: spmd.epilogue
func.func @none(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %v: tensor<4x7xf32>, %d: tensor<6x8xf64>, %e: tensor<8x8xf64>)
    -> (tensor<6x8xf32>, tensor<6x7xf32>, tensor<6x8xf32>, tensor<6x8xf64>, tensor<4x8xf32>, tensor<6xf32>) {
  %0 = mtp.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %1 = spmd.fused(%0) : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x8xf32>):
    %10 = mtp.gelu %a : (tensor<6x8xf32>) -> tensor<6x8xf32>
    spmd.yield %10 : tensor<6x8xf32>
  }
  %2 = mtp.matmul %x, %v : (tensor<6x4xf32>, tensor<4x7xf32>) -> tensor<6x7xf32>
  %3 = spmd.fused(%2) : (tensor<6x7xf32>) -> tensor<6x7xf32> {
  ^bb0(%a: tensor<6x7xf32>):
    %10 = mtp.gelu %a {tanh} : (tensor<6x7xf32>) -> tensor<6x7xf32>
    spmd.yield %10 : tensor<6x7xf32>
  }
  %4 = mtp.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %5 = spmd.fused(%4) : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%a: tensor<6x8xf32>):
    %10 = mtp.gelu %a {tanh} : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %11 = mtp.neg %10 : (tensor<6x8xf32>) -> tensor<6x8xf32>
    spmd.yield %11 : tensor<6x8xf32>
  }
  %6 = mtp.matmul %d, %e : (tensor<6x8xf64>, tensor<8x8xf64>) -> tensor<6x8xf64>
  %7 = spmd.fused(%6) : (tensor<6x8xf64>) -> tensor<6x8xf64> {
  ^bb0(%a: tensor<6x8xf64>):
    %10 = mtp.gelu %a {tanh} : (tensor<6x8xf64>) -> tensor<6x8xf64>
    spmd.yield %10 : tensor<6x8xf64>
  }
  %8 = mtp.matmul %x, %1 {transpose_lhs} : (tensor<6x4xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %9 = spmd.fused(%1) : (tensor<6x8xf32>) -> tensor<6xf32> {
  ^bb0(%a: tensor<6x8xf32>):
    %10 = mtp.reduce_sum %a dims [1] : (tensor<6x8xf32>) -> tensor<6xf32>
    spmd.yield %10 : tensor<6xf32>
  }
  return %1, %3, %5, %7, %8, %9 : tensor<6x8xf32>, tensor<6x7xf32>, tensor<6x8xf32>, tensor<6x8xf64>, tensor<4x8xf32>, tensor<6xf32>
}
