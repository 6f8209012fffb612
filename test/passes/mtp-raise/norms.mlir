// RUN: mtp-opt %s --mtp-raise -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @rms_norm_by_reciprocal_root
func.func @rms_norm_by_reciprocal_root(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %two = mtp.constant dense<2.0> : tensor<f32>
  %n = mtp.constant dense<0.125> : tensor<f32>
  %e = mtp.constant dense<1.0e-05> : tensor<f32>
  // CHECK: mtp.rms_norm %arg0, %arg1 {epsilon = 9.99{{.*}}E-6 : f64}
  %0 = mtp.pow %x, %two : (tensor<2x4x8xf32>, tensor<f32>) -> tensor<2x4x8xf32>
  %1 = mtp.reduce_sum %0 dims [2] {keep} : (tensor<2x4x8xf32>) -> tensor<2x4x1xf32>
  %2 = mtp.mul %1, %n : (tensor<2x4x1xf32>, tensor<f32>) -> tensor<2x4x1xf32>
  %3 = mtp.add %2, %e : (tensor<2x4x1xf32>, tensor<f32>) -> tensor<2x4x1xf32>
  %4 = mtp.sqrt %3 : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %5 = mtp.reciprocal %4 : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %6 = mtp.mul %x, %5 : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  %7 = mtp.mul %w, %6 : (tensor<8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %7 : tensor<2x4x8xf32>
}

// -----

// CHECK-LABEL: func.func @layer_norm_in_nine_steps
func.func @layer_norm_in_nine_steps(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %n = mtp.constant dense<0.125> : tensor<f32>
  %two = mtp.constant dense<2.0> : tensor<f32>
  %e = mtp.constant dense<1.0e-12> : tensor<f32>
  // CHECK: mtp.layer_norm %arg0, %arg1, %arg2
  %s = mtp.reduce_sum %x dims [1] {keep} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %m = mtp.mul %s, %n : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %d = mtp.sub %x, %m : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %q = mtp.pow %d, %two : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %s2 = mtp.reduce_sum %q dims [1] {keep} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %v = mtp.mul %s2, %n : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %ve = mtp.add %v, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = mtp.sqrt %ve : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %h = mtp.div %d, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %g = mtp.mul %h, %w : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %y = mtp.add %g, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// The scale has more than the last dimension: no norm.
// CHECK-LABEL: func.func @a_scale_of_rank_two_stays
func.func @a_scale_of_rank_two_stays(%x: tensor<4x8xf32>, %w: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %n = mtp.constant dense<0.125> : tensor<f32>
  %e = mtp.constant dense<1.0e-05> : tensor<f32>
  // CHECK-NOT: mtp.rms_norm
  %0 = mtp.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mtp.reduce_sum %0 dims [1] {keep} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = mtp.mul %1, %n : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %3 = mtp.add %2, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %4 = mtp.rsqrt %3 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %5 = mtp.mul %x, %4 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %6 = mtp.mul %w, %5 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}
