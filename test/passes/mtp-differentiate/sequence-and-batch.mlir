// RUN: mtp-opt %s -split-input-file --mtp-differentiate | FileCheck %s

// A norm on shards of the sequence: the gradients of its scale and bias are sums
// over the ranks. The gather in front of a product becomes a reduce-scatter.
mtp.mesh @mesh <tp = 2>
mtp.initializer @s : tensor<8xf32> {file = "m.onnx", offset = 0 : i64, bytes = 32 : i64, parameter, trainable}
mtp.initializer @b : tensor<8xf32> {file = "m.onnx", offset = 32 : i64, bytes = 32 : i64, parameter, trainable}
mtp.initializer @w : tensor<8x16xf32> {file = "m.onnx", offset = 64 : i64, bytes = 512 : i64, parameter}
// CHECK-LABEL: func.func @sequence_parallel_norm(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK-SAME: tensor<8xf32, #mtp.layout<@mesh>> {mtp.gradient_of = 0 : i64}
// CHECK-SAME: tensor<8xf32, #mtp.layout<@mesh>> {mtp.gradient_of = 1 : i64}
// CHECK-SAME: tensor<2x6x8xf32, #mtp.layout<@mesh, tp = S(1)>> {mtp.gradient_of = "x"}
func.func @sequence_parallel_norm(%x: tensor<2x6x8xf32, #mtp.layout<@mesh, tp = S(1)>> {mtp.wants_gradient, mtp.name = "x"})
    -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %s = mtp.parameter @s {mtp.trainable = 0 : i64} : tensor<8xf32, #mtp.layout<@mesh>>
  %b = mtp.parameter @b {mtp.trainable = 1 : i64} : tensor<8xf32, #mtp.layout<@mesh>>
  %w = mtp.parameter @w : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %fs = mtp.copy_to %s ["tp"] : (tensor<8xf32, #mtp.layout<@mesh>>) -> tensor<8xf32, #mtp.layout<@mesh, tp = R>>
  %fb = mtp.copy_to %b ["tp"] : (tensor<8xf32, #mtp.layout<@mesh>>) -> tensor<8xf32, #mtp.layout<@mesh, tp = R>>
  %n = mtp.layer_norm %x, %fs, %fb {epsilon = 1.0e-5 : f64} : (tensor<2x6x8xf32, #mtp.layout<@mesh, tp = S(1)>>, tensor<8xf32, #mtp.layout<@mesh, tp = R>>, tensor<8xf32, #mtp.layout<@mesh, tp = R>>) -> tensor<2x6x8xf32, #mtp.layout<@mesh, tp = S(1)>>
  %g = mtp.all_gather %n ["tp"] : (tensor<2x6x8xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<2x6x8xf32, #mtp.layout<@mesh, tp = R>>
  %y = mtp.matmul %g, %w : (tensor<2x6x8xf32, #mtp.layout<@mesh, tp = R>>, tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<2x6x16xf32, #mtp.layout<@mesh, tp = S(2)>>
  %p = mtp.reduce_sum %y dims [0, 1, 2] : (tensor<2x6x16xf32, #mtp.layout<@mesh, tp = S(2)>>) -> tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>
  %l = mtp.reduce_from %p ["tp"] : (tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<f32, #mtp.layout<@mesh>>
  // CHECK: %[[S:.*]] = mtp.parameter
  // CHECK-NEXT: %[[B:.*]] = mtp.parameter
  // CHECK-NEXT: %[[W:.*]] = mtp.parameter
  // CHECK-NEXT: %[[FS:.*]] = mtp.copy_to {{.*}}{pair = 3 : i64}
  // CHECK-NEXT: %[[FB:.*]] = mtp.copy_to {{.*}}{pair = 2 : i64}
  // CHECK-NEXT: %[[N:.*]] = mtp.layer_norm
  // CHECK-NEXT: %[[G:.*]] = mtp.all_gather {{.*}}{pair = 1 : i64}
  // CHECK-NEXT: %[[Y:.*]] = mtp.matmul
  // CHECK-NEXT: %[[P:.*]] = mtp.reduce_sum
  // CHECK-NEXT: %[[L:.*]] = mtp.reduce_from {{.*}}{pair = 0 : i64}
  // CHECK-NEXT: %[[G0:.*]] = mtp.constant {mtp.backward} dense<1.000000e+00> : tensor<f32> in tensor<f32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G1:.*]] = mtp.copy_to %[[G0]] ["tp"] {pair = 0 : i64, phase = "backward"} : {{.*}} -> tensor<f32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[G2:.*]] = mtp.reshape %[[G1]] : {{.*}} -> tensor<1x1x1xf32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[G3:.*]] = mtp.broadcast %[[G2]] : {{.*}} -> tensor<2x6x16xf32, #mtp.layout<@mesh, tp = S(2)>>
  // CHECK-NEXT: %[[G4:.*]] = mtp.matmul %[[G3]], %[[W]] {transpose_rhs} : {{.*}} -> tensor<2x6x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: %[[G5:.*]] = mtp.reduce_scatter %[[G4]] ["tp"] {pair = 1 : i64, phase = "backward"} : {{.*}} -> tensor<2x6x8xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G6:.*]] = mtp.layer_norm_gradient %[[X]], %[[FS]], %[[G5]] {epsilon = 1.000000e-05 : f64} : {{.*}} -> tensor<2x6x8xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G7:.*]] = mtp.constant dense<1.000000e+00> : tensor<8xf32> in tensor<8xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G8:.*]] = mtp.layer_norm %[[X]], %[[G7]] {epsilon = 1.000000e-05 : f64} : {{.*}} -> tensor<2x6x8xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G9:.*]] = mtp.mul %[[G5]], %[[G8]] : {{.*}} -> tensor<2x6x8xf32, #mtp.layout<@mesh, tp = S(1)>>
  // CHECK-NEXT: %[[G10:.*]] = mtp.reduce_sum %[[G9]] dims [0, 1] : {{.*}} -> tensor<8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: %[[G11:.*]] = mtp.reduce_sum %[[G5]] dims [0, 1] : {{.*}} -> tensor<8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: %[[G12:.*]] = mtp.reduce_from %[[G11]] ["tp"] {pair = 2 : i64, phase = "backward"} : {{.*}} -> tensor<8xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G13:.*]] = mtp.reduce_from %[[G10]] ["tp"] {pair = 3 : i64, phase = "backward"} : {{.*}} -> tensor<8xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: return %[[L]], %[[G13]], %[[G12]], %[[G6]]
  return %l : tensor<f32, #mtp.layout<@mesh>>
}

// -----

// Data parallel: a bias passes through f on dp, so its gradient is reduced once;
// activations are not.
mtp.mesh @mesh <dp = 2>
mtp.initializer @b : tensor<8xf32> {file = "m.onnx", offset = 0 : i64, bytes = 32 : i64, parameter, trainable}
// CHECK-LABEL: func.func @bias_of_a_batch(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK-SAME: tensor<8xf32, #mtp.layout<@mesh>> {mtp.gradient_of = 0 : i64}
func.func @bias_of_a_batch(%x: tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %b = mtp.parameter @b {mtp.trainable = 0 : i64} : tensor<8xf32, #mtp.layout<@mesh>>
  %f = mtp.copy_to %b ["dp"] : (tensor<8xf32, #mtp.layout<@mesh>>) -> tensor<8xf32, #mtp.layout<@mesh, dp = R>>
  %y = mtp.add %x, %f : (tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>, tensor<8xf32, #mtp.layout<@mesh, dp = R>>) -> tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>
  %p = mtp.reduce_sum %y dims [0, 1] : (tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<f32, #mtp.layout<@mesh, dp = P(sum)>>
  %l = mtp.reduce_from %p ["dp"] : (tensor<f32, #mtp.layout<@mesh, dp = P(sum)>>) -> tensor<f32, #mtp.layout<@mesh>>
  // CHECK: %[[B:.*]] = mtp.parameter
  // CHECK-NEXT: %[[F:.*]] = mtp.copy_to {{.*}}{pair = 1 : i64}
  // CHECK-NEXT: %[[Y:.*]] = mtp.add
  // CHECK-NEXT: %[[P:.*]] = mtp.reduce_sum
  // CHECK-NEXT: %[[L:.*]] = mtp.reduce_from {{.*}}{pair = 0 : i64}
  // CHECK-NEXT: %[[G0:.*]] = mtp.constant {mtp.backward} dense<1.000000e+00> : tensor<f32> in tensor<f32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G1:.*]] = mtp.copy_to %[[G0]] ["dp"] {pair = 0 : i64, phase = "backward"} : {{.*}} -> tensor<f32, #mtp.layout<@mesh, dp = R>>
  // CHECK-NEXT: %[[G2:.*]] = mtp.reshape %[[G1]] : {{.*}} -> tensor<1x1xf32, #mtp.layout<@mesh, dp = R>>
  // CHECK-NEXT: %[[G3:.*]] = mtp.broadcast %[[G2]] : {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>
  // CHECK-NEXT: %[[G4:.*]] = mtp.reduce_sum %[[G3]] dims [0] : {{.*}} -> tensor<8xf32, #mtp.layout<@mesh, dp = P(sum)>>
  // CHECK-NEXT: %[[G5:.*]] = mtp.reduce_from %[[G4]] ["dp"] {pair = 1 : i64, phase = "backward"} : {{.*}} -> tensor<8xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: return %[[L]], %[[G5]]
  return %l : tensor<f32, #mtp.layout<@mesh>>
}

// -----

// ZeRO 3: a weight stored in blocks on dp, gathered where it is used. The
// conjugate of the gather is the reduce-scatter of the gradient.
mtp.mesh @mesh <dp = 2>
mtp.initializer @w : tensor<8x4xf32> {file = "m.onnx", offset = 0 : i64, bytes = 128 : i64, parameter, trainable}
// CHECK-LABEL: func.func @weight_in_blocks(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK-SAME: tensor<8x4xf32, #mtp.layout<@mesh, dp = S(0)>> {mtp.gradient_of = 0 : i64}
func.func @weight_in_blocks(%x: tensor<6x8xf32, #mtp.layout<@mesh, dp = S(0)>>) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %w = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<8x4xf32, #mtp.layout<@mesh, dp = S(0)>>
  %g = mtp.all_gather %w ["dp"] : (tensor<8x4xf32, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<8x4xf32, #mtp.layout<@mesh, dp = R>>
  %y = mtp.matmul %x, %g : (tensor<6x8xf32, #mtp.layout<@mesh, dp = S(0)>>, tensor<8x4xf32, #mtp.layout<@mesh, dp = R>>) -> tensor<6x4xf32, #mtp.layout<@mesh, dp = S(0)>>
  %p = mtp.reduce_sum %y dims [0, 1] : (tensor<6x4xf32, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<f32, #mtp.layout<@mesh, dp = P(sum)>>
  %l = mtp.reduce_from %p ["dp"] : (tensor<f32, #mtp.layout<@mesh, dp = P(sum)>>) -> tensor<f32, #mtp.layout<@mesh>>
  // CHECK: %[[W:.*]] = mtp.parameter
  // CHECK-NEXT: %[[G:.*]] = mtp.all_gather {{.*}}{pair = 1 : i64}
  // CHECK-NEXT: %[[Y:.*]] = mtp.matmul
  // CHECK-NEXT: %[[P:.*]] = mtp.reduce_sum
  // CHECK-NEXT: %[[L:.*]] = mtp.reduce_from {{.*}}{pair = 0 : i64}
  // CHECK-NEXT: %[[G0:.*]] = mtp.constant {mtp.backward} dense<1.000000e+00> : tensor<f32> in tensor<f32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G1:.*]] = mtp.copy_to %[[G0]] ["dp"] {pair = 0 : i64, phase = "backward"} : {{.*}} -> tensor<f32, #mtp.layout<@mesh, dp = R>>
  // CHECK-NEXT: %[[G2:.*]] = mtp.reshape %[[G1]] : {{.*}} -> tensor<1x1xf32, #mtp.layout<@mesh, dp = R>>
  // CHECK-NEXT: %[[G3:.*]] = mtp.broadcast %[[G2]] : {{.*}} -> tensor<6x4xf32, #mtp.layout<@mesh, dp = S(0)>>
  // CHECK-NEXT: %[[G4:.*]] = mtp.weight_gradient %[[X]], %[[G3]] : {{.*}} -> tensor<8x4xf32, #mtp.layout<@mesh, dp = P(sum)>>
  // CHECK-NEXT: %[[G5:.*]] = mtp.reduce_scatter %[[G4]] ["dp"] {pair = 1 : i64, phase = "backward"} : {{.*}} -> tensor<8x4xf32, #mtp.layout<@mesh, dp = S(0)>>
  // CHECK-NEXT: return %[[L]], %[[G5]]
  return %l : tensor<f32, #mtp.layout<@mesh>>
}

// -----

// Zero for good: behind a stopped gradient, or without a path to the loss.
mtp.mesh @mesh <dp = 2>
mtp.initializer @b : tensor<8xf32> {file = "m.onnx", offset = 0 : i64, bytes = 32 : i64, parameter, trainable}
// CHECK-LABEL: func.func @stopped(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK-SAME: %[[U:[^:]*]]:
// CHECK-SAME: tensor<8xf32, #mtp.layout<@mesh>> {mtp.gradient_of = 0 : i64, mtp.unreached}
// CHECK-SAME: tensor<3xf32, #mtp.layout<@mesh, dp = S(0)>> {mtp.gradient_of = "u", mtp.unreached}
func.func @stopped(%x: tensor<4x8xf32, #mtp.layout<@mesh>>, %u: tensor<3xf32, #mtp.layout<@mesh, dp = S(0)>> {mtp.wants_gradient, mtp.name = "u"}) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %b = mtp.parameter @b {mtp.trainable = 0 : i64} : tensor<8xf32, #mtp.layout<@mesh>>
  %s = mtp.stop_gradient %b : (tensor<8xf32, #mtp.layout<@mesh>>) -> tensor<8xf32, #mtp.layout<@mesh>>
  %y = mtp.add %x, %s : (tensor<4x8xf32, #mtp.layout<@mesh>>, tensor<8xf32, #mtp.layout<@mesh>>) -> tensor<4x8xf32, #mtp.layout<@mesh>>
  %l = mtp.reduce_sum %y dims [0, 1] : (tensor<4x8xf32, #mtp.layout<@mesh>>) -> tensor<f32, #mtp.layout<@mesh>>
  // CHECK: %[[B:.*]] = mtp.parameter
  // CHECK-NEXT: %[[S:.*]] = mtp.stop_gradient
  // CHECK-NEXT: %[[Y:.*]] = mtp.add
  // CHECK-NEXT: %[[L:.*]] = mtp.reduce_sum
  // CHECK-NEXT: %[[G0:.*]] = mtp.constant {mtp.backward} dense<1.000000e+00> : tensor<f32> in tensor<f32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G1:.*]] = mtp.constant dense<0.000000e+00> : tensor<8xf32> in tensor<8xf32, #mtp.layout<@mesh>>
  // CHECK-NEXT: %[[G2:.*]] = mtp.constant dense<0.000000e+00> : tensor<3xf32> in tensor<3xf32, #mtp.layout<@mesh, dp = S(0)>>
  // CHECK-NEXT: return %[[L]], %[[G1]], %[[G2]]
  return %l : tensor<f32, #mtp.layout<@mesh>>
}
