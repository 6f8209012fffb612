// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func @layer_norm(%x: tensor<128x768xf32>, %g: tensor<768xf32>, %b: tensor<768xf32>) -> tensor<128x768xf32> {
  %1 = mtp.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<128x768xf32>, tensor<768xf32>, tensor<768xf32>) -> tensor<128x768xf32>
  return %1 : tensor<128x768xf32>
}
func.func @residual_layer_norm(%x: tensor<1x128x768xf32>, %y: tensor<1x128x768xf32>, %c: tensor<768xf32>, %g: tensor<768xf32>, %b: tensor<768xf32>) -> (tensor<1x128x768xf32>, tensor<1x128x768xf32>) {
  %0 = mtp.add %y, %c : (tensor<1x128x768xf32>, tensor<768xf32>) -> tensor<1x128x768xf32>
  %2 = mtp.add %0, %x : (tensor<1x128x768xf32>, tensor<1x128x768xf32>) -> tensor<1x128x768xf32>
  %1 = mtp.layer_norm %2, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<1x128x768xf32>, tensor<768xf32>, tensor<768xf32>) -> tensor<1x128x768xf32>
  return %2, %1 : tensor<1x128x768xf32>, tensor<1x128x768xf32>
}
func.func @gelu(%x: tensor<128x3072xf32>, %b: tensor<3072xf32>) -> tensor<128x3072xf32> {
  %0 = mtp.add %x, %b : (tensor<128x3072xf32>, tensor<3072xf32>) -> tensor<128x3072xf32>
  %1 = mtp.gelu %0 : (tensor<128x3072xf32>) -> tensor<128x3072xf32>
  return %1 : tensor<128x3072xf32>
}
func.func @gelu_768(%x: tensor<128x768xf32>) -> tensor<128x768xf32> {
  %1 = mtp.gelu %x : (tensor<128x768xf32>) -> tensor<128x768xf32>
  return %1 : tensor<128x768xf32>
}
func.func @softmax_768(%x: tensor<128x768xf32>) -> tensor<128x768xf32> {
  %1 = mtp.softmax %x dim 1 : (tensor<128x768xf32>) -> tensor<128x768xf32>
  return %1 : tensor<128x768xf32>
}
func.func @gelu_tanh(%x: tensor<128x3072xf32>) -> tensor<128x3072xf32> {
  %1 = mtp.gelu %x {tanh} : (tensor<128x3072xf32>) -> tensor<128x3072xf32>
  return %1 : tensor<128x3072xf32>
}
func.func @softmax(%x: tensor<12x128x128xf32>) -> tensor<12x128x128xf32> {
  %0 = mtp.softmax %x dim 2 : (tensor<12x128x128xf32>) -> tensor<12x128x128xf32>
  return %0 : tensor<12x128x128xf32>
}
func.func @masked_softmax(%x: tensor<1x12x128x128xf32>, %m: tensor<1x1x1x128xi1>) -> tensor<1x12x128x128xf32> {
  %s = mtp.constant dense<0.125> : tensor<f32>
  %n = mtp.constant dense<-1.0e9> : tensor<f32>
  %0 = mtp.mul %x, %s : (tensor<1x12x128x128xf32>, tensor<f32>) -> tensor<1x12x128x128xf32>
  %1 = mtp.select %m, %0, %n : (tensor<1x1x1x128xi1>, tensor<1x12x128x128xf32>, tensor<f32>) -> tensor<1x12x128x128xf32>
  %2 = mtp.softmax %1 dim 3 : (tensor<1x12x128x128xf32>) -> tensor<1x12x128x128xf32>
  return %2 : tensor<1x12x128x128xf32>
}
func.func @heads(%x: tensor<1x128x768xf32>, %b: tensor<768xf32>) -> tensor<1x12x128x64xf32> {
  %0 = mtp.add %x, %b : (tensor<1x128x768xf32>, tensor<768xf32>) -> tensor<1x128x768xf32>
  %1 = mtp.reshape %0 : (tensor<1x128x768xf32>) -> tensor<1x128x12x64xf32>
  %2 = mtp.transpose %1 [0, 2, 1, 3] : (tensor<1x128x12x64xf32>) -> tensor<1x12x128x64xf32>
  return %2 : tensor<1x12x128x64xf32>
}
func.func @transposed_heads(%x: tensor<1x128x12x64xf32>) -> tensor<1x12x64x128xf32> {
  %2 = mtp.transpose %x [0, 2, 3, 1] : (tensor<1x128x12x64xf32>) -> tensor<1x12x64x128xf32>
  return %2 : tensor<1x12x64x128xf32>
}
func.func @rotate_half(%x: tensor<1x12x128x64xf32>, %c: tensor<128x64xf32>, %s: tensor<128x64xf32>) -> tensor<1x12x128x64xf32> {
  %a = mtp.strided_slice %x dim 3 start 0 step 1 : (tensor<1x12x128x64xf32>) -> tensor<1x12x128x32xf32>
  %b = mtp.strided_slice %x dim 3 start 32 step 1 : (tensor<1x12x128x64xf32>) -> tensor<1x12x128x32xf32>
  %n = mtp.neg %b : (tensor<1x12x128x32xf32>) -> tensor<1x12x128x32xf32>
  %r = mtp.concat dim 3 %n, %a : (tensor<1x12x128x32xf32>, tensor<1x12x128x32xf32>) -> tensor<1x12x128x64xf32>
  %0 = mtp.mul %x, %c : (tensor<1x12x128x64xf32>, tensor<128x64xf32>) -> tensor<1x12x128x64xf32>
  %1 = mtp.mul %r, %s : (tensor<1x12x128x64xf32>, tensor<128x64xf32>) -> tensor<1x12x128x64xf32>
  %2 = mtp.add %0, %1 : (tensor<1x12x128x64xf32>, tensor<1x12x128x64xf32>) -> tensor<1x12x128x64xf32>
  return %2 : tensor<1x12x128x64xf32>
}
func.func @rotary_interleaved(%x: tensor<1x12x128x64xf32>, %c: tensor<128x32xf32>, %s: tensor<128x32xf32>) -> tensor<1x12x128x64xf32> {
  %0 = mtp.rotary %x, %c, %s {interleaved} : (tensor<1x12x128x64xf32>, tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<1x12x128x64xf32>
  return %0 : tensor<1x12x128x64xf32>
}
func.func @embedding(%t: tensor<3000x768xf32>, %i: tensor<1x128xi64> {mtp.below = 3000 : i64}, %p: tensor<128x768xf32>) -> tensor<1x128x768xf32> {
  %0 = mtp.gather %t[%i] dim 0 : (tensor<3000x768xf32>, tensor<1x128xi64>) -> tensor<1x128x768xf32>
  %1 = mtp.add %0, %p : (tensor<1x128x768xf32>, tensor<128x768xf32>) -> tensor<1x128x768xf32>
  return %1 : tensor<1x128x768xf32>
}
func.func @add(%x: tensor<1x128x768xf32>, %p: tensor<1x128x768xf32>) -> tensor<1x128x768xf32> {
  %1 = mtp.add %x, %p : (tensor<1x128x768xf32>, tensor<1x128x768xf32>) -> tensor<1x128x768xf32>
  return %1 : tensor<1x128x768xf32>
}
func.func @column_sum(%x: tensor<128x768xf32>) -> tensor<768xf32> {
  %1 = mtp.reduce_sum %x dims [0] : (tensor<128x768xf32>) -> tensor<768xf32>
  return %1 : tensor<768xf32>
}
func.func @mask_sum(%x: tensor<128x768xf32>, %v: tensor<i64> {mtp.below = 768 : i64}) -> tensor<128xf32> {
  %0 = spmd.mask_tail %x, %v dim 1 neutral 0.0 : f32 in tensor<128x768xf32>
  %1 = mtp.reduce_sum %0 dims [1] : (tensor<128x768xf32>) -> tensor<128xf32>
  return %1 : tensor<128xf32>
}
func.func @take_columns(%x: tensor<128x768xf32>, %o: tensor<i64> {mtp.below = 384 : i64}) -> tensor<128x384xf32> {
  %0 = spmd.take_block %x, %o dim 1 : tensor<128x768xf32> to tensor<128x384xf32>
  return %0 : tensor<128x384xf32>
}
func.func @decomposed_norm(%x: tensor<1x128x768xf32>, %r: tensor<1x128x768xf32>, %g: tensor<768xf32>) -> (tensor<1x128x768xf32>, tensor<1x128x768xf32>) {
  %n = mtp.constant dense<0.00130208> : tensor<f32>
  %e = mtp.constant dense<1.0e-5> : tensor<f32>
  %two = mtp.constant dense<2.0> : tensor<f32>
  %y = mtp.add %x, %r : (tensor<1x128x768xf32>, tensor<1x128x768xf32>) -> tensor<1x128x768xf32>
  %0 = mtp.reduce_sum %y dims [2] {keep} : (tensor<1x128x768xf32>) -> tensor<1x128x1xf32>
  %1 = mtp.mul %0, %n : (tensor<1x128x1xf32>, tensor<f32>) -> tensor<1x128x1xf32>
  %2 = mtp.sub %y, %1 : (tensor<1x128x768xf32>, tensor<1x128x1xf32>) -> tensor<1x128x768xf32>
  %3 = mtp.pow %2, %two : (tensor<1x128x768xf32>, tensor<f32>) -> tensor<1x128x768xf32>
  %4 = mtp.reduce_sum %3 dims [2] {keep} : (tensor<1x128x768xf32>) -> tensor<1x128x1xf32>
  %5 = mtp.mul %4, %n : (tensor<1x128x1xf32>, tensor<f32>) -> tensor<1x128x1xf32>
  %6 = mtp.add %5, %e : (tensor<1x128x1xf32>, tensor<f32>) -> tensor<1x128x1xf32>
  %7 = mtp.sqrt %6 : (tensor<1x128x1xf32>) -> tensor<1x128x1xf32>
  %8 = mtp.div %2, %7 : (tensor<1x128x768xf32>, tensor<1x128x1xf32>) -> tensor<1x128x768xf32>
  %9 = mtp.mul %8, %g : (tensor<1x128x768xf32>, tensor<768xf32>) -> tensor<1x128x768xf32>
  return %9, %y : tensor<1x128x768xf32>, tensor<1x128x768xf32>
}
func.func @decomposed_softmax(%x: tensor<12x128x128xf32>) -> tensor<12x128x128xf32> {
  %0 = mtp.reduce_max %x dims [2] {keep} : (tensor<12x128x128xf32>) -> tensor<12x128x1xf32>
  %1 = mtp.sub %x, %0 : (tensor<12x128x128xf32>, tensor<12x128x1xf32>) -> tensor<12x128x128xf32>
  %2 = mtp.exp %1 : (tensor<12x128x128xf32>) -> tensor<12x128x128xf32>
  %3 = mtp.reduce_sum %2 dims [2] {keep} : (tensor<12x128x128xf32>) -> tensor<12x128x1xf32>
  %5 = mtp.div %2, %3 : (tensor<12x128x128xf32>, tensor<12x128x1xf32>) -> tensor<12x128x128xf32>
  return %5 : tensor<12x128x128xf32>
}
func.func @bias_gradient(%g: tensor<4x128x3072xf32>) -> tensor<3072xf32> {
  %0 = mtp.reduce_sum %g dims [0, 1] : (tensor<4x128x3072xf32>) -> tensor<3072xf32>
  return %0 : tensor<3072xf32>
}
func.func @gelu_gradient(%x: tensor<4x128x3072xf32>, %g: tensor<4x128x3072xf32>) -> tensor<4x128x3072xf32> {
  %0 = mtp.gelu_gradient %x, %g {tanh} : (tensor<4x128x3072xf32>, tensor<4x128x3072xf32>) -> tensor<4x128x3072xf32>
  return %0 : tensor<4x128x3072xf32>
}
func.func @gelu_erf_gradient(%x: tensor<4x128x3072xf32>, %g: tensor<4x128x3072xf32>) -> tensor<4x128x3072xf32> {
  %0 = mtp.gelu_gradient %x, %g : (tensor<4x128x3072xf32>, tensor<4x128x3072xf32>) -> tensor<4x128x3072xf32>
  return %0 : tensor<4x128x3072xf32>
}
func.func @layer_norm_gradient(%x: tensor<4x128x768xf32>, %s: tensor<768xf32>, %g: tensor<4x128x768xf32>, %r: tensor<4x128x768xf32>) -> tensor<4x128x768xf32> {
  %0 = mtp.layer_norm_gradient %x, %s, %g {epsilon = 1.0e-5 : f64} : (tensor<4x128x768xf32>, tensor<768xf32>, tensor<4x128x768xf32>) -> tensor<4x128x768xf32>
  %1 = mtp.add %0, %r : (tensor<4x128x768xf32>, tensor<4x128x768xf32>) -> tensor<4x128x768xf32>
  return %1 : tensor<4x128x768xf32>
}
func.func @dropout_mask(%x: tensor<512x768xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<512x768xf32> {
  %r = mtp.iota dim 0 : tensor<512x768xi64>
  %c = mtp.iota dim 1 : tensor<512x768xi64>
  %n = mtp.constant dense<768> : tensor<i64>
  %t = mtp.constant dense<3865470566> : tensor<i64>
  %z = mtp.constant dense<0.0> : tensor<f32>
  %0 = mtp.mul %r, %n : (tensor<512x768xi64>, tensor<i64>) -> tensor<512x768xi64>
  %1 = mtp.add %0, %c : (tensor<512x768xi64>, tensor<512x768xi64>) -> tensor<512x768xi64>
  %2 = mtp.philox %1, %seed, %step {stream = 3 : i64} : (tensor<512x768xi64>, tensor<i64>, tensor<i64>) -> tensor<512x768xi64>
  %3 = mtp.compare lt %2, %t : (tensor<512x768xi64>, tensor<i64>) -> tensor<512x768xi1>
  %5 = mtp.select %3, %x, %z : (tensor<512x768xi1>, tensor<512x768xf32>, tensor<f32>) -> tensor<512x768xf32>
  return %5 : tensor<512x768xf32>
}
func.func @transpose_weights(%x: tensor<768x3072xf32>) -> tensor<3072x768xf32> {
  %0 = mtp.transpose %x [1, 0] : (tensor<768x3072xf32>) -> tensor<3072x768xf32>
  return %0 : tensor<3072x768xf32>
}
