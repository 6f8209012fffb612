// RUN: mtp-opt %s | mtp-opt | FileCheck %s
// RUN: mtp-opt %s --emit-bytecode | mtp-opt | FileCheck %s

// CHECK: mtp.mesh @mesh <dp = 2, tp = 2 x 2>
mtp.mesh @mesh <dp = 2, tp = 2 x 2>

// CHECK: mtp.initializer @w : tensor<8x16xf32> {bytes = 512 : i64, file = "model.onnx", offset = 64 : i64, parameter}
mtp.initializer @w : tensor<8x16xf32> {file = "model.onnx", offset = 64 : i64, bytes = 512 : i64, parameter}

// CHECK-LABEL: func.func @column_then_row
// CHECK-SAME: tensor<2x4x8xf32, #mtp.layout<@mesh, dp = S(0)>>
func.func @column_then_row(%x: tensor<2x4x8xf32, #mtp.layout<@mesh, dp = S(0)>>,
                           %v: tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0), dp = R>>)
    -> tensor<2x4x8xf32, #mtp.layout<@mesh, dp = S(0)>> {
  // CHECK-NEXT: mtp.parameter @w : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %p = mtp.parameter @w : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: mtp.copy_to %{{.*}} ["dp"]
  %w = mtp.copy_to %p ["dp"] : (tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1), dp = R>>
  // CHECK-NEXT: mtp.copy_to %{{.*}} ["tp"]
  %f = mtp.copy_to %x ["tp"] : (tensor<2x4x8xf32, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<2x4x8xf32, #mtp.layout<@mesh, dp = S(0), tp = R>>
  // CHECK-NEXT: mtp.matmul
  %0 = mtp.matmul %f, %w : (tensor<2x4x8xf32, #mtp.layout<@mesh, dp = S(0), tp = R>>, tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1), dp = R>>) -> tensor<2x4x16xf32, #mtp.layout<@mesh, dp = S(0), tp = S(2)>>
  // CHECK-NEXT: mtp.gelu %{{.*}} {tanh}
  %1 = mtp.gelu %0 {tanh} : (tensor<2x4x16xf32, #mtp.layout<@mesh, dp = S(0), tp = S(2)>>) -> tensor<2x4x16xf32, #mtp.layout<@mesh, dp = S(0), tp = S(2)>>
  // CHECK-NEXT: mtp.matmul
  %2 = mtp.matmul %1, %v : (tensor<2x4x16xf32, #mtp.layout<@mesh, dp = S(0), tp = S(2)>>, tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0), dp = R>>) -> tensor<2x4x8xf32, #mtp.layout<@mesh, dp = S(0), tp = P(sum)>>
  // CHECK-NEXT: mtp.reduce_from %{{.*}} ["tp"]
  %3 = mtp.reduce_from %2 ["tp"] : (tensor<2x4x8xf32, #mtp.layout<@mesh, dp = S(0), tp = P(sum)>>) -> tensor<2x4x8xf32, #mtp.layout<@mesh, dp = S(0)>>
  return %3 : tensor<2x4x8xf32, #mtp.layout<@mesh, dp = S(0)>>
}

// A key head is cut by tp.0, the query heads of one key head by tp.1.
// CHECK-LABEL: func.func @grouped_query_heads_on_a_refined_axis
func.func @grouped_query_heads_on_a_refined_axis(
    %q: tensor<2x4x8x16xf32, #mtp.layout<@mesh, tp = S(1), dp = R>>,
    %k: tensor<2x2x8x16xf32, #mtp.layout<@mesh, tp.0 = S(1), dp = R, tp.1 = R>>) {
  // CHECK: mtp.attention
  %y, %l = mtp.attention %q, %k, %k {scale = 0.25 : f64, causal} : (tensor<2x4x8x16xf32, #mtp.layout<@mesh, tp = S(1), dp = R>>, tensor<2x2x8x16xf32, #mtp.layout<@mesh, tp.0 = S(1), dp = R, tp.1 = R>>, tensor<2x2x8x16xf32, #mtp.layout<@mesh, tp.0 = S(1), dp = R, tp.1 = R>>) -> (tensor<2x4x8x16xf32, #mtp.layout<@mesh, tp = S(1), dp = R>>, tensor<2x4x8xf32, #mtp.layout<@mesh, tp = S(1), dp = R>>)
  return
}

// Three heads of size 4 on two ranks: blocks of two heads.
// CHECK-LABEL: func.func @uneven_heads_are_cut_in_units
func.func @uneven_heads_are_cut_in_units(%x: tensor<5x12xf32, #mtp.layout<@mesh, dp = S(1, unit 4), tp = R>>) {
  // CHECK: mtp.reshape {{.*}} -> tensor<5x3x4xf32, #mtp.layout<@mesh, dp = S(1), tp = R>>
  %0 = mtp.reshape %x : (tensor<5x12xf32, #mtp.layout<@mesh, dp = S(1, unit 4), tp = R>>) -> tensor<5x3x4xf32, #mtp.layout<@mesh, dp = S(1), tp = R>>
  return
}

// CHECK-LABEL: func.func @constants_take_any_state
func.func @constants_take_any_state() {
  // CHECK: mtp.constant dense<0.000000e+00> : tensor<8xf32> in tensor<8xf32, #mtp.layout<@mesh, tp = S(0)>>
  %0 = mtp.constant dense<0.0> : tensor<8xf32> in tensor<8xf32, #mtp.layout<@mesh, tp = S(0)>>
  // CHECK: mtp.iota dim 0 : tensor<8xi64, #mtp.layout<@mesh, dp = S(0), tp = S(0)>>
  %1 = mtp.iota dim 0 : tensor<8xi64, #mtp.layout<@mesh, dp = S(0), tp = S(0)>>
  return
}

// The product that feeds a split into three heads of 4 is cut in units of 4.
// CHECK-LABEL: func.func @a_product_is_cut_in_units
func.func @a_product_is_cut_in_units(%x: tensor<5x8xf32, #mtp.layout<@mesh, dp = R, tp = R>>,
                                     %w: tensor<8x12xf32, #mtp.layout<@mesh, dp = S(1, unit 4), tp = R>>) {
  // CHECK: mtp.matmul {{.*}} -> tensor<5x12xf32, #mtp.layout<@mesh, dp = S(1, unit 4), tp = R>>
  %0 = mtp.matmul %x, %w : (tensor<5x8xf32, #mtp.layout<@mesh, dp = R, tp = R>>, tensor<8x12xf32, #mtp.layout<@mesh, dp = S(1, unit 4), tp = R>>) -> tensor<5x12xf32, #mtp.layout<@mesh, dp = S(1, unit 4), tp = R>>
  return
}
