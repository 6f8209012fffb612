// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func @heads(%x: tensor<2x8x12xf32>, %b: tensor<12xf32>) -> tensor<2x3x8x4xf32> {
  %0 = mtp.add %x, %b : (tensor<2x8x12xf32>, tensor<12xf32>) -> tensor<2x8x12xf32>
  %1 = mtp.reshape %0 : (tensor<2x8x12xf32>) -> tensor<2x8x3x4xf32>
  %2 = mtp.transpose %1 [0, 2, 1, 3] : (tensor<2x8x3x4xf32>) -> tensor<2x3x8x4xf32>
  return %2 : tensor<2x3x8x4xf32>
}
func.func @heads_back(%x: tensor<2x3x8x4xf32>) -> tensor<2x8x12xf32> {
  %0 = mtp.transpose %x [0, 2, 1, 3] : (tensor<2x3x8x4xf32>) -> tensor<2x8x3x4xf32>
  %1 = mtp.reshape %0 : (tensor<2x8x3x4xf32>) -> tensor<2x8x12xf32>
  return %1 : tensor<2x8x12xf32>
}
func.func @rotate_half(%x: tensor<2x3x8x6xf32>, %c: tensor<8x6xf32>, %s: tensor<8x6xf32>) -> tensor<2x3x8x6xf32> {
  %a = mtp.strided_slice %x dim 3 start 0 step 1 : (tensor<2x3x8x6xf32>) -> tensor<2x3x8x3xf32>
  %b = mtp.strided_slice %x dim 3 start 3 step 1 : (tensor<2x3x8x6xf32>) -> tensor<2x3x8x3xf32>
  %n = mtp.neg %b : (tensor<2x3x8x3xf32>) -> tensor<2x3x8x3xf32>
  %r = mtp.concat dim 3 %n, %a : (tensor<2x3x8x3xf32>, tensor<2x3x8x3xf32>) -> tensor<2x3x8x6xf32>
  %0 = mtp.mul %x, %c : (tensor<2x3x8x6xf32>, tensor<8x6xf32>) -> tensor<2x3x8x6xf32>
  %1 = mtp.mul %r, %s : (tensor<2x3x8x6xf32>, tensor<8x6xf32>) -> tensor<2x3x8x6xf32>
  %2 = mtp.add %0, %1 : (tensor<2x3x8x6xf32>, tensor<2x3x8x6xf32>) -> tensor<2x3x8x6xf32>
  return %2 : tensor<2x3x8x6xf32>
}
func.func @rotary(%x: tensor<2x3x8x10xf32>, %c: tensor<1x1x8x4xf32>, %s: tensor<1x1x8x4xf32>) -> tensor<2x3x8x10xf32> {
  %0 = mtp.rotary %x, %c, %s : (tensor<2x3x8x10xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>) -> tensor<2x3x8x10xf32>
  return %0 : tensor<2x3x8x10xf32>
}
func.func @rotary_interleaved(%x: tensor<2x3x8x10xf32>, %c: tensor<8x4xf32>, %s: tensor<8x4xf32>) -> tensor<2x3x8x10xf32> {
  %0 = mtp.rotary %x, %c, %s {interleaved} : (tensor<2x3x8x10xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8x10xf32>
  return %0 : tensor<2x3x8x10xf32>
}
func.func @concat_rows(%x: tensor<2x3x5xf32>, %y: tensor<2x4x5xf32>, %z: tensor<2x0x5xf32>) -> tensor<2x7x5xf32> {
  %0 = mtp.concat dim 1 %x, %z, %y : (tensor<2x3x5xf32>, tensor<2x0x5xf32>, tensor<2x4x5xf32>) -> tensor<2x7x5xf32>
  return %0 : tensor<2x7x5xf32>
}
func.func @concat_outer(%x: tensor<3x5xf32>, %y: tensor<4x5xf32>) -> tensor<7x5xf32> {
  %0 = mtp.concat dim 0 %x, %y : (tensor<3x5xf32>, tensor<4x5xf32>) -> tensor<7x5xf32>
  return %0 : tensor<7x5xf32>
}
func.func @concat_merged(%x: tensor<3x5xf32>, %y: tensor<3x4xf32>) -> tensor<27xf32> {
  %0 = mtp.concat dim 1 %x, %y : (tensor<3x5xf32>, tensor<3x4xf32>) -> tensor<3x9xf32>
  %1 = mtp.reshape %0 : (tensor<3x9xf32>) -> tensor<27xf32>
  return %1 : tensor<27xf32>
}
func.func @concat_odd(%x: tensor<3x5xf32>, %y: tensor<3x5xf32>) -> tensor<5x6xf32> {
  %a = mtp.reshape %x : (tensor<3x5xf32>) -> tensor<15xf32>
  %b = mtp.reshape %y : (tensor<3x5xf32>) -> tensor<15xf32>
  %0 = mtp.concat dim 0 %a, %b : (tensor<15xf32>, tensor<15xf32>) -> tensor<30xf32>
  %1 = mtp.reshape %0 : (tensor<30xf32>) -> tensor<5x6xf32>
  return %1 : tensor<5x6xf32>
}
func.func @pad(%x: tensor<3x5xf32>) -> tensor<6x9xf32> {
  %0 = mtp.pad %x value 1.5 low [1, 0] high [2, 4] : (tensor<3x5xf32>) -> tensor<6x9xf32>
  return %0 : tensor<6x9xf32>
}
func.func @reshape_mixed(%x: tensor<6x4xf32>) -> tensor<3x8xf32> {
  %0 = mtp.reshape %x : (tensor<6x4xf32>) -> tensor<3x8xf32>
  %1 = mtp.exp %0 : (tensor<3x8xf32>) -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}
func.func @reshape_of_transpose(%x: tensor<6x4xf32>) -> tensor<8x3xf32> {
  %t = mtp.transpose %x [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %0 = mtp.reshape %t : (tensor<4x6xf32>) -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}
func.func @reshape_does_not_divide(%x: tensor<6x4xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %t = mtp.transpose %x [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %0 = mtp.reshape %t : (tensor<4x6xf32>) -> tensor<3x8xf32>
  %1 = mtp.transpose %0 [1, 0] : (tensor<3x8xf32>) -> tensor<8x3xf32>
  %2 = mtp.reshape %1 : (tensor<8x3xf32>) -> tensor<4x6xf32>
  %3 = mtp.add %2, %y : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}
func.func @slices(%x: tensor<10x9xf32>) -> tensor<4x3xf32> {
  %0 = mtp.strided_slice %x dim 0 start 8 step -2 : (tensor<10x9xf32>) -> tensor<4x9xf32>
  %1 = mtp.strided_slice %0 dim 1 start 1 step 3 : (tensor<4x9xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}
func.func @embedding(%t: tensor<101x16xf32>, %i: tensor<2x5xi64> {mtp.below = 101 : i64}, %p: tensor<5x16xf32>) -> tensor<2x5x16xf32> {
  %0 = mtp.gather %t[%i] dim 0 : (tensor<101x16xf32>, tensor<2x5xi64>) -> tensor<2x5x16xf32>
  %1 = mtp.add %0, %p : (tensor<2x5x16xf32>, tensor<5x16xf32>) -> tensor<2x5x16xf32>
  return %1 : tensor<2x5x16xf32>
}
func.func @gather_inner(%t: tensor<4x19x3xf32>, %i: tensor<2x5xi32>) -> tensor<4x2x5x3xf32> {
  %0 = mtp.gather %t[%i] dim 1 : (tensor<4x19x3xf32>, tensor<2x5xi32>) -> tensor<4x2x5x3xf32>
  return %0 : tensor<4x2x5x3xf32>
}
func.func @gather_elements(%x: tensor<4x11xf32>, %i: tensor<4x6xi64>) -> tensor<4x6xf32> {
  %0 = mtp.gather_elements %x[%i] dim 1 : (tensor<4x11xf32>, tensor<4x6xi64>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
func.func @gather_nd(%x: tensor<4x11x12x3xf32>, %i: tensor<4x6x2xi64>) -> tensor<4x6x3xf32> {
  %0 = mtp.gather_nd %x[%i] batch_dims 1 : (tensor<4x11x12x3xf32>, tensor<4x6x2xi64>) -> tensor<4x6x3xf32>
  return %0 : tensor<4x6x3xf32>
}
func.func @transpose_in_tiles(%x: tensor<64x96xf32>, %b: tensor<64xf32>) -> (tensor<96x64xf32>, tensor<96x64xf32>) {
  %0 = mtp.transpose %x [1, 0] : (tensor<64x96xf32>) -> tensor<96x64xf32>
  %1 = mtp.add %0, %b : (tensor<96x64xf32>, tensor<64xf32>) -> tensor<96x64xf32>
  return %1, %0 : tensor<96x64xf32>, tensor<96x64xf32>
}
func.func @transpose_heads_in_tiles(%x: tensor<2x4x48x32xf64>) -> tensor<2x4x32x48xf64> {
  %0 = mtp.transpose %x [0, 1, 3, 2] : (tensor<2x4x48x32xf64>) -> tensor<2x4x32x48xf64>
  return %0 : tensor<2x4x32x48xf64>
}
func.func @transpose_and_reshape_in_tiles(%x: tensor<48x2x64xf32>) -> tensor<64x96xf32> {
  %0 = mtp.transpose %x [2, 1, 0] : (tensor<48x2x64xf32>) -> tensor<64x2x48xf32>
  %1 = mtp.reshape %0 : (tensor<64x2x48xf32>) -> tensor<64x96xf32>
  return %1 : tensor<64x96xf32>
}
func.func @transpose_to_the_front_in_tiles(%x: tensor<3x32x40xf32>) -> tensor<40x3x32xf32> {
  %0 = mtp.transpose %x [2, 0, 1] : (tensor<3x32x40xf32>) -> tensor<40x3x32xf32>
  return %0 : tensor<40x3x32xf32>
}
