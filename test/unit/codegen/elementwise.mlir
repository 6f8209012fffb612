// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func @exp(%x: tensor<5x37xf32>) -> tensor<5x37xf32> {
  %y = mtp.exp %x : (tensor<5x37xf32>) -> tensor<5x37xf32>
  return %y : tensor<5x37xf32>
}
func.func @bias_gelu(%x: tensor<5x40xf32>, %b: tensor<40xf32>) -> tensor<5x40xf32> {
  %0 = mtp.add %x, %b : (tensor<5x40xf32>, tensor<40xf32>) -> tensor<5x40xf32>
  %1 = mtp.gelu %0 : (tensor<5x40xf32>) -> tensor<5x40xf32>
  return %1 : tensor<5x40xf32>
}
func.func @gelu_tanh(%x: tensor<200xf32>) -> tensor<200xf32> {
  %1 = mtp.gelu %x {tanh} : (tensor<200xf32>) -> tensor<200xf32>
  return %1 : tensor<200xf32>
}
func.func @silu_gate(%x: tensor<3x4x20xf32>, %g: tensor<3x4x20xf32>) -> tensor<3x4x20xf32> {
  %0 = mtp.silu %x : (tensor<3x4x20xf32>) -> tensor<3x4x20xf32>
  %1 = mtp.mul %0, %g : (tensor<3x4x20xf32>, tensor<3x4x20xf32>) -> tensor<3x4x20xf32>
  return %1 : tensor<3x4x20xf32>
}
func.func @scalar_constants(%x: tensor<33xf32>) -> tensor<33xf32> {
  %c = mtp.constant dense<0.25> : tensor<f32>
  %v = mtp.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %w = mtp.broadcast %v : (tensor<3xf32>) -> tensor<11x3xf32>
  %r = mtp.reshape %w : (tensor<11x3xf32>) -> tensor<33xf32>
  %0 = mtp.mul %x, %c : (tensor<33xf32>, tensor<f32>) -> tensor<33xf32>
  %1 = mtp.add %0, %r : (tensor<33xf32>, tensor<33xf32>) -> tensor<33xf32>
  return %1 : tensor<33xf32>
}
func.func @causal_mask(%x: tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32> {
  %i = mtp.iota dim 0 : tensor<8x8xi64>
  %j = mtp.iota dim 1 : tensor<8x8xi64>
  %m = mtp.compare ge %i, %j : (tensor<8x8xi64>, tensor<8x8xi64>) -> tensor<8x8xi1>
  %n = mtp.constant dense<-1.0e4> : tensor<f32>
  %y = mtp.select %m, %x, %n : (tensor<8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  return %y : tensor<2x3x8x8xf32>
}
func.func @two_results(%x: tensor<7x9xf32>, %y: tensor<7x9xf32>) -> (tensor<7x9xf32>, tensor<63xf32>) {
  %0 = mtp.add %x, %y : (tensor<7x9xf32>, tensor<7x9xf32>) -> tensor<7x9xf32>
  %1 = mtp.tanh %0 : (tensor<7x9xf32>) -> tensor<7x9xf32>
  %2 = mtp.reshape %1 : (tensor<7x9xf32>) -> tensor<63xf32>
  return %0, %2 : tensor<7x9xf32>, tensor<63xf32>
}
func.func @integers(%a: tensor<64xi64>, %b: tensor<64xi64>) -> (tensor<64xi64>, tensor<64xi64>, tensor<64xi64>, tensor<64xi1>) {
  %0 = mtp.div %a, %b : (tensor<64xi64>, tensor<64xi64>) -> tensor<64xi64>
  %1 = mtp.mod %a, %b : (tensor<64xi64>, tensor<64xi64>) -> tensor<64xi64>
  %2 = mtp.max %a, %b : (tensor<64xi64>, tensor<64xi64>) -> tensor<64xi64>
  %3 = mtp.compare lt %a, %b : (tensor<64xi64>, tensor<64xi64>) -> tensor<64xi1>
  return %0, %1, %2, %3 : tensor<64xi64>, tensor<64xi64>, tensor<64xi64>, tensor<64xi1>
}
func.func @integers32(%a: tensor<64xi32>, %b: tensor<64xi8>, %c: tensor<64xui8>) -> (tensor<64xi32>, tensor<64xi64>, tensor<64xf32>, tensor<64xui8>) {
  %0 = mtp.convert %b : (tensor<64xi8>) -> tensor<64xi32>
  %1 = mtp.mul %0, %a : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
  %2 = mtp.convert %c : (tensor<64xui8>) -> tensor<64xi64>
  %3 = mtp.convert %c : (tensor<64xui8>) -> tensor<64xf32>
  %4 = mtp.max %c, %c : (tensor<64xui8>, tensor<64xui8>) -> tensor<64xui8>
  return %1, %2, %3, %4 : tensor<64xi32>, tensor<64xi64>, tensor<64xf32>, tensor<64xui8>
}
func.func @booleans(%a: tensor<64xi1>, %b: tensor<64xi1>) -> (tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xf32>) {
  %0 = mtp.and %a, %b : (tensor<64xi1>, tensor<64xi1>) -> tensor<64xi1>
  %1 = mtp.or %a, %b : (tensor<64xi1>, tensor<64xi1>) -> tensor<64xi1>
  %2 = mtp.xor %a, %b : (tensor<64xi1>, tensor<64xi1>) -> tensor<64xi1>
  %3 = mtp.not %a : (tensor<64xi1>) -> tensor<64xi1>
  %4 = mtp.convert %a : (tensor<64xi1>) -> tensor<64xf32>
  return %0, %1, %2, %3, %4 : tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xf32>
}
func.func @float_functions(%x: tensor<128xf32>) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) {
  %a = mtp.abs %x : (tensor<128xf32>) -> tensor<128xf32>
  %0 = mtp.sqrt %a : (tensor<128xf32>) -> tensor<128xf32>
  %1 = mtp.log %a : (tensor<128xf32>) -> tensor<128xf32>
  %2 = mtp.erf %x : (tensor<128xf32>) -> tensor<128xf32>
  %3 = mtp.tanh %x : (tensor<128xf32>) -> tensor<128xf32>
  %4 = mtp.sin %x : (tensor<128xf32>) -> tensor<128xf32>
  %5 = mtp.cos %x : (tensor<128xf32>) -> tensor<128xf32>
  %6 = mtp.sigmoid %x : (tensor<128xf32>) -> tensor<128xf32>
  %7 = mtp.round %x : (tensor<128xf32>) -> tensor<128xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
}
func.func @more_functions(%x: tensor<128xf32>) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) {
  %0 = mtp.neg %x : (tensor<128xf32>) -> tensor<128xf32>
  %1 = mtp.sign %x : (tensor<128xf32>) -> tensor<128xf32>
  %2 = mtp.relu %x : (tensor<128xf32>) -> tensor<128xf32>
  %3 = mtp.floor %x : (tensor<128xf32>) -> tensor<128xf32>
  %4 = mtp.ceil %x : (tensor<128xf32>) -> tensor<128xf32>
  %5 = mtp.silu %x : (tensor<128xf32>) -> tensor<128xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
}
func.func @powers(%x: tensor<128xf32>, %y: tensor<128xf32>) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) {
  %two = mtp.constant dense<2.0> : tensor<f32>
  %three = mtp.constant dense<3> : tensor<i64>
  %half = mtp.constant dense<0.5> : tensor<f32>
  %a = mtp.abs %x : (tensor<128xf32>) -> tensor<128xf32>
  %0 = mtp.pow %x, %two : (tensor<128xf32>, tensor<f32>) -> tensor<128xf32>
  %1 = mtp.pow %x, %three : (tensor<128xf32>, tensor<i64>) -> tensor<128xf32>
  %2 = mtp.pow %a, %half : (tensor<128xf32>, tensor<f32>) -> tensor<128xf32>
  %3 = mtp.pow %a, %y : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  return %0, %1, %2, %3 : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
}
func.func @remainders(%x: tensor<128xf32>, %y: tensor<128xf32>) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) {
  %0 = mtp.fmod %x, %y : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %1 = mtp.mod %x, %y : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %2 = mtp.div %x, %y : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %3 = mtp.min %x, %y : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  return %0, %1, %2, %3 : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
}
func.func @double_precision(%x: tensor<6x7xf64>, %y: tensor<7xf64>) -> (tensor<6x7xf64>, tensor<6x7xf64>) attributes {test.tolerance = 1.0e-15 : f64} {
  %0 = mtp.add %x, %y : (tensor<6x7xf64>, tensor<7xf64>) -> tensor<6x7xf64>
  %1 = mtp.gelu %0 : (tensor<6x7xf64>) -> tensor<6x7xf64>
  %2 = mtp.silu %0 : (tensor<6x7xf64>) -> tensor<6x7xf64>
  return %1, %2 : tensor<6x7xf64>, tensor<6x7xf64>
}
func.func @half_storage(%x: tensor<6x7xf16>, %y: tensor<6x7xbf16>) -> (tensor<6x7xf16>, tensor<6x7xbf16>) attributes {test.tolerance = 8.0e-3 : f64} {
  %0 = mtp.convert %y : (tensor<6x7xbf16>) -> tensor<6x7xf32>
  %1 = mtp.convert %x : (tensor<6x7xf16>) -> tensor<6x7xf32>
  %2 = mtp.mul %0, %1 : (tensor<6x7xf32>, tensor<6x7xf32>) -> tensor<6x7xf32>
  %3 = mtp.convert %2 : (tensor<6x7xf32>) -> tensor<6x7xf16>
  %4 = mtp.convert %2 : (tensor<6x7xf32>) -> tensor<6x7xbf16>
  return %3, %4 : tensor<6x7xf16>, tensor<6x7xbf16>
}
func.func @outer_product(%x: tensor<9x1xf32>, %y: tensor<1x21xf32>) -> tensor<9x21xf32> {
  %0 = mtp.mul %x, %y : (tensor<9x1xf32>, tensor<1x21xf32>) -> tensor<9x21xf32>
  return %0 : tensor<9x21xf32>
}
func.func @convert_to_integers(%x: tensor<64xf32>) -> (tensor<64xi64>, tensor<64xi32>, tensor<64xi1>, tensor<64xui8>) {
  %0 = mtp.convert %x : (tensor<64xf32>) -> tensor<64xi64>
  %1 = mtp.convert %x : (tensor<64xf32>) -> tensor<64xi32>
  %2 = mtp.convert %x : (tensor<64xf32>) -> tensor<64xi1>
  %3 = mtp.convert %x : (tensor<64xf32>) -> tensor<64xui8>
  return %0, %1, %2, %3 : tensor<64xi64>, tensor<64xi32>, tensor<64xi1>, tensor<64xui8>
}
func.func @rank_zero(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = mtp.add %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @activation_gradients(%x: tensor<3x17xf32>, %g: tensor<3x17xf32>) -> (tensor<3x17xf32>, tensor<3x17xf32>, tensor<3x17xf32>) {
  %0 = mtp.gelu_gradient %x, %g : (tensor<3x17xf32>, tensor<3x17xf32>) -> tensor<3x17xf32>
  %1 = mtp.gelu_gradient %x, %g {tanh} : (tensor<3x17xf32>, tensor<3x17xf32>) -> tensor<3x17xf32>
  %2 = mtp.silu_gradient %x, %g : (tensor<3x17xf32>, tensor<3x17xf32>) -> tensor<3x17xf32>
  return %0, %1, %2 : tensor<3x17xf32>, tensor<3x17xf32>, tensor<3x17xf32>
}
func.func @activation_gradients_f64(%x: tensor<3x17xf64>, %g: tensor<3x17xf64>) -> (tensor<3x17xf64>, tensor<3x17xf64>, tensor<3x17xf64>) attributes {test.tolerance = 1.0e-15 : f64} {
  %0 = mtp.gelu_gradient %x, %g : (tensor<3x17xf64>, tensor<3x17xf64>) -> tensor<3x17xf64>
  %1 = mtp.gelu_gradient %x, %g {tanh} : (tensor<3x17xf64>, tensor<3x17xf64>) -> tensor<3x17xf64>
  %2 = mtp.silu_gradient %x, %g : (tensor<3x17xf64>, tensor<3x17xf64>) -> tensor<3x17xf64>
  return %0, %1, %2 : tensor<3x17xf64>, tensor<3x17xf64>, tensor<3x17xf64>
}
func.func @dropout(%x: tensor<4x33xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> (tensor<4x33xf32>, tensor<4x33xi64>) {
  %r = mtp.iota dim 0 : tensor<4x33xi64>
  %c = mtp.iota dim 1 : tensor<4x33xi64>
  %n = mtp.constant dense<33> : tensor<i64>
  %t = mtp.constant dense<3865470566> : tensor<i64>
  %s = mtp.constant dense<1.11111111> : tensor<f32>
  %z = mtp.constant dense<0.0> : tensor<f32>
  %0 = mtp.mul %r, %n : (tensor<4x33xi64>, tensor<i64>) -> tensor<4x33xi64>
  %1 = mtp.add %0, %c : (tensor<4x33xi64>, tensor<4x33xi64>) -> tensor<4x33xi64>
  %2 = mtp.philox %1, %seed, %step {stream = 3 : i64} : (tensor<4x33xi64>, tensor<i64>, tensor<i64>) -> tensor<4x33xi64>
  %3 = mtp.compare lt %2, %t : (tensor<4x33xi64>, tensor<i64>) -> tensor<4x33xi1>
  %4 = mtp.mul %x, %s : (tensor<4x33xf32>, tensor<f32>) -> tensor<4x33xf32>
  %5 = mtp.select %3, %4, %z : (tensor<4x33xi1>, tensor<4x33xf32>, tensor<f32>) -> tensor<4x33xf32>
  return %5, %2 : tensor<4x33xf32>, tensor<4x33xi64>
}
func.func @dropout_not_active(%x: tensor<4x33xf32>) -> (tensor<4x33xf32>, tensor<4x33xi1>) {
  %0, %1 = mtp.dropout %x {ratio = 0.1 : f64, stream = 3 : i64} : (tensor<4x33xf32>) -> (tensor<4x33xf32>, tensor<4x33xi1>)
  return %0, %1 : tensor<4x33xf32>, tensor<4x33xi1>
}
