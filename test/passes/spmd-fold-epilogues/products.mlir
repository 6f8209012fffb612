// RUN: mtp-opt %s -split-input-file --spmd-fold-epilogues | FileCheck %s

// CHECK-LABEL: func.func @bias_and_activation(
// CHECK-SAME: %[[X:.*]]: tensor<2x8x4xf32>, %[[W:.*]]: tensor<6x4xf32>, %[[B:.*]]: tensor<6xf32>)
func.func @bias_and_activation(%x: tensor<2x8x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>) -> tensor<2x8x6xf32> {
  // CHECK-NEXT: %[[Y:.*]] = spmd.matmul %[[X]], %[[W]] bias %[[B]] activation gelu_tanh {transpose_rhs} : (tensor<2x8x4xf32>, tensor<6x4xf32>, tensor<6xf32>) -> tensor<2x8x6xf32>
  // CHECK-NEXT: return %[[Y]]
  %0 = mtp.matmul %x, %w {transpose_rhs} : (tensor<2x8x4xf32>, tensor<6x4xf32>) -> tensor<2x8x6xf32>
  %1 = mtp.add %b, %0 : (tensor<6xf32>, tensor<2x8x6xf32>) -> tensor<2x8x6xf32>
  %2 = mtp.gelu %1 {tanh} : (tensor<2x8x6xf32>) -> tensor<2x8x6xf32>
  return %2 : tensor<2x8x6xf32>
}

// -----

// CHECK-LABEL: func.func @relu_silu_and_exact_gelu(
// CHECK: activation relu
// CHECK: activation silu
// CHECK: activation gelu_erf
func.func @relu_silu_and_exact_gelu(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = mtp.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = mtp.add %0, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %2 = mtp.relu %1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = mtp.matmul %2, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %4 = mtp.add %3, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %5 = mtp.silu %4 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = mtp.matmul %5, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %7 = mtp.add %6, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %8 = mtp.gelu %7 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %8 : tensor<8x4xf32>
}

// -----

// Whoever else reads the product needs it without the bias.
// CHECK-LABEL: func.func @a_product_that_is_read_twice(
// CHECK-NEXT: mtp.matmul
// CHECK-NEXT: mtp.add
// CHECK-NEXT: return
func.func @a_product_that_is_read_twice(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = mtp.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = mtp.add %0, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// A whole matrix is no bias, and a column is none either.
// CHECK-LABEL: func.func @no_row(
// CHECK-NOT: spmd.matmul
func.func @no_row(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %b: tensor<8x4xf32>, %c: tensor<8x1xf32>) -> tensor<8x4xf32> {
  %0 = mtp.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = mtp.add %0, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = mtp.matmul %1, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = mtp.add %2, %c : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// -----

// Activations of doubles stay kernels.
// CHECK-LABEL: func.func @double_precision(
// CHECK-NEXT: spmd.matmul {{.*}} activation none
// CHECK-NEXT: mtp.relu
func.func @double_precision(%x: tensor<8x4xf64>, %w: tensor<4x4xf64>, %b: tensor<4xf64>) -> tensor<8x4xf64> {
  %0 = mtp.matmul %x, %w : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %1 = mtp.add %0, %b : (tensor<8x4xf64>, tensor<4xf64>) -> tensor<8x4xf64>
  %2 = mtp.relu %1 : (tensor<8x4xf64>) -> tensor<8x4xf64>
  return %2 : tensor<8x4xf64>
}
