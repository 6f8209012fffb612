// RUN: mtp-opt %s -split-input-file --mtp-partition --spmd-verify | FileCheck %s

mtp.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @slice_takes_the_own_block(
// CHECK-SAME: %[[X:.*]]: tensor<3x5xf32>
func.func @slice_takes_the_own_block(%x: tensor<3x5xf32, #mtp.layout<@mesh, tp = R>>) -> tensor<3x5xf32, #mtp.layout<@mesh, tp = S(1)>> {
  // CHECK-NEXT: %[[O:.*]] = spmd.rank_value offset <5 by ["tp"]>
  // CHECK-NEXT: spmd.take_block %[[X]], %[[O]] dim 1 : tensor<3x5xf32> to tensor<3x3xf32>
  %y = mtp.slice %x ["tp"] : (tensor<3x5xf32, #mtp.layout<@mesh, tp = R>>) -> tensor<3x5xf32, #mtp.layout<@mesh, tp = S(1)>>
  return %y : tensor<3x5xf32, #mtp.layout<@mesh, tp = S(1)>>
}

// -----

// dp cuts the block of 6 that tp leaves, not the whole dimension.
mtp.mesh @mesh <dp = 2, tp = 2>
// CHECK-LABEL: func.func @slice_of_a_block(
// CHECK-SAME: %[[X:.*]]: tensor<6xf32>
func.func @slice_of_a_block(%x: tensor<11xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<11xf32, #mtp.layout<@mesh, tp = S(0), dp = S(0)>> {
  // CHECK-NEXT: %[[O:.*]] = spmd.rank_value offset <6 by ["dp"]>
  // CHECK-NEXT: spmd.take_block %[[X]], %[[O]] dim 0 : tensor<6xf32> to tensor<3xf32>
  %y = mtp.scatter_to %x ["dp"] : (tensor<11xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<11xf32, #mtp.layout<@mesh, tp = S(0), dp = S(0)>>
  return %y : tensor<11xf32, #mtp.layout<@mesh, tp = S(0), dp = S(0)>>
}

// -----

mtp.mesh @mesh <dp = 2, tp = 2>
// CHECK-LABEL: func.func @pad_places_what_is_valid(
// CHECK-SAME: %[[X:.*]]: tensor<3xf32>
func.func @pad_places_what_is_valid(%x: tensor<11xf32, #mtp.layout<@mesh, tp = S(0), dp = S(0)>>) -> tensor<11xf32, #mtp.layout<@mesh, tp = S(0), dp = R>> {
  // CHECK-NEXT: %[[O:.*]] = spmd.rank_value offset <6 by ["dp"]>
  // CHECK-NEXT: %[[V:.*]] = spmd.rank_value valid <11 by ["tp", "dp"]>
  // CHECK-NEXT: %[[P:.*]] = spmd.place_block %[[X]], %[[O]], %[[V]] dim 0 : tensor<3xf32> to tensor<6xf32>
  %p = mtp.pad_to %x ["dp"] : (tensor<11xf32, #mtp.layout<@mesh, tp = S(0), dp = S(0)>>) -> tensor<11xf32, #mtp.layout<@mesh, tp = S(0), dp = P(sum)>>
  // CHECK-NEXT: spmd.all_reduce %[[P]] ["dp"] sum for "all_reduce" : tensor<6xf32> to tensor<6xf32>
  %y = mtp.all_reduce %p ["dp"] : (tensor<11xf32, #mtp.layout<@mesh, tp = S(0), dp = P(sum)>>) -> tensor<11xf32, #mtp.layout<@mesh, tp = S(0), dp = R>>
  return %y : tensor<11xf32, #mtp.layout<@mesh, tp = S(0), dp = R>>
}

// -----

mtp.mesh @mesh <dp = 2, tp = 2>
// CHECK-LABEL: func.func @root_is_the_first_rank_of_all_axes(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
func.func @root_is_the_first_rank_of_all_axes(%x: tensor<4xf32, #mtp.layout<@mesh>>) -> tensor<4xf32, #mtp.layout<@mesh>> {
  // CHECK-NEXT: %[[DP:.*]] = spmd.rank_value coordinate <0 by ["dp"]>
  // CHECK-NEXT: %[[A:.*]] = spmd.keep_on_root %[[X]], %[[DP]] : tensor<4xf32>
  // CHECK-NEXT: %[[TP:.*]] = spmd.rank_value coordinate <0 by ["tp"]>
  // CHECK-NEXT: %[[B:.*]] = spmd.keep_on_root %[[A]], %[[TP]] : tensor<4xf32>
  %p = mtp.root_to %x ["dp", "tp"] : (tensor<4xf32, #mtp.layout<@mesh>>) -> tensor<4xf32, #mtp.layout<@mesh, dp = P(sum), tp = P(sum)>>
  // CHECK-NEXT: spmd.all_reduce %[[B]] ["dp", "tp"] sum for "reduce_from"
  %y = mtp.reduce_from %p ["dp", "tp"] : (tensor<4xf32, #mtp.layout<@mesh, dp = P(sum), tp = P(sum)>>) -> tensor<4xf32, #mtp.layout<@mesh>>
  return %y : tensor<4xf32, #mtp.layout<@mesh>>
}

// -----

mtp.mesh @mesh <tp = 3>
// CHECK-LABEL: func.func @gather_strips_and_scatter_adds_padding(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>
func.func @gather_strips_and_scatter_adds_padding(%x: tensor<5x4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<5x4xf32, #mtp.layout<@mesh, tp = S(0)>> {
  // CHECK-NEXT: %[[G:.*]] = spmd.all_gather %[[X]] ["tp"] dim 0 <5 by ["tp"]> for "all_gather" : tensor<2x4xf32> to tensor<5x4xf32>
  %g = mtp.all_gather %x ["tp"] : (tensor<5x4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<5x4xf32, #mtp.layout<@mesh, tp = R>>
  // CHECK-NEXT: %[[C:.*]] = spmd.rank_value coordinate
  // CHECK-NEXT: %[[P:.*]] = spmd.keep_on_root %[[G]], %[[C]]
  %p = mtp.root_of %g ["tp"] : (tensor<5x4xf32, #mtp.layout<@mesh, tp = R>>) -> tensor<5x4xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: spmd.reduce_scatter %[[P]] ["tp"] dim 0 <5 by ["tp"]> for "reduce_scatter" : tensor<5x4xf32> to tensor<2x4xf32>
  %y = mtp.reduce_scatter %p ["tp"] : (tensor<5x4xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<5x4xf32, #mtp.layout<@mesh, tp = S(0)>>
  return %y : tensor<5x4xf32, #mtp.layout<@mesh, tp = S(0)>>
}

// -----

mtp.mesh @mesh <dp = 2, tp = 3>
// CHECK-LABEL: func.func @all_to_all_inside_a_cut_dimension(
// CHECK-SAME: %[[X:.*]]: tensor<2x7xf32>
func.func @all_to_all_inside_a_cut_dimension(%x: tensor<10x7xf32, #mtp.layout<@mesh, dp = S(0), tp = S(0)>>) -> tensor<10x7xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>> {
  // CHECK-NEXT: spmd.all_to_all %[[X]] ["tp"] dim 0 <10 by ["dp", "tp"]> split 1 <7 by ["tp"]> for "all_to_all" : tensor<2x7xf32> to tensor<5x3xf32>
  %y = mtp.all_to_all %x ["tp"] : (tensor<10x7xf32, #mtp.layout<@mesh, dp = S(0), tp = S(0)>>) -> tensor<10x7xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
  return %y : tensor<10x7xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
}

// -----

mtp.mesh @mesh <dp = 2, tp = 3>
// CHECK-LABEL: func.func @permute_to_another_order_of_axes(
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>
func.func @permute_to_another_order_of_axes(%x: tensor<12xf32, #mtp.layout<@mesh, dp = S(0), tp = S(0)>>) -> tensor<12xf32, #mtp.layout<@mesh, tp = S(0), dp = S(0)>> {
  // Rank (dp, tp) gets block 2 tp + dp.
  // CHECK-NEXT: spmd.permute %[[X]] ["dp", "tp"] from [0, 2, 4, 1, 3, 5] for "permute" : tensor<2xf32> to tensor<2xf32>
  %y = mtp.permute %x ["dp", "tp"] : (tensor<12xf32, #mtp.layout<@mesh, dp = S(0), tp = S(0)>>) -> tensor<12xf32, #mtp.layout<@mesh, tp = S(0), dp = S(0)>>
  return %y : tensor<12xf32, #mtp.layout<@mesh, tp = S(0), dp = S(0)>>
}

// -----

mtp.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @maxima_and_minima(
func.func @maxima_and_minima(%x: tensor<4x6xi64, #mtp.layout<@mesh, tp = S(1)>>) -> (tensor<4xi64, #mtp.layout<@mesh>>, tensor<4xi64, #mtp.layout<@mesh, tp = R>>) {
  // CHECK: spmd.all_reduce %{{.*}} ["tp"] max for "reduce_max_from"
  // CHECK: spmd.all_reduce %{{.*}} ["tp"] min for "all_reduce_min"
  %a = mtp.reduce_max %x dims [1] : (tensor<4x6xi64, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<4xi64, #mtp.layout<@mesh, tp = P(max)>>
  %b = mtp.reduce_min %x dims [1] : (tensor<4x6xi64, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<4xi64, #mtp.layout<@mesh, tp = P(min)>>
  %c = mtp.reduce_max_from %a ["tp"] : (tensor<4xi64, #mtp.layout<@mesh, tp = P(max)>>) -> tensor<4xi64, #mtp.layout<@mesh>>
  %d = mtp.all_reduce_min %b ["tp"] : (tensor<4xi64, #mtp.layout<@mesh, tp = P(min)>>) -> tensor<4xi64, #mtp.layout<@mesh, tp = R>>
  return %c, %d : tensor<4xi64, #mtp.layout<@mesh>>, tensor<4xi64, #mtp.layout<@mesh, tp = R>>
}

// -----

// Both factors of a refined axis are one axis.
mtp.mesh @mesh <tp = 2 x 2>
// CHECK-LABEL: func.func @refined_axis(
func.func @refined_axis(%x: tensor<8xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<8xf32, #mtp.layout<@mesh>> {
  // CHECK: spmd.all_gather %{{.*}} ["tp.1"] dim 0 <8 by ["tp"]> for "all_gather" : tensor<2xf32> to tensor<4xf32>
  %a = mtp.all_gather %x ["tp.1"] : (tensor<8xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<8xf32, #mtp.layout<@mesh, tp.0 = S(0), tp.1 = R>>
  %b = mtp.assert_invariant %a ["tp.1"] : (tensor<8xf32, #mtp.layout<@mesh, tp.0 = S(0), tp.1 = R>>) -> tensor<8xf32, #mtp.layout<@mesh, tp.0 = S(0)>>
  // CHECK-NEXT: spmd.all_gather %{{.*}} ["tp.0"] dim 0 <8 by ["tp.0"]> for "gather_from" : tensor<4xf32> to tensor<8xf32>
  %c = mtp.gather_from %b ["tp.0"] : (tensor<8xf32, #mtp.layout<@mesh, tp.0 = S(0)>>) -> tensor<8xf32, #mtp.layout<@mesh>>
  return %c : tensor<8xf32, #mtp.layout<@mesh>>
}
