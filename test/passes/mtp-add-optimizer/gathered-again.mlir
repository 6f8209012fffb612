// RUN: mtp-opt %s --mtp-differentiate --mtp-add-optimizer="optimizer=sgd zero=3" | FileCheck %s
// RUN: mtp-opt %s --mtp-differentiate --mtp-recompute=mode=layers --mtp-add-optimizer="optimizer=sgd zero=3" | FileCheck %s
// RUN: mtp-opt %s --mtp-differentiate --mtp-add-optimizer="optimizer=sgd zero=2" | FileCheck %s --check-prefix=TWO

// ZeRO 3: the second weight, which the gradient of the first layer's output
// needs, is gathered again for it; the first, which nothing needs, is not.
mtp.mesh @mesh <dp = 2>
mtp.initializer @v : tensor<8x8xf32> {file = "m.onnx", offset = 0 : i64, bytes = 256 : i64, parameter, trainable}
mtp.initializer @w : tensor<8x4xf32> {file = "m.onnx", offset = 256 : i64, bytes = 128 : i64, parameter, trainable}
// CHECK-LABEL: func.func @main(
// CHECK: %[[V:.*]] = mtp.parameter @v
// CHECK: %[[W:.*]] = mtp.parameter @w
// CHECK: mtp.all_gather %[[V]] ["dp"] {pair
// CHECK: mtp.all_gather %[[W]] ["dp"] {pair
// CHECK: mtp.constant {mtp.backward}
// CHECK-NOT: mtp.all_gather
// CHECK: %[[B:.*]] = mtp.barrier %[[W]]
// CHECK-NEXT: %[[G:.*]] = mtp.all_gather %[[B]] ["dp"] {mtp.again, phase = "backward"}
// CHECK-NEXT: mtp.matmul {{.*}}%[[G]]
// CHECK-NOT: mtp.all_gather
// TWO-COUNT-2: mtp.all_gather
// TWO: mtp.constant {mtp.backward}
// TWO-NOT: mtp.all_gather
func.func @main(%x: tensor<6x8xf32, #mtp.layout<@mesh, dp = S(0)>>) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %v = mtp.parameter @v {mtp.trainable = 0 : i64} : tensor<8x8xf32, #mtp.layout<@mesh, dp = S(0)>>
  %w = mtp.parameter @w {mtp.trainable = 1 : i64} : tensor<8x4xf32, #mtp.layout<@mesh, dp = S(0)>>
  %f = mtp.all_gather %v ["dp"] : (tensor<8x8xf32, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<8x8xf32, #mtp.layout<@mesh, dp = R>>
  %g = mtp.all_gather %w ["dp"] : (tensor<8x4xf32, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<8x4xf32, #mtp.layout<@mesh, dp = R>>
  %h = mtp.matmul %x, %f : (tensor<6x8xf32, #mtp.layout<@mesh, dp = S(0)>>, tensor<8x8xf32, #mtp.layout<@mesh, dp = R>>) -> tensor<6x8xf32, #mtp.layout<@mesh, dp = S(0)>>
  %y = mtp.matmul %h, %g : (tensor<6x8xf32, #mtp.layout<@mesh, dp = S(0)>>, tensor<8x4xf32, #mtp.layout<@mesh, dp = R>>) -> tensor<6x4xf32, #mtp.layout<@mesh, dp = S(0)>>
  %p = mtp.reduce_sum %y dims [0, 1] : (tensor<6x4xf32, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<f32, #mtp.layout<@mesh, dp = P(sum)>>
  %l = mtp.reduce_from %p ["dp"] : (tensor<f32, #mtp.layout<@mesh, dp = P(sum)>>) -> tensor<f32, #mtp.layout<@mesh>>
  return %l : tensor<f32, #mtp.layout<@mesh>>
}
