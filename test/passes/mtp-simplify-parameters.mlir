// RUN: mtp-opt %s --mtp-simplify | FileCheck %s

mtp.initializer @w : tensor<256x64xf32> {file = "model.onnx", offset = 0 : i64, bytes = 65536 : i64, parameter}
mtp.initializer @half : tensor<64xf16> {file = "model.onnx", offset = 65536 : i64, bytes = 128 : i64, parameter}

// CHECK-LABEL: func.func @moves_of_weights_become_their_recipe
func.func @moves_of_weights_become_their_recipe() -> tensor<32x2x256xf32> {
  // CHECK-NEXT: mtp.parameter @w recipe [#mtp.step<"transpose", [1, 0]>, #mtp.step<"reshape", [32, 2, 256]>] : tensor<32x2x256xf32>
  // CHECK-NEXT: return
  %w = mtp.parameter @w : tensor<256x64xf32>
  %0 = mtp.transpose %w [1, 0] : (tensor<256x64xf32>) -> tensor<64x256xf32>
  %1 = mtp.reshape %0 : (tensor<64x256xf32>) -> tensor<32x2x256xf32>
  return %1 : tensor<32x2x256xf32>
}

// A tied embedding stays one stored tensor: the product takes the transpose.
// CHECK-LABEL: func.func @tied_embedding_is_stored_once
func.func @tied_embedding_is_stored_once(%ids: tensor<2x8xi64>) -> tensor<2x8x256xf32> {
  // CHECK-NEXT: %[[W:.*]] = mtp.parameter @w : tensor<256x64xf32>
  // CHECK-NEXT: %[[X:.*]] = mtp.gather %[[W]][%arg0] dim 0
  // CHECK-NEXT: mtp.matmul %[[X]], %[[W]] {transpose_rhs}
  // CHECK-NEXT: return
  %w = mtp.parameter @w : tensor<256x64xf32>
  %x = mtp.gather %w[%ids] dim 0 : (tensor<256x64xf32>, tensor<2x8xi64>) -> tensor<2x8x64xf32>
  %v = mtp.parameter @w : tensor<256x64xf32>
  %t = mtp.transpose %v [1, 0] : (tensor<256x64xf32>) -> tensor<64x256xf32>
  %y = mtp.matmul %x, %t : (tensor<2x8x64xf32>, tensor<64x256xf32>) -> tensor<2x8x256xf32>
  return %y : tensor<2x8x256xf32>
}

// CHECK-LABEL: func.func @weights_are_loaded_in_the_type_of_use
func.func @weights_are_loaded_in_the_type_of_use() -> tensor<64xf32> {
  // CHECK-NEXT: mtp.parameter @half : tensor<64xf32>
  // CHECK-NEXT: return
  %w = mtp.parameter @half : tensor<64xf16>
  %0 = mtp.convert %w : (tensor<64xf16>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
