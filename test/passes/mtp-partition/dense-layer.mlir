// RUN: mtp-opt %s -split-input-file --mtp-partition --spmd-verify | FileCheck %s

// A column cut, then a row cut: one all-reduce and no other communication.
mtp.mesh @mesh <tp = 2>
mtp.initializer @w : tensor<8x16xf32> {file = "m.onnx", offset = 0 : i64, bytes = 512 : i64, parameter}
mtp.initializer @v : tensor<16x8xf32> {file = "m.onnx", offset = 512 : i64, bytes = 512 : i64, parameter}
// CHECK-LABEL: func.func @column_then_row(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32> {mtp.global_type = tensor<4x8xf32>, mtp.layout = #mtp.layout<@mesh>, mtp.name = "x"})
// CHECK-SAME: -> (tensor<4x8xf32> {mtp.global_type = tensor<4x8xf32>, mtp.layout = #mtp.layout<@mesh>, mtp.name = "y"})
func.func @column_then_row(%x: tensor<4x8xf32, #mtp.layout<@mesh>> {mtp.name = "x"})
    -> (tensor<4x8xf32, #mtp.layout<@mesh>> {mtp.name = "y"}) {
  // CHECK-NEXT: %[[W:.*]] = spmd.parameter @w layout #mtp.layout<@mesh, tp = S(1)> global tensor<8x16xf32> : tensor<8x8xf32>
  %w = mtp.parameter @w : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[V:.*]] = spmd.parameter @v layout #mtp.layout<@mesh, tp = S(0)> global tensor<16x8xf32> : tensor<8x8xf32>
  %v = mtp.parameter @v : tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0)>>
  %f = mtp.copy_to %x ["tp"] : (tensor<4x8xf32, #mtp.layout<@mesh>>) -> tensor<4x8xf32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[H:.*]] = mtp.matmul %[[X]], %[[W]] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %0 = mtp.matmul %f, %w : (tensor<4x8xf32, #mtp.layout<@mesh, tp = R>>, tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G:.*]] = mtp.gelu %[[H]] {tanh} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mtp.gelu %0 {tanh} : (tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[P:.*]] = mtp.matmul %[[G]], %[[V]] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = mtp.matmul %1, %v : (tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>, tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: %[[Y:.*]] = spmd.all_reduce %[[P]] ["tp"] sum for "reduce_from" {node = "/mlp/MatMul", reason = "row parallel"} : tensor<4x8xf32> to tensor<4x8xf32>
  %3 = mtp.reduce_from %2 ["tp"] {node = "/mlp/MatMul", reason = "row parallel"} : (tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<4x8xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: return %[[Y]]
  return %3 : tensor<4x8xf32, #mtp.layout<@mesh>>
}

// -----

// Ops without a use are gone, and constants take local types.
mtp.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @unused_and_constants(
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>
func.func @unused_and_constants(%x: tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>> {
  // CHECK-NEXT: %[[C:.*]] = mtp.constant dense<2.000000e+00> : tensor<2xf32>
  %c = mtp.constant dense<2.0> : tensor<4xf32> in tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>
  // CHECK-NEXT: %[[Y:.*]] = mtp.mul %[[X]], %[[C]] : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %y = mtp.mul %x, %c : (tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>, tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>
  %z = mtp.all_gather %y ["tp"] : (tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<4xf32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: return %[[Y]]
  return %y : tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>
}

// -----

// The whole program on one rank: conversions on an axis of one rank vanish.
mtp.mesh @mesh <tp = 1>
// CHECK-LABEL: func.func @one_rank(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
func.func @one_rank(%x: tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<4xf32, #mtp.layout<@mesh>> {
  %y = mtp.gather_from %x ["tp"] : (tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<4xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: return %[[X]]
  return %y : tensor<4xf32, #mtp.layout<@mesh>>
}
