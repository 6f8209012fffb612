// RUN: mtp-opt %s -split-input-file --mtp-differentiate --mtp-recompute | FileCheck %s
// RUN: mtp-opt %s -split-input-file --mtp-differentiate --mtp-recompute=mode=none | FileCheck %s --check-prefix=NONE
// RUN: mtp-opt %s -split-input-file --mtp-differentiate --mtp-recompute=layers=1 | FileCheck %s --check-prefix=FIRST
// RUN: %exits 1 mtp-opt %s --mtp-recompute=mode=all 2>&1 | FileCheck %s --check-prefix=BAD
// BAD: recompute mode is none or layers, not 'all'

// Two blocks around a residual stream: what is inside of a block is computed
// again from the stream in front of it, the later block first. The product that
// ends a block is not. With layers=1 only the first block is computed again.
mtp.mesh @mesh <tp = 1>
mtp.initializer @e : tensor<20x8xf32> {file = "m.onnx", offset = 0 : i64, bytes = 640 : i64, parameter}
mtp.initializer @v0 : tensor<8x16xf32> {file = "m.onnx", offset = 640 : i64, bytes = 512 : i64, parameter, trainable}
mtp.initializer @w0 : tensor<16x8xf32> {file = "m.onnx", offset = 1152 : i64, bytes = 512 : i64, parameter, trainable}
mtp.initializer @v1 : tensor<8x16xf32> {file = "m.onnx", offset = 1664 : i64, bytes = 512 : i64, parameter, trainable}
mtp.initializer @w1 : tensor<16x8xf32> {file = "m.onnx", offset = 2176 : i64, bytes = 512 : i64, parameter, trainable}
// CHECK-LABEL: func.func @two_blocks(
// CHECK-SAME: %[[I:[^:]*]]:
// NONE-LABEL: func.func @two_blocks(
// NONE-NOT: mtp.barrier
// FIRST-LABEL: func.func @two_blocks(
// FIRST-SAME: %[[I:[^:]*]]:
// FIRST: mtp.reduce_sum
// FIRST-NOT: mtp.barrier
// FIRST: mtp.weight_gradient
// FIRST-NOT: mtp.barrier
// FIRST: mtp.barrier %[[I]]
// FIRST-NEXT: mtp.gather
// FIRST-NEXT: mtp.matmul
// FIRST-NEXT: mtp.gelu
// FIRST-NOT: mtp.barrier
// FIRST: return
func.func @two_blocks(%i: tensor<4xi64, #mtp.layout<@mesh>>) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %e = mtp.parameter @e : tensor<20x8xf32, #mtp.layout<@mesh>>
  %v0 = mtp.parameter @v0 {mtp.trainable = 0 : i64} : tensor<8x16xf32, #mtp.layout<@mesh>>
  %w0 = mtp.parameter @w0 {mtp.trainable = 1 : i64} : tensor<16x8xf32, #mtp.layout<@mesh>>
  %v1 = mtp.parameter @v1 {mtp.trainable = 2 : i64} : tensor<8x16xf32, #mtp.layout<@mesh>>
  %w1 = mtp.parameter @w1 {mtp.trainable = 3 : i64} : tensor<16x8xf32, #mtp.layout<@mesh>>
  %x = mtp.gather %e[%i] dim 0 : (tensor<20x8xf32, #mtp.layout<@mesh>>, tensor<4xi64, #mtp.layout<@mesh>>) -> tensor<4x8xf32, #mtp.layout<@mesh>>
  %h0 = mtp.matmul %x, %v0 : (tensor<4x8xf32, #mtp.layout<@mesh>>, tensor<8x16xf32, #mtp.layout<@mesh>>) -> tensor<4x16xf32, #mtp.layout<@mesh>>
  %a0 = mtp.gelu %h0 : (tensor<4x16xf32, #mtp.layout<@mesh>>) -> tensor<4x16xf32, #mtp.layout<@mesh>>
  %p0 = mtp.matmul %a0, %w0 : (tensor<4x16xf32, #mtp.layout<@mesh>>, tensor<16x8xf32, #mtp.layout<@mesh>>) -> tensor<4x8xf32, #mtp.layout<@mesh>>
  %y = mtp.add %x, %p0 : (tensor<4x8xf32, #mtp.layout<@mesh>>, tensor<4x8xf32, #mtp.layout<@mesh>>) -> tensor<4x8xf32, #mtp.layout<@mesh>>
  %h1 = mtp.matmul %y, %v1 : (tensor<4x8xf32, #mtp.layout<@mesh>>, tensor<8x16xf32, #mtp.layout<@mesh>>) -> tensor<4x16xf32, #mtp.layout<@mesh>>
  %a1 = mtp.gelu %h1 : (tensor<4x16xf32, #mtp.layout<@mesh>>) -> tensor<4x16xf32, #mtp.layout<@mesh>>
  %p1 = mtp.matmul %a1, %w1 : (tensor<4x16xf32, #mtp.layout<@mesh>>, tensor<16x8xf32, #mtp.layout<@mesh>>) -> tensor<4x8xf32, #mtp.layout<@mesh>>
  %z = mtp.add %y, %p1 : (tensor<4x8xf32, #mtp.layout<@mesh>>, tensor<4x8xf32, #mtp.layout<@mesh>>) -> tensor<4x8xf32, #mtp.layout<@mesh>>
  %q = mtp.mul %z, %z : (tensor<4x8xf32, #mtp.layout<@mesh>>, tensor<4x8xf32, #mtp.layout<@mesh>>) -> tensor<4x8xf32, #mtp.layout<@mesh>>
  %l = mtp.reduce_sum %q dims [0, 1] : (tensor<4x8xf32, #mtp.layout<@mesh>>) -> tensor<f32, #mtp.layout<@mesh>>
  // CHECK: %[[E:.*]] = mtp.parameter @e
  // CHECK-NEXT: %[[V0:.*]] = mtp.parameter @v0
  // CHECK-NEXT: %[[W0:.*]] = mtp.parameter @w0
  // CHECK-NEXT: %[[V1:.*]] = mtp.parameter @v1
  // CHECK-NEXT: %[[W1:.*]] = mtp.parameter @w1
  // CHECK-NEXT: %[[X:.*]] = mtp.gather %[[E]][%[[I]]] dim 0
  // CHECK-NEXT: %[[H0:.*]] = mtp.matmul %[[X]], %[[V0]]
  // CHECK-NEXT: %[[A0:.*]] = mtp.gelu %[[H0]]
  // CHECK-NEXT: %[[P0:.*]] = mtp.matmul %[[A0]], %[[W0]]
  // CHECK-NEXT: %[[Y:.*]] = mtp.add %[[X]], %[[P0]]
  // CHECK-NEXT: %[[H1:.*]] = mtp.matmul %[[Y]], %[[V1]]
  // CHECK-NEXT: %[[A1:.*]] = mtp.gelu %[[H1]]
  // CHECK-NEXT: %[[P1:.*]] = mtp.matmul %[[A1]], %[[W1]]
  // CHECK-NEXT: %[[Z:.*]] = mtp.add %[[Y]], %[[P1]]
  // CHECK-NEXT: %[[Q:.*]] = mtp.mul %[[Z]], %[[Z]]
  // CHECK-NEXT: %[[L:.*]] = mtp.reduce_sum %[[Q]] dims [0, 1]
  // CHECK-NEXT: %[[G0:.*]] = mtp.constant {mtp.backward} dense<1.000000e+00>
  // CHECK-NEXT: %[[G1:.*]] = mtp.reshape %[[G0]]
  // CHECK-NEXT: %[[G2:.*]] = mtp.broadcast %[[G1]]
  // CHECK-NEXT: %[[G3:.*]] = mtp.mul %[[G2]], %[[Z]]
  // CHECK-NEXT: %[[G4:.*]] = mtp.mul %[[G2]], %[[Z]]
  // CHECK-NEXT: %[[G5:.*]] = mtp.add %[[G3]], %[[G4]]
  // CHECK-NEXT: %[[G6:.*]] = mtp.matmul %[[G5]], %[[W1]] {transpose_rhs}
  // CHECK-NEXT: %[[G7:.*]] = mtp.barrier %[[Y]]
  // CHECK-NEXT: %[[G8:.*]] = mtp.matmul %[[G7]], %[[V1]]
  // CHECK-NEXT: %[[G9:.*]] = mtp.gelu %[[G8]]
  // CHECK-NEXT: %[[G10:.*]] = mtp.weight_gradient %[[G9]], %[[G5]]
  // CHECK-NEXT: %[[G11:.*]] = mtp.gelu_gradient %[[G8]], %[[G6]]
  // CHECK-NEXT: %[[G12:.*]] = mtp.matmul %[[G11]], %[[V1]] {transpose_rhs}
  // CHECK-NEXT: %[[G13:.*]] = mtp.weight_gradient %[[Y]], %[[G11]]
  // CHECK-NEXT: %[[G14:.*]] = mtp.add %[[G5]], %[[G12]]
  // CHECK-NEXT: %[[G15:.*]] = mtp.matmul %[[G14]], %[[W0]] {transpose_rhs}
  // CHECK-NEXT: %[[G16:.*]] = mtp.barrier %[[I]]
  // CHECK-NEXT: %[[G17:.*]] = mtp.gather %[[E]][%[[G16]]] dim 0
  // CHECK-NEXT: %[[G18:.*]] = mtp.matmul %[[G17]], %[[V0]]
  // CHECK-NEXT: %[[G19:.*]] = mtp.gelu %[[G18]]
  // CHECK-NEXT: %[[G20:.*]] = mtp.weight_gradient %[[G19]], %[[G14]]
  // CHECK-NEXT: %[[G21:.*]] = mtp.gelu_gradient %[[G18]], %[[G15]]
  // CHECK-NEXT: %[[G22:.*]] = mtp.weight_gradient %[[G17]], %[[G21]]
  // CHECK-NEXT: return %[[L]], %[[G22]], %[[G20]], %[[G13]], %[[G10]]
  return %l : tensor<f32, #mtp.layout<@mesh>>
}
