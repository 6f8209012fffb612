// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func @softmax(%x: tensor<2x3x40xf32>) -> tensor<2x3x40xf32> {
  %0 = mtp.softmax %x dim 2 : (tensor<2x3x40xf32>) -> tensor<2x3x40xf32>
  return %0 : tensor<2x3x40xf32>
}
func.func @masked_softmax(%x: tensor<2x3x8x8xf32>, %m: tensor<2x1x1x8xi1>) -> tensor<2x3x8x8xf32> {
  %s = mtp.constant dense<0.125> : tensor<f32>
  %n = mtp.constant dense<-1.0e9> : tensor<f32>
  %0 = mtp.mul %x, %s : (tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %1 = mtp.select %m, %0, %n : (tensor<2x1x1x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %2 = mtp.softmax %1 dim 3 : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  return %2 : tensor<2x3x8x8xf32>
}
func.func @softmax_middle(%x: tensor<2x5x6xf32>) -> tensor<2x5x6xf32> {
  %0 = mtp.softmax %x dim 1 : (tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  return %0 : tensor<2x5x6xf32>
}
func.func @log_softmax(%x: tensor<7x33xf32>) -> tensor<7x33xf32> {
  %0 = mtp.log_softmax %x dim 1 : (tensor<7x33xf32>) -> tensor<7x33xf32>
  return %0 : tensor<7x33xf32>
}
func.func @residual_layer_norm(%x: tensor<2x5x48xf32>, %y: tensor<2x5x48xf32>, %g: tensor<48xf32>, %b: tensor<48xf32>) -> (tensor<2x5x48xf32>, tensor<2x5x48xf32>) {
  %0 = mtp.add %x, %y : (tensor<2x5x48xf32>, tensor<2x5x48xf32>) -> tensor<2x5x48xf32>
  %1 = mtp.layer_norm %0, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<2x5x48xf32>, tensor<48xf32>, tensor<48xf32>) -> tensor<2x5x48xf32>
  return %0, %1 : tensor<2x5x48xf32>, tensor<2x5x48xf32>
}
func.func @layer_norm_two_dims(%x: tensor<3x4x6xf32>, %g: tensor<4x6xf32>) -> tensor<3x4x6xf32> {
  %1 = mtp.layer_norm %x, %g {epsilon = 1.0e-5 : f64} : (tensor<3x4x6xf32>, tensor<4x6xf32>) -> tensor<3x4x6xf32>
  return %1 : tensor<3x4x6xf32>
}
func.func @rms_norm(%x: tensor<5x48xf32>, %g: tensor<48xf32>) -> tensor<5x48xf32> {
  %1 = mtp.rms_norm %x, %g {epsilon = 1.0e-6 : f64} : (tensor<5x48xf32>, tensor<48xf32>) -> tensor<5x48xf32>
  return %1 : tensor<5x48xf32>
}
func.func @embedding_norm(%t: tensor<50x16xf32>, %i: tensor<2x5xi64> {mtp.below = 50 : i64}, %g: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<2x5x16xf32> {
  %0 = mtp.gather %t[%i] dim 0 : (tensor<50x16xf32>, tensor<2x5xi64>) -> tensor<2x5x16xf32>
  %1 = mtp.layer_norm %0, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<2x5x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x5x16xf32>
  return %1 : tensor<2x5x16xf32>
}
func.func @decomposed_norm(%x: tensor<4x7x32xf32>, %g: tensor<32xf32>) -> tensor<4x7x32xf32> {
  %n = mtp.constant dense<0.03125> : tensor<f32>
  %e = mtp.constant dense<1.0e-5> : tensor<f32>
  %two = mtp.constant dense<2.0> : tensor<f32>
  %0 = mtp.reduce_sum %x dims [2] {keep} : (tensor<4x7x32xf32>) -> tensor<4x7x1xf32>
  %1 = mtp.mul %0, %n : (tensor<4x7x1xf32>, tensor<f32>) -> tensor<4x7x1xf32>
  %2 = mtp.sub %x, %1 : (tensor<4x7x32xf32>, tensor<4x7x1xf32>) -> tensor<4x7x32xf32>
  %3 = mtp.pow %2, %two : (tensor<4x7x32xf32>, tensor<f32>) -> tensor<4x7x32xf32>
  %4 = mtp.reduce_sum %3 dims [2] {keep} : (tensor<4x7x32xf32>) -> tensor<4x7x1xf32>
  %5 = mtp.mul %4, %n : (tensor<4x7x1xf32>, tensor<f32>) -> tensor<4x7x1xf32>
  %6 = mtp.add %5, %e : (tensor<4x7x1xf32>, tensor<f32>) -> tensor<4x7x1xf32>
  %7 = mtp.sqrt %6 : (tensor<4x7x1xf32>) -> tensor<4x7x1xf32>
  %8 = mtp.div %2, %7 : (tensor<4x7x32xf32>, tensor<4x7x1xf32>) -> tensor<4x7x32xf32>
  %9 = mtp.mul %8, %g : (tensor<4x7x32xf32>, tensor<32xf32>) -> tensor<4x7x32xf32>
  return %9 : tensor<4x7x32xf32>
}
func.func @reductions(%x: tensor<4x7x32xf32>) -> (tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>) {
  %h = mtp.constant dense<1.5> : tensor<f32>
  %y = mtp.add %x, %h : (tensor<4x7x32xf32>, tensor<f32>) -> tensor<4x7x32xf32>
  %0 = mtp.reduce_sum %y dims [2] : (tensor<4x7x32xf32>) -> tensor<4x7xf32>
  %1 = mtp.reduce_max %y dims [2] : (tensor<4x7x32xf32>) -> tensor<4x7xf32>
  %2 = mtp.reduce_min %y dims [2] : (tensor<4x7x32xf32>) -> tensor<4x7xf32>
  %3 = mtp.reduce_prod %x dims [2] : (tensor<4x7x32xf32>) -> tensor<4x7xf32>
  return %0, %1, %2, %3 : tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>
}
func.func @column_sum(%x: tensor<4x7x32xf32>) -> tensor<32xf32> {
  %0 = mtp.reduce_sum %x dims [0, 1] : (tensor<4x7x32xf32>) -> tensor<32xf32>
  return %0 : tensor<32xf32>
}
func.func @middle_mean(%x: tensor<4x7x32xf32>) -> tensor<4x32xf32> {
  %n = mtp.constant dense<0.142857> : tensor<f32>
  %0 = mtp.reduce_sum %x dims [1] : (tensor<4x7x32xf32>) -> tensor<4x32xf32>
  %1 = mtp.mul %0, %n : (tensor<4x32xf32>, tensor<f32>) -> tensor<4x32xf32>
  return %1 : tensor<4x32xf32>
}
func.func @total(%x: tensor<4x7x32xi64>) -> tensor<i64> {
  %0 = mtp.reduce_sum %x dims [0, 1, 2] : (tensor<4x7x32xi64>) -> tensor<i64>
  return %0 : tensor<i64>
}
func.func @norm_f64(%x: tensor<5x48xf64>, %g: tensor<48xf64>, %b: tensor<48xf64>) -> tensor<5x48xf64> attributes {test.tolerance = 1.0e-14 : f64} {
  %1 = mtp.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<5x48xf64>, tensor<48xf64>, tensor<48xf64>) -> tensor<5x48xf64>
  %2 = mtp.softmax %1 dim 1 : (tensor<5x48xf64>) -> tensor<5x48xf64>
  return %2 : tensor<5x48xf64>
}
func.func @norm_of_transposed(%x: tensor<6x5x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<5x6x8xf32> {
  %0 = mtp.transpose %x [1, 0, 2] : (tensor<6x5x8xf32>) -> tensor<5x6x8xf32>
  %1 = mtp.layer_norm %0, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<5x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<5x6x8xf32>
  %2 = mtp.gelu %1 : (tensor<5x6x8xf32>) -> tensor<5x6x8xf32>
  return %2 : tensor<5x6x8xf32>
}
func.func @softmax_gradient(%y: tensor<2x3x40xf32>, %g: tensor<2x3x40xf32>) -> (tensor<2x3x40xf32>, tensor<2x3x40xf32>) {
  %0 = mtp.softmax_gradient %y, %g dim 2 : (tensor<2x3x40xf32>, tensor<2x3x40xf32>) -> tensor<2x3x40xf32>
  %1 = mtp.log_softmax_gradient %y, %g dim 2 : (tensor<2x3x40xf32>, tensor<2x3x40xf32>) -> tensor<2x3x40xf32>
  return %0, %1 : tensor<2x3x40xf32>, tensor<2x3x40xf32>
}
func.func @softmax_gradient_middle(%y: tensor<2x5x6xf32>, %g: tensor<2x5x6xf32>) -> tensor<2x5x6xf32> {
  %0 = mtp.softmax_gradient %y, %g dim 1 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  return %0 : tensor<2x5x6xf32>
}
func.func @layer_norm_gradient_of_a_sum(%x: tensor<2x5x48xf32>, %s: tensor<48xf32>, %a: tensor<2x5x48xf32>, %b: tensor<2x5x48xf32>) -> (tensor<2x5x48xf32>, tensor<2x5x48xf32>) {
  %g = mtp.add %a, %b : (tensor<2x5x48xf32>, tensor<2x5x48xf32>) -> tensor<2x5x48xf32>
  %0 = mtp.layer_norm_gradient %x, %s, %g {epsilon = 1.0e-5 : f64} : (tensor<2x5x48xf32>, tensor<48xf32>, tensor<2x5x48xf32>) -> tensor<2x5x48xf32>
  %1 = mtp.add %0, %a : (tensor<2x5x48xf32>, tensor<2x5x48xf32>) -> tensor<2x5x48xf32>
  return %1, %g : tensor<2x5x48xf32>, tensor<2x5x48xf32>
}
func.func @layer_norm_gradient_two_dims(%x: tensor<3x4x6xf32>, %s: tensor<4x6xf32>, %g: tensor<3x4x6xf32>) -> tensor<3x4x6xf32> {
  %1 = mtp.layer_norm_gradient %x, %s, %g {epsilon = 1.0e-5 : f64} : (tensor<3x4x6xf32>, tensor<4x6xf32>, tensor<3x4x6xf32>) -> tensor<3x4x6xf32>
  return %1 : tensor<3x4x6xf32>
}
func.func @norm_gradients_f64(%x: tensor<5x48xf64>, %s: tensor<48xf64>, %g: tensor<5x48xf64>) -> (tensor<5x48xf64>, tensor<5x48xf64>, tensor<5x48xf64>) attributes {test.tolerance = 1.0e-13 : f64} {
  %0 = mtp.layer_norm_gradient %x, %s, %g {epsilon = 1.0e-5 : f64} : (tensor<5x48xf64>, tensor<48xf64>, tensor<5x48xf64>) -> tensor<5x48xf64>
  %1 = mtp.rms_norm_gradient %x, %s, %g {epsilon = 1.0e-6 : f64} : (tensor<5x48xf64>, tensor<48xf64>, tensor<5x48xf64>) -> tensor<5x48xf64>
  %2 = mtp.softmax_gradient %x, %g dim 1 : (tensor<5x48xf64>, tensor<5x48xf64>) -> tensor<5x48xf64>
  return %0, %1, %2 : tensor<5x48xf64>, tensor<5x48xf64>, tensor<5x48xf64>
}
func.func @column_sums_of_products(%x: tensor<4x9x300xf32>, %g: tensor<4x9x300xf32>, %m: tensor<4x9x1xf32>, %b: tensor<300xf32>) -> (tensor<300xf32>, tensor<300xf32>) {
  %0 = mtp.sub %x, %m : (tensor<4x9x300xf32>, tensor<4x9x1xf32>) -> tensor<4x9x300xf32>
  %1 = mtp.mul %0, %g : (tensor<4x9x300xf32>, tensor<4x9x300xf32>) -> tensor<4x9x300xf32>
  %2 = mtp.reduce_sum %1 dims [0, 1] : (tensor<4x9x300xf32>) -> tensor<300xf32>
  %3 = mtp.add %2, %b : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32>
  return %3, %2 : tensor<300xf32>, tensor<300xf32>
}
func.func @column_maxima_in_the_middle(%x: tensor<3x20x2x2x512xf64>) -> tensor<3x1x2x1x512xf64> {
  %0 = mtp.reduce_max %x dims [1, 3] {keep} : (tensor<3x20x2x2x512xf64>) -> tensor<3x1x2x1x512xf64>
  return %0 : tensor<3x1x2x1x512xf64>
}
func.func @column_sums_of_many(%x: tensor<16x1031xbf16>) -> tensor<1031xbf16> attributes {test.tolerance = 8.0e-3 : f64} {
  %0 = mtp.reduce_sum %x dims [0] : (tensor<16x1031xbf16>) -> tensor<1031xbf16>
  return %0 : tensor<1031xbf16>
}
func.func @column_sums_of_transposed(%x: tensor<40x24xi64>) -> tensor<40xi64> {
  %0 = mtp.transpose %x [1, 0] : (tensor<40x24xi64>) -> tensor<24x40xi64>
  %1 = mtp.reduce_sum %0 dims [0] : (tensor<24x40xi64>) -> tensor<40xi64>
  return %1 : tensor<40xi64>
}
