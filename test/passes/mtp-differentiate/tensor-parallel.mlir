// RUN: mtp-opt %s -split-input-file --mtp-differentiate | FileCheck %s

// A column cut, then a row cut (the Megatron pair): one all-reduce forward, f's
// conjugate is the one all-reduce backward, g's moves nothing.
mtp.mesh @mesh <tp = 2>
mtp.initializer @v : tensor<8x16xf32> {file = "m.onnx", offset = 0 : i64, bytes = 512 : i64, parameter, trainable}
mtp.initializer @w : tensor<16x8xf32> {file = "m.onnx", offset = 512 : i64, bytes = 512 : i64, parameter, trainable}
// CHECK-LABEL: func.func @column_then_row(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK-SAME: tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>> {mtp.gradient_of = 0 : i64}
// CHECK-SAME: tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0)>> {mtp.gradient_of = 1 : i64}
// CHECK-SAME: tensor<4x8xf32, #mtp.layout<@mesh>> {mtp.gradient_of = "x"}
func.func @column_then_row(%x: tensor<4x8xf32, #mtp.layout<@mesh>> {mtp.wants_gradient, mtp.name = "x"})
    -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %v = mtp.parameter @v {mtp.trainable = 0 : i64} : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %w = mtp.parameter @w {mtp.trainable = 1 : i64} : tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0)>>
  %f = mtp.copy_to %x ["tp"] : (tensor<4x8xf32, #mtp.layout<@mesh>>) -> tensor<4x8xf32, #mtp.layout<@mesh, tp = R>>
  %h = mtp.matmul %f, %v : (tensor<4x8xf32, #mtp.layout<@mesh, tp = R>>, tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %a = mtp.gelu %h {tanh} : (tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %p = mtp.matmul %a, %w : (tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>, tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  %y = mtp.reduce_from %p ["tp"] : (tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<4x8xf32, #mtp.layout<@mesh>>
  %l = mtp.reduce_sum %y dims [0, 1] : (tensor<4x8xf32, #mtp.layout<@mesh>>) -> tensor<f32, #mtp.layout<@mesh>>
  // CHECK: %[[V:.*]] = mtp.parameter
  // CHECK-NEXT: %[[W:.*]] = mtp.parameter
  // CHECK-NEXT: %[[F:.*]] = mtp.copy_to {{.*}}{pair = 1 : i64}
  // CHECK-NEXT: %[[H:.*]] = mtp.matmul
  // CHECK-NEXT: %[[A:.*]] = mtp.gelu
  // CHECK-NEXT: %[[P:.*]] = mtp.matmul
  // CHECK-NEXT: %[[Y:.*]] = mtp.reduce_from {{.*}}{pair = 0 : i64}
  // CHECK-NEXT: %[[L:.*]] = mtp.reduce_sum
  // CHECK-NEXT: %[[G0:.*]] = mtp.constant {mtp.backward} dense<1.000000e+00> : tensor<f32> in tensor<f32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G1:.*]] = mtp.reshape %[[G0]] : {{.*}} -> tensor<1x1xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G2:.*]] = mtp.broadcast %[[G1]] : {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G3:.*]] = mtp.copy_to %[[G2]] ["tp"] {pair = 0 : i64, phase = "backward"} : {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[G4:.*]] = mtp.matmul %[[G3]], %[[W]] {transpose_rhs} : {{.*}} -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G5:.*]] = mtp.weight_gradient %[[A]], %[[G3]] : {{.*}} -> tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0)>>
  // CHECK-NEXT: %[[G6:.*]] = mtp.gelu_gradient %[[H]], %[[G4]] {tanh} : {{.*}} -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G7:.*]] = mtp.matmul %[[G6]], %[[V]] {transpose_rhs} : {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: %[[G8:.*]] = mtp.weight_gradient %[[F]], %[[G6]] : {{.*}} -> tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G9:.*]] = mtp.reduce_from %[[G7]] ["tp"] {pair = 1 : i64, phase = "backward"} : {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: return %[[L]], %[[G8]], %[[G5]], %[[G9]]
  return %l : tensor<f32, #mtp.layout<@mesh>>
}

// -----

// One f in front of two uses: their cotangents are added before the one
// all-reduce, not reduced twice.
mtp.mesh @mesh <tp = 2>
mtp.initializer @q : tensor<8x16xf32> {file = "m.onnx", offset = 0 : i64, bytes = 512 : i64, parameter, trainable}
mtp.initializer @k : tensor<8x16xf32> {file = "m.onnx", offset = 512 : i64, bytes = 512 : i64, parameter}
// CHECK-LABEL: func.func @one_reduction_for_two_uses(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK-SAME: tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>> {mtp.gradient_of = 0 : i64}
// CHECK-SAME: tensor<4x8xf32, #mtp.layout<@mesh>> {mtp.gradient_of = "x"}
func.func @one_reduction_for_two_uses(%x: tensor<4x8xf32, #mtp.layout<@mesh>> {mtp.wants_gradient, mtp.name = "x"})
    -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %q = mtp.parameter @q {mtp.trainable = 0 : i64} : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %k = mtp.parameter @k : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %f = mtp.copy_to %x ["tp"] : (tensor<4x8xf32, #mtp.layout<@mesh>>) -> tensor<4x8xf32, #mtp.layout<@mesh, tp = R>>
  %a = mtp.matmul %f, %q : (tensor<4x8xf32, #mtp.layout<@mesh, tp = R>>, tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %b = mtp.matmul %f, %k : (tensor<4x8xf32, #mtp.layout<@mesh, tp = R>>, tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %m = mtp.mul %a, %b : (tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>, tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %p = mtp.reduce_sum %m dims [0, 1] : (tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>
  %l = mtp.reduce_from %p ["tp"] : (tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<f32, #mtp.layout<@mesh>>
  // CHECK: %[[Q:.*]] = mtp.parameter
  // CHECK-NEXT: %[[K:.*]] = mtp.parameter
  // CHECK-NEXT: %[[F:.*]] = mtp.copy_to {{.*}}{pair = 1 : i64}
  // CHECK-NEXT: %[[A:.*]] = mtp.matmul
  // CHECK-NEXT: %[[B:.*]] = mtp.matmul
  // CHECK-NEXT: %[[M:.*]] = mtp.mul
  // CHECK-NEXT: %[[P:.*]] = mtp.reduce_sum
  // CHECK-NEXT: %[[L:.*]] = mtp.reduce_from {{.*}}{pair = 0 : i64}
  // CHECK-NEXT: %[[G0:.*]] = mtp.constant {mtp.backward} dense<1.000000e+00> : tensor<f32> in tensor<f32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G1:.*]] = mtp.copy_to %[[G0]] ["tp"] {pair = 0 : i64, phase = "backward"} : {{.*}} -> tensor<f32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[G2:.*]] = mtp.reshape %[[G1]] : {{.*}} -> tensor<1x1xf32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[G3:.*]] = mtp.broadcast %[[G2]] : {{.*}} -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G4:.*]] = mtp.mul %[[G3]], %[[B]] : {{.*}} -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G5:.*]] = mtp.mul %[[G3]], %[[A]] : {{.*}} -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G6:.*]] = mtp.matmul %[[G5]], %[[K]] {transpose_rhs} : {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: %[[G7:.*]] = mtp.matmul %[[G4]], %[[Q]] {transpose_rhs} : {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: %[[G8:.*]] = mtp.weight_gradient %[[F]], %[[G4]] : {{.*}} -> tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G9:.*]] = mtp.add %[[G6]], %[[G7]] : {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: %[[G10:.*]] = mtp.reduce_from %[[G9]] ["tp"] {pair = 1 : i64, phase = "backward"} : {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: return %[[L]], %[[G8]], %[[G10]]
  return %l : tensor<f32, #mtp.layout<@mesh>>
}

// -----

// The scale of a norm of queries is whole and each rank normalizes its own heads:
// its gradient is a sum over the ranks, because of its type.
mtp.mesh @mesh <tp = 2>
mtp.initializer @s : tensor<16xf32> {file = "m.onnx", offset = 0 : i64, bytes = 64 : i64, parameter, trainable}
// CHECK-LABEL: func.func @norm_of_heads(
// CHECK-SAME: %[[Q:[^:]*]]:
// CHECK-SAME: tensor<16xf32, #mtp.layout<@mesh>> {mtp.gradient_of = 0 : i64}
func.func @norm_of_heads(%q: tensor<2x4x8x16xf32, #mtp.layout<@mesh, tp = S(1)>>)
    -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %s = mtp.parameter @s {mtp.trainable = 0 : i64} : tensor<16xf32, #mtp.layout<@mesh>>
  %f = mtp.copy_to %s ["tp"] : (tensor<16xf32, #mtp.layout<@mesh>>) -> tensor<16xf32, #mtp.layout<@mesh, tp = R>>
  %n = mtp.rms_norm %q, %f {epsilon = 1.0e-6 : f64} : (tensor<2x4x8x16xf32, #mtp.layout<@mesh, tp = S(1)>>, tensor<16xf32, #mtp.layout<@mesh, tp = R>>) -> tensor<2x4x8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %p = mtp.reduce_sum %n dims [0, 1, 2, 3] : (tensor<2x4x8x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>
  %l = mtp.reduce_from %p ["tp"] : (tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<f32, #mtp.layout<@mesh>>
  // CHECK: %[[S:.*]] = mtp.parameter
  // CHECK-NEXT: %[[F:.*]] = mtp.copy_to {{.*}}{pair = 1 : i64}
  // CHECK-NEXT: %[[N:.*]] = mtp.rms_norm
  // CHECK-NEXT: %[[P:.*]] = mtp.reduce_sum
  // CHECK-NEXT: %[[L:.*]] = mtp.reduce_from {{.*}}{pair = 0 : i64}
  // CHECK-NEXT: %[[G0:.*]] = mtp.constant {mtp.backward} dense<1.000000e+00> : tensor<f32> in tensor<f32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G1:.*]] = mtp.copy_to %[[G0]] ["tp"] {pair = 0 : i64, phase = "backward"} : {{.*}} -> tensor<f32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[G2:.*]] = mtp.reshape %[[G1]] : {{.*}} -> tensor<1x1x1x1xf32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[G3:.*]] = mtp.broadcast %[[G2]] : {{.*}} -> tensor<2x4x8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G4:.*]] = mtp.constant dense<1.000000e+00> : tensor<16xf32> in tensor<16xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G5:.*]] = mtp.rms_norm %[[Q]], %[[G4]] {epsilon = 9.9999999999999995E-7 : f64} : {{.*}} -> tensor<2x4x8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G6:.*]] = mtp.mul %[[G3]], %[[G5]] : {{.*}} -> tensor<2x4x8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G7:.*]] = mtp.reduce_sum %[[G6]] dims [0, 1, 2] : {{.*}} -> tensor<16xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: %[[G8:.*]] = mtp.reduce_from %[[G7]] ["tp"] {pair = 1 : i64, phase = "backward"} : {{.*}} -> tensor<16xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: return %[[L]], %[[G8]]
  return %l : tensor<f32, #mtp.layout<@mesh>>
}

// -----

// A tied table, cut by rows: the look-up's gradient and the product's have the
// same rows and are added without communication.
mtp.mesh @mesh <tp = 2>
mtp.initializer @e : tensor<101x8xf32> {file = "m.onnx", offset = 0 : i64, bytes = 3232 : i64, parameter, trainable}
// CHECK-LABEL: func.func @tied_embedding(
// CHECK-SAME: %[[I:[^:]*]]:
// CHECK-SAME: tensor<101x8xf32, #mtp.layout<@mesh, tp = S(0)>> {mtp.gradient_of = 0 : i64}
func.func @tied_embedding(%i: tensor<2x3xi64, #mtp.layout<@mesh>>) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %e = mtp.parameter @e {mtp.trainable = 0 : i64} : tensor<101x8xf32, #mtp.layout<@mesh, tp = S(0)>>
  %p = mtp.gather %e[%i] dim 0 : (tensor<101x8xf32, #mtp.layout<@mesh, tp = S(0)>>, tensor<2x3xi64, #mtp.layout<@mesh>>) -> tensor<2x3x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  %x = mtp.all_reduce %p ["tp"] : (tensor<2x3x8xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<2x3x8xf32, #mtp.layout<@mesh, tp = R>>
  %z = mtp.matmul %x, %e {transpose_rhs} : (tensor<2x3x8xf32, #mtp.layout<@mesh, tp = R>>, tensor<101x8xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<2x3x101xf32, #mtp.layout<@mesh, tp = S(2)>>
  %r = mtp.reduce_sum %z dims [0, 1, 2] : (tensor<2x3x101xf32, #mtp.layout<@mesh, tp = S(2)>>) -> tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>
  %l = mtp.reduce_from %r ["tp"] : (tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<f32, #mtp.layout<@mesh>>
  // CHECK: %[[E:.*]] = mtp.parameter
  // CHECK-NEXT: %[[P:.*]] = mtp.gather
  // CHECK-NEXT: %[[X:.*]] = mtp.all_reduce {{.*}}{pair = 1 : i64}
  // CHECK-NEXT: %[[Z:.*]] = mtp.matmul
  // CHECK-NEXT: %[[R:.*]] = mtp.reduce_sum
  // CHECK-NEXT: %[[L:.*]] = mtp.reduce_from {{.*}}{pair = 0 : i64}
  // CHECK-NEXT: %[[G0:.*]] = mtp.constant {mtp.backward} dense<1.000000e+00> : tensor<f32> in tensor<f32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G1:.*]] = mtp.copy_to %[[G0]] ["tp"] {pair = 0 : i64, phase = "backward"} : {{.*}} -> tensor<f32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[G2:.*]] = mtp.reshape %[[G1]] : {{.*}} -> tensor<1x1x1xf32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[G3:.*]] = mtp.broadcast %[[G2]] : {{.*}} -> tensor<2x3x101xf32, #mtp.layout<@mesh, tp = S(2)>>
  // CHECK-NEXT: %[[G4:.*]] = mtp.matmul %[[G3]], %[[E]] : {{.*}} -> tensor<2x3x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: %[[G5:.*]] = mtp.weight_gradient %[[G3]], %[[X]] : {{.*}} -> tensor<101x8xf32, #mtp.layout<@mesh, tp = S(0)>>
  // CHECK-NEXT: %[[G6:.*]] = mtp.all_reduce %[[G4]] ["tp"] {pair = 1 : i64, phase = "backward"} : {{.*}} -> tensor<2x3x8xf32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[G7:.*]] = mtp.gather_gradient %[[I]], %[[G6]] dim 0 : {{.*}} -> tensor<101x8xf32, #mtp.layout<@mesh, tp = S(0)>>
  // CHECK-NEXT: %[[G8:.*]] = mtp.add %[[G5]], %[[G7]] : {{.*}} -> tensor<101x8xf32, #mtp.layout<@mesh, tp = S(0)>>
  // CHECK-NEXT: return %[[L]], %[[G8]]
  return %l : tensor<f32, #mtp.layout<@mesh>>
}
