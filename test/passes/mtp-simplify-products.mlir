// RUN: mtp-opt %s --mtp-simplify | FileCheck %s

// CHECK-LABEL: func.func @transposed_operands_become_flags
func.func @transposed_operands_become_flags(%x: tensor<64x8xf32>, %w: tensor<32x64xf32>) -> tensor<8x32xf32> {
  // CHECK-NEXT: %[[Y:.*]] = mtp.matmul %arg0, %arg1 {transpose_lhs, transpose_rhs}
  // CHECK-NEXT: return %[[Y]]
  %xt = mtp.transpose %x [1, 0] : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %wt = mtp.transpose %w [1, 0] : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %y = mtp.matmul %xt, %wt : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// CHECK-LABEL: func.func @keys_keep_their_last_dimension
func.func @keys_keep_their_last_dimension(%q: tensor<2x4x8x16xf32>, %k: tensor<2x8x4x16xf32>) -> tensor<2x4x8x8xf32> {
  // CHECK-NEXT: %[[K:.*]] = mtp.transpose %arg1 [0, 2, 1, 3]
  // CHECK-NEXT: mtp.matmul %arg0, %[[K]] {transpose_rhs}
  // CHECK-NEXT: return
  %kt = mtp.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %s = mtp.matmul %q, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  return %s : tensor<2x4x8x8xf32>
}

// Gemm on merged rows, as in GPT-2: the reshapes around it vanish.
// CHECK-LABEL: func.func @reshapes_around_a_linear_layer_vanish
func.func @reshapes_around_a_linear_layer_vanish(%x: tensor<2x8x64xf32>, %w: tensor<64x32xf32>, %b: tensor<32xf32>) -> tensor<2x8x32xf32> {
  // CHECK-NEXT: %[[M:.*]] = mtp.matmul %arg0, %arg1 : (tensor<2x8x64xf32>, tensor<64x32xf32>) -> tensor<2x8x32xf32>
  // CHECK-NEXT: %[[A:.*]] = mtp.add %[[M]], %arg2 : (tensor<2x8x32xf32>, tensor<32xf32>) -> tensor<2x8x32xf32>
  // CHECK-NEXT: return %[[A]]
  %0 = mtp.reshape %x : (tensor<2x8x64xf32>) -> tensor<16x64xf32>
  %1 = mtp.matmul %0, %w : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %2 = mtp.add %1, %b : (tensor<16x32xf32>, tensor<32xf32>) -> tensor<16x32xf32>
  %3 = mtp.reshape %2 : (tensor<16x32xf32>) -> tensor<2x8x32xf32>
  return %3 : tensor<2x8x32xf32>
}

// CHECK-LABEL: func.func @operand_with_a_value_for_each_row_stays_merged
func.func @operand_with_a_value_for_each_row_stays_merged(%x: tensor<2x8x64xf32>, %r: tensor<16x1xf32>) -> tensor<16x64xf32> {
  // CHECK-NEXT: mtp.reshape
  // CHECK-NEXT: mtp.mul
  // CHECK-NEXT: return
  %0 = mtp.reshape %x : (tensor<2x8x64xf32>) -> tensor<16x64xf32>
  %1 = mtp.mul %0, %r : (tensor<16x64xf32>, tensor<16x1xf32>) -> tensor<16x64xf32>
  return %1 : tensor<16x64xf32>
}

// CHECK-LABEL: func.func @batch_broadcast_is_left_to_the_product
func.func @batch_broadcast_is_left_to_the_product(%x: tensor<2x8x16xf32>, %y: tensor<16x4xf32>) -> tensor<2x8x4xf32> {
  // CHECK-NEXT: mtp.matmul %arg0, %arg1 : (tensor<2x8x16xf32>, tensor<16x4xf32>)
  // CHECK-NEXT: return
  %0 = mtp.broadcast %y : (tensor<16x4xf32>) -> tensor<2x16x4xf32>
  %1 = mtp.matmul %x, %0 : (tensor<2x8x16xf32>, tensor<2x16x4xf32>) -> tensor<2x8x4xf32>
  return %1 : tensor<2x8x4xf32>
}
