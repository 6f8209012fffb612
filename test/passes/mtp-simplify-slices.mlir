// RUN: mtp-opt %s --mtp-simplify | FileCheck %s

mtp.initializer @qkv.weight : tensor<64x192xf32> {file = "model.onnx", offset = 0 : i64, bytes = 49152 : i64, parameter}
mtp.initializer @qkv.bias : tensor<192xf32> {file = "model.onnx", offset = 49152 : i64, bytes = 768 : i64, parameter}
mtp.initializer @experts.weight : tensor<4x48x16xf32> {file = "model.onnx", offset = 49920 : i64, bytes = 12288 : i64, parameter}

// GPT-2's c_attn: three products, three pieces of weight and bias.
// CHECK-LABEL: func.func @fused_query_key_value_is_split_by_meaning
// CHECK-NEXT: %[[WQ:.*]] = mtp.parameter @qkv.weight recipe [#mtp.step<"slice", [1, 0, 64]>] : tensor<64x64xf32>
// CHECK-NEXT: %[[XQ:.*]] = mtp.matmul %arg0, %[[WQ]] : (tensor<2x8x64xf32>, tensor<64x64xf32>) -> tensor<2x8x64xf32>
// CHECK-NEXT: %[[WK:.*]] = mtp.parameter @qkv.weight recipe [#mtp.step<"slice", [1, 64, 64]>] : tensor<64x64xf32>
// CHECK-NEXT: %[[XK:.*]] = mtp.matmul %arg0, %[[WK]]
// CHECK-NEXT: %[[WV:.*]] = mtp.parameter @qkv.weight recipe [#mtp.step<"slice", [1, 128, 64]>] : tensor<64x64xf32>
// CHECK-NEXT: %[[XV:.*]] = mtp.matmul %arg0, %[[WV]]
// CHECK-NEXT: %[[BQ:.*]] = mtp.parameter @qkv.bias recipe [#mtp.step<"slice", [0, 0, 64]>] : tensor<64xf32>
// CHECK-NEXT: %[[Q:.*]] = mtp.add %[[XQ]], %[[BQ]]
// CHECK-NEXT: %[[BK:.*]] = mtp.parameter @qkv.bias recipe [#mtp.step<"slice", [0, 64, 64]>] : tensor<64xf32>
// CHECK-NEXT: %[[K:.*]] = mtp.add %[[XK]], %[[BK]]
// CHECK-NEXT: %[[BV:.*]] = mtp.parameter @qkv.bias recipe [#mtp.step<"slice", [0, 128, 64]>] : tensor<64xf32>
// CHECK-NEXT: %[[V:.*]] = mtp.add %[[XV]], %[[BV]]
// CHECK-NEXT: return %[[Q]], %[[K]], %[[V]]
func.func @fused_query_key_value_is_split_by_meaning(%x: tensor<2x8x64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<2x8x64xf32>) {
  %w = mtp.parameter @qkv.weight : tensor<64x192xf32>
  %b = mtp.parameter @qkv.bias : tensor<192xf32>
  %0 = mtp.reshape %x : (tensor<2x8x64xf32>) -> tensor<16x64xf32>
  %1 = mtp.matmul %0, %w : (tensor<16x64xf32>, tensor<64x192xf32>) -> tensor<16x192xf32>
  %2 = mtp.add %1, %b : (tensor<16x192xf32>, tensor<192xf32>) -> tensor<16x192xf32>
  %3 = mtp.reshape %2 : (tensor<16x192xf32>) -> tensor<2x8x192xf32>
  %q = mtp.strided_slice %3 dim 2 start 0 step 1 : (tensor<2x8x192xf32>) -> tensor<2x8x64xf32>
  %k = mtp.strided_slice %3 dim 2 start 64 step 1 : (tensor<2x8x192xf32>) -> tensor<2x8x64xf32>
  %v = mtp.strided_slice %3 dim 2 start 128 step 1 : (tensor<2x8x192xf32>) -> tensor<2x8x64xf32>
  return %q, %k, %v : tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<2x8x64xf32>
}

// Vision models: (b, s, 3, h, d), transposed, then one index of three.
// CHECK-LABEL: func.func @unbound_query_key_value_is_split
// CHECK-NOT: mtp.strided_slice
// CHECK: mtp.parameter @qkv.weight recipe [#mtp.step<"slice", [1, 128, 64]>]
// CHECK-NOT: mtp.strided_slice
func.func @unbound_query_key_value_is_split(%x: tensor<2x8x64xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) {
  %w = mtp.parameter @qkv.weight : tensor<64x192xf32>
  %0 = mtp.matmul %x, %w : (tensor<2x8x64xf32>, tensor<64x192xf32>) -> tensor<2x8x192xf32>
  %1 = mtp.reshape %0 : (tensor<2x8x192xf32>) -> tensor<2x8x3x4x16xf32>
  %2 = mtp.transpose %1 [2, 0, 3, 1, 4] : (tensor<2x8x3x4x16xf32>) -> tensor<3x2x4x8x16xf32>
  %i0 = mtp.constant dense<0> : tensor<i64>
  %i2 = mtp.constant dense<-1> : tensor<i64>
  %q = mtp.gather %2[%i0] dim 0 : (tensor<3x2x4x8x16xf32>, tensor<i64>) -> tensor<2x4x8x16xf32>
  %v = mtp.gather %2[%i2] dim 0 : (tensor<3x2x4x8x16xf32>, tensor<i64>) -> tensor<2x4x8x16xf32>
  return %q, %v : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>
}

// Gate and up of the experts that were chosen.
// CHECK-LABEL: func.func @experts
func.func @experts(%x: tensor<6x16x1xf32>, %i: tensor<6x1xi64>) -> (tensor<6x24xf32>, tensor<6x24xf32>) {
  // CHECK-DAG: %[[G:.*]] = mtp.parameter @experts.weight recipe [#mtp.step<"slice", [1, 0, 24]>] : tensor<4x24x16xf32>
  // CHECK-DAG: %[[U:.*]] = mtp.parameter @experts.weight recipe [#mtp.step<"slice", [1, 24, 24]>] : tensor<4x24x16xf32>
  // CHECK-DAG: mtp.gather_nd %[[G]][%arg1]
  // CHECK-DAG: mtp.gather_nd %[[U]][%arg1]
  // CHECK-COUNT-2: mtp.matmul {{.*}} -> tensor<6x24x1xf32>
  // CHECK-NOT: mtp.strided_slice
  %w = mtp.parameter @experts.weight : tensor<4x48x16xf32>
  %0 = mtp.gather_nd %w[%i] batch_dims 0 : (tensor<4x48x16xf32>, tensor<6x1xi64>) -> tensor<6x48x16xf32>
  %1 = mtp.matmul %0, %x : (tensor<6x48x16xf32>, tensor<6x16x1xf32>) -> tensor<6x48x1xf32>
  %2 = mtp.reshape %1 : (tensor<6x48x1xf32>) -> tensor<6x48xf32>
  %g = mtp.strided_slice %2 dim 1 start 0 step 1 : (tensor<6x48xf32>) -> tensor<6x24xf32>
  %u = mtp.strided_slice %2 dim 1 start 24 step 1 : (tensor<6x48xf32>) -> tensor<6x24xf32>
  return %g, %u : tensor<6x24xf32>, tensor<6x24xf32>
}

// CHECK-LABEL: func.func @a_whole_use_keeps_the_product_wide
func.func @a_whole_use_keeps_the_product_wide(%x: tensor<2x8x64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8x192xf32>) {
  // CHECK: mtp.matmul {{.*}} -> tensor<2x8x192xf32>
  // CHECK: mtp.strided_slice
  %w = mtp.parameter @qkv.weight : tensor<64x192xf32>
  %0 = mtp.matmul %x, %w : (tensor<2x8x64xf32>, tensor<64x192xf32>) -> tensor<2x8x192xf32>
  %q = mtp.strided_slice %0 dim 2 start 0 step 1 : (tensor<2x8x192xf32>) -> tensor<2x8x64xf32>
  return %q, %0 : tensor<2x8x64xf32>, tensor<2x8x192xf32>
}

// Halves of each head, as in a rotary embedding: not a part of the weight.
// CHECK-LABEL: func.func @halves_of_heads_are_not_split
func.func @halves_of_heads_are_not_split(%x: tensor<2x8x64xf32>) -> (tensor<2x8x12x8xf32>, tensor<2x8x12x8xf32>) {
  // CHECK: mtp.matmul {{.*}} -> tensor<2x8x192xf32>
  // CHECK-COUNT-2: mtp.strided_slice
  %w = mtp.parameter @qkv.weight : tensor<64x192xf32>
  %0 = mtp.matmul %x, %w : (tensor<2x8x64xf32>, tensor<64x192xf32>) -> tensor<2x8x192xf32>
  %1 = mtp.reshape %0 : (tensor<2x8x192xf32>) -> tensor<2x8x12x16xf32>
  %a = mtp.strided_slice %1 dim 3 start 0 step 1 : (tensor<2x8x12x16xf32>) -> tensor<2x8x12x8xf32>
  %b = mtp.strided_slice %1 dim 3 start 8 step 1 : (tensor<2x8x12x16xf32>) -> tensor<2x8x12x8xf32>
  return %a, %b : tensor<2x8x12x8xf32>, tensor<2x8x12x8xf32>
}

// CHECK-LABEL: func.func @slices_of_slices_and_concats
func.func @slices_of_slices_and_concats(%x: tensor<2x8xf32>, %y: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x4xf32>, tensor<2x8xf32>) {
  // CHECK-NEXT: %[[S:.*]] = mtp.strided_slice %arg0 dim 1 start 3 step 1
  // CHECK-NEXT: return %[[S]], %arg1, %arg0
  %0 = mtp.strided_slice %x dim 1 start 2 step 1 : (tensor<2x8xf32>) -> tensor<2x6xf32>
  %1 = mtp.strided_slice %0 dim 1 start 1 step 1 : (tensor<2x6xf32>) -> tensor<2x2xf32>
  %2 = mtp.concat dim 1 %x, %y : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<2x12xf32>
  %3 = mtp.strided_slice %2 dim 1 start 8 step 1 : (tensor<2x12xf32>) -> tensor<2x4xf32>
  %4 = mtp.strided_slice %x dim 1 start 0 step 1 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1, %3, %4 : tensor<2x2xf32>, tensor<2x4xf32>, tensor<2x8xf32>
}
