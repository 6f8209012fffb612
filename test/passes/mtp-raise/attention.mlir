// RUN: mtp-opt %s --mtp-raise -split-input-file | FileCheck %s

// The causal part becomes a flag; the padding stays a boolean; a row without a
// key is the mean of all values, since the mask value is finite.
// CHECK-LABEL: func.func @causal_and_padding_with_a_finite_value
func.func @causal_and_padding_with_a_finite_value(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %pad: tensor<2x1x1x8xi1>) -> tensor<2x4x8x16xf32> {
  %scale = mtp.constant dense<0.25> : tensor<f32>
  %zero = mtp.constant dense<0.0> : tensor<f32>
  %min = mtp.constant dense<-3.40282347E+38> : tensor<f32>
  // CHECK: mtp.attention %arg0, %arg1, %arg2 mask %arg3 {causal, masked_row_uniform, scale = 2.500000e-01 : f64}
  // CHECK-NOT: mtp.softmax
  %i = mtp.iota dim 0 : tensor<8x1xi64>
  %j = mtp.iota dim 1 : tensor<1x8xi64>
  %c = mtp.compare le %j, %i : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %m = mtp.and %c, %pad : (tensor<8x8xi1>, tensor<2x1x1x8xi1>) -> tensor<2x1x8x8xi1>
  %f = mtp.select %m, %zero, %min : (tensor<2x1x8x8xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1x8x8xf32>
  %s = mtp.matmul %q, %k {transpose_rhs} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %t = mtp.mul %s, %scale : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %u = mtp.add %t, %f : (tensor<2x4x8x8xf32>, tensor<2x1x8x8xf32>) -> tensor<2x4x8x8xf32>
  %p = mtp.softmax %u dim 3 : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %y = mtp.matmul %p, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %y : tensor<2x4x8x16xf32>
}

// -----

// Scale on q and k; NaN rows set to zero; key heads repeated.
// CHECK-LABEL: func.func @repeated_key_heads
func.func @repeated_key_heads(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>, %v: tensor<2x2x8x16xf32>, %m: tensor<2x1x8x8xf32>) -> tensor<2x4x8x16xf32> {
  %scale = mtp.constant dense<0.5> : tensor<f32>
  %zero = mtp.constant dense<0.0> : tensor<f32>
  %k5 = mtp.reshape %k : (tensor<2x2x8x16xf32>) -> tensor<2x2x1x8x16xf32>
  %kb = mtp.broadcast %k5 : (tensor<2x2x1x8x16xf32>) -> tensor<2x2x2x8x16xf32>
  %kr = mtp.reshape %kb : (tensor<2x2x2x8x16xf32>) -> tensor<2x4x8x16xf32>
  %v5 = mtp.reshape %v : (tensor<2x2x8x16xf32>) -> tensor<2x2x1x8x16xf32>
  %vb = mtp.broadcast %v5 : (tensor<2x2x1x8x16xf32>) -> tensor<2x2x2x8x16xf32>
  %vr = mtp.reshape %vb : (tensor<2x2x2x8x16xf32>) -> tensor<2x4x8x16xf32>
  %qs = mtp.mul %q, %scale : (tensor<2x4x8x16xf32>, tensor<f32>) -> tensor<2x4x8x16xf32>
  %ks = mtp.mul %kr, %scale : (tensor<2x4x8x16xf32>, tensor<f32>) -> tensor<2x4x8x16xf32>
  // CHECK: mtp.attention %arg0, %{{.*}}, %{{.*}} mask %arg3 {masked_row_zero, scale = 2.500000e-01 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x1x8x8xf32>)
  %s = mtp.matmul %qs, %ks {transpose_rhs} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %u = mtp.add %s, %m : (tensor<2x4x8x8xf32>, tensor<2x1x8x8xf32>) -> tensor<2x4x8x8xf32>
  %p = mtp.softmax %u dim 3 : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %n = mtp.is_nan %p : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xi1>
  %z = mtp.select %n, %zero, %p : (tensor<2x4x8x8xi1>, tensor<f32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %y = mtp.matmul %z, %vr : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %y : tensor<2x4x8x16xf32>
}

// -----

// The probabilities are also an output: they have to be stored.
// CHECK-LABEL: func.func @probabilities_are_returned
func.func @probabilities_are_returned(%q: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x8xf32>) {
  // CHECK-NOT: mtp.attention
  %s = mtp.matmul %q, %q {transpose_rhs} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %p = mtp.softmax %s dim 3 : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %y = mtp.matmul %p, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %y, %p : tensor<2x4x8x16xf32>, tensor<2x4x8x8xf32>
}
