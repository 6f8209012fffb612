// RUN: mtp-opt %s --mtp-raise | FileCheck %s

// CHECK-LABEL: func.func @rotate_half
func.func @rotate_half(%x: tensor<2x4x8x16xf32>, %f: tensor<1x8x8xf32>) -> tensor<2x4x8x16xf32> {
  %t = mtp.concat dim 2 %f, %f : (tensor<1x8x8xf32>, tensor<1x8x8xf32>) -> tensor<1x8x16xf32>
  %cos = mtp.cos %t : (tensor<1x8x16xf32>) -> tensor<1x8x16xf32>
  %sin = mtp.sin %t : (tensor<1x8x16xf32>) -> tensor<1x8x16xf32>
  %c4 = mtp.reshape %cos : (tensor<1x8x16xf32>) -> tensor<1x1x8x16xf32>
  %s4 = mtp.reshape %sin : (tensor<1x8x16xf32>) -> tensor<1x1x8x16xf32>
  // CHECK: %[[C:.*]] = mtp.reshape %{{.*}} : (tensor<1x8x8xf32>) -> tensor<1x1x8x8xf32>
  // CHECK: mtp.rotary %arg0, %{{.*}}, %{{.*}} : (tensor<2x4x8x16xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) -> tensor<2x4x8x16xf32>
  // CHECK-NOT: mtp.concat
  %lo = mtp.strided_slice %x dim 3 start 0 step 1 : (tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %hi = mtp.strided_slice %x dim 3 start 8 step 1 : (tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %nh = mtp.neg %hi : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %r = mtp.concat dim 3 %nh, %lo : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x16xf32>
  %a = mtp.mul %x, %c4 : (tensor<2x4x8x16xf32>, tensor<1x1x8x16xf32>) -> tensor<2x4x8x16xf32>
  %b = mtp.mul %r, %s4 : (tensor<2x4x8x16xf32>, tensor<1x1x8x16xf32>) -> tensor<2x4x8x16xf32>
  %y = mtp.add %a, %b : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %y : tensor<2x4x8x16xf32>
}
