// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func @exp(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = mtp.exp %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @log(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = mtp.log %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @tanh(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = mtp.tanh %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @erf(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = mtp.erf %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @sigmoid(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = mtp.sigmoid %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @silu(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = mtp.silu %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
// 1 + erf(x) cancels for negative x.
func.func @gelu(%x: tensor<64xf32>) -> tensor<64xf32> attributes {test.tolerance = 1.0e-5 : f64} {
  %y = mtp.gelu %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
// 1 + erf(x) cancels for negative x.
func.func @gelu_tanh(%x: tensor<64xf32>) -> tensor<64xf32> attributes {test.tolerance = 1.0e-5 : f64} {
  %y = mtp.gelu %x {tanh} : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @sqrt(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = mtp.sqrt %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @sign(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = mtp.sign %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @relu(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = mtp.relu %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @sin(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = mtp.sin %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @square_root_by_pow(%x: tensor<64xf32>) -> tensor<64xf32> {
  %h = mtp.constant dense<0.5> : tensor<f32>
  %y = mtp.pow %x, %h : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @square(%x: tensor<64xf32>) -> tensor<64xf32> {
  %h = mtp.constant dense<2> : tensor<i64>
  %y = mtp.pow %x, %h : (tensor<64xf32>, tensor<i64>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @is_inf(%x: tensor<64xf32>) -> tensor<64xi1> {
  %y = mtp.is_inf %x : (tensor<64xf32>) -> tensor<64xi1>
  return %y : tensor<64xi1>
}
func.func @is_nan(%x: tensor<64xf32>) -> tensor<64xi1> {
  %y = mtp.is_nan %x : (tensor<64xf32>) -> tensor<64xi1>
  return %y : tensor<64xi1>
}
func.func @to_bool(%x: tensor<64xf32>) -> tensor<64xi1> {
  %y = mtp.convert %x : (tensor<64xf32>) -> tensor<64xi1>
  return %y : tensor<64xi1>
}
func.func @to_i32(%x: tensor<64xf32>) -> tensor<64xi32> {
  %y = mtp.convert %x : (tensor<64xf32>) -> tensor<64xi32>
  return %y : tensor<64xi32>
}
func.func @to_u8(%x: tensor<64xf32>) -> tensor<64xui8> {
  %y = mtp.convert %x : (tensor<64xf32>) -> tensor<64xui8>
  return %y : tensor<64xui8>
}
func.func @to_bf16(%x: tensor<64xf32>) -> tensor<64xbf16> attributes {test.tolerance = 4.0e-3 : f64} {
  %y = mtp.convert %x : (tensor<64xf32>) -> tensor<64xbf16>
  return %y : tensor<64xbf16>
}
func.func @pairs(%x: tensor<64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xi1>, tensor<64x64xi1>) {
  %c = mtp.reshape %x : (tensor<64xf32>) -> tensor<64x1xf32>
  %0 = mtp.max %x, %c : (tensor<64xf32>, tensor<64x1xf32>) -> tensor<64x64xf32>
  %1 = mtp.min %x, %c : (tensor<64xf32>, tensor<64x1xf32>) -> tensor<64x64xf32>
  %2 = mtp.fmod %x, %c : (tensor<64xf32>, tensor<64x1xf32>) -> tensor<64x64xf32>
  %3 = mtp.compare le %x, %c : (tensor<64xf32>, tensor<64x1xf32>) -> tensor<64x64xi1>
  %4 = mtp.compare ne %x, %c : (tensor<64xf32>, tensor<64x1xf32>) -> tensor<64x64xi1>
  return %0, %1, %2, %3, %4 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xi1>, tensor<64x64xi1>
}
func.func @maximum(%x: tensor<64xf32>) -> tensor<f32> {
  %y = mtp.reduce_max %x dims [0] : (tensor<64xf32>) -> tensor<f32>
  return %y : tensor<f32>
}
