// RUN: mtp-opt %s --mtp-simplify | FileCheck %s

// CHECK-LABEL: func.func @reshape_of_reshape_is_one
func.func @reshape_of_reshape_is_one(%x: tensor<2x8x64xf32>) -> tensor<2x8x4x16xf32> {
  // CHECK-NEXT: %[[R:.*]] = mtp.reshape %arg0 : (tensor<2x8x64xf32>) -> tensor<2x8x4x16xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = mtp.reshape %x : (tensor<2x8x64xf32>) -> tensor<16x64xf32>
  %1 = mtp.reshape %0 : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  return %1 : tensor<2x8x4x16xf32>
}

// CHECK-LABEL: func.func @reshape_there_and_back_vanishes
func.func @reshape_there_and_back_vanishes(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // CHECK-NEXT: return %arg0
  %0 = mtp.reshape %x : (tensor<2x8xf32>) -> tensor<16xf32>
  %1 = mtp.reshape %0 : (tensor<16xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @transpose_of_transpose_is_one
func.func @transpose_of_transpose_is_one(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  // CHECK-NEXT: mtp.transpose %arg0 [2, 0, 1]
  // CHECK-NEXT: return
  %0 = mtp.transpose %x [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %1 = mtp.transpose %0 [2, 1, 0] : (tensor<3x2x4xf32>) -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}

// The transpose of keys as exporters write it: heads merged with the batch.
// CHECK-LABEL: func.func @key_transpose_through_merged_heads
func.func @key_transpose_through_merged_heads(%k: tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32> {
  // CHECK-NEXT: %[[T:.*]] = mtp.transpose %arg0 [0, 1, 3, 2]
  // CHECK-NEXT: return %[[T]]
  %0 = mtp.reshape %k : (tensor<2x4x8x16xf32>) -> tensor<8x8x16xf32>
  %1 = mtp.transpose %0 [0, 2, 1] : (tensor<8x8x16xf32>) -> tensor<8x16x8xf32>
  %2 = mtp.reshape %1 : (tensor<8x16x8xf32>) -> tensor<2x4x16x8xf32>
  return %2 : tensor<2x4x16x8xf32>
}

// CHECK-LABEL: func.func @result_dimensions_stay_together
func.func @result_dimensions_stay_together(%x: tensor<24x8xf32>) -> tensor<4x48xf32> {
  // CHECK-NEXT: mtp.reshape %arg0 : (tensor<24x8xf32>) -> tensor<48x4xf32>
  // CHECK-NEXT: mtp.transpose %{{.*}} [1, 0]
  // CHECK-NEXT: return
  %0 = mtp.reshape %x : (tensor<24x8xf32>) -> tensor<6x8x4xf32>
  %1 = mtp.transpose %0 [2, 0, 1] : (tensor<6x8x4xf32>) -> tensor<4x6x8xf32>
  %2 = mtp.reshape %1 : (tensor<4x6x8xf32>) -> tensor<4x48xf32>
  return %2 : tensor<4x48xf32>
}

// Heads are split, moved and merged in another order: nothing stays together.
// CHECK-LABEL: func.func @a_true_shuffle_stays
func.func @a_true_shuffle_stays(%x: tensor<24x8xf32>) -> tensor<32x6xf32> {
  // CHECK-NEXT: mtp.reshape
  // CHECK-NEXT: mtp.transpose
  // CHECK-NEXT: mtp.reshape
  // CHECK-NEXT: return
  %0 = mtp.reshape %x : (tensor<24x8xf32>) -> tensor<6x4x8xf32>
  %1 = mtp.transpose %0 [1, 0, 2] : (tensor<6x4x8xf32>) -> tensor<4x6x8xf32>
  %2 = mtp.reshape %1 : (tensor<4x6x8xf32>) -> tensor<32x6xf32>
  return %2 : tensor<32x6xf32>
}

// CHECK-LABEL: func.func @moves_of_splats_are_splats
func.func @moves_of_splats_are_splats() -> (tensor<4x2xf32>, tensor<3x8xf32>) {
  // CHECK-DAG: mtp.constant dense<1.000000e+00> : tensor<4x2xf32>
  // CHECK-DAG: mtp.constant dense<1.000000e+00> : tensor<3x8xf32>
  // CHECK-NEXT: return
  %c = mtp.constant dense<1.0> : tensor<8xf32>
  %0 = mtp.reshape %c : (tensor<8xf32>) -> tensor<4x2xf32>
  %1 = mtp.broadcast %c : (tensor<8xf32>) -> tensor<3x8xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<3x8xf32>
}
