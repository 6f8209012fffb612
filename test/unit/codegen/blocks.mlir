// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func @mask(%x: tensor<5x12xf32>, %v: tensor<i64> {mtp.below = 12 : i64}) -> tensor<5xf32> {
  %0 = spmd.mask_tail %x, %v dim 1 neutral 0.0 : f32 in tensor<5x12xf32>
  %1 = mtp.reduce_sum %0 dims [1] : (tensor<5x12xf32>) -> tensor<5xf32>
  return %1 : tensor<5xf32>
}
func.func @take_columns(%x: tensor<5x12xf32>, %o: tensor<i64> {mtp.below = 14 : i64}) -> tensor<5x4xf32> {
  %0 = spmd.take_block %x, %o dim 1 : tensor<5x12xf32> to tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}
func.func @take_rows(%x: tensor<5x12xf32>, %o: tensor<i64> {mtp.below = 6 : i64}) -> tensor<3x12xf32> {
  %0 = spmd.take_block %x, %o dim 0 : tensor<5x12xf32> to tensor<3x12xf32>
  return %0 : tensor<3x12xf32>
}
func.func @place(%x: tensor<5x4xf32>, %o: tensor<i64> {mtp.below = 8 : i64}, %v: tensor<i64> {mtp.below = 5 : i64}) -> tensor<5x12xf32> {
  %0 = spmd.place_block %x, %o, %v dim 1 : tensor<5x4xf32> to tensor<5x12xf32>
  return %0 : tensor<5x12xf32>
}
func.func @root(%x: tensor<5x4xf32>, %c: tensor<i64> {mtp.below = 2 : i64}) -> tensor<5x4xf32> {
  %0 = spmd.keep_on_root %x, %c : tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}
