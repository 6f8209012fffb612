// RUN: mtp-opt %s -split-input-file -verify-diagnostics

mtp.mesh @mesh <tp = 2>
func.func @unknown_source() {
  // expected-error @+1 {{there is no mtp.initializer @w}}
  %0 = spmd.parameter @w layout #mtp.layout<@mesh> global tensor<4xf32> : tensor<4xf32>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
mtp.initializer @w : tensor<5xf32> {value = dense<1.0> : tensor<5xf32>}
func.func @wrong_block() {
  // expected-error @+1 {{its layout gives blocks of type 'tensor<3xf32>', the result is 'tensor<5xf32>'}}
  %0 = spmd.parameter @w layout #mtp.layout<@mesh, tp = S(0)> global tensor<5xf32> : tensor<5xf32>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @negative_extent() {
  // expected-error @+1 {{a cut dimension has extent -1}}
  %0 = spmd.rank_value offset <-1 by ["tp"]>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @unknown_axis() {
  // expected-error @+1 {{the axes ["dp"] are not distinct axes of mesh @mesh}}
  %0 = spmd.rank_value offset <4 by ["dp"]>
  return
}

// -----

mtp.mesh @mesh <dp = 2, tp = 2>
func.func @coordinate_of_two_axes() {
  // expected-error @+1 {{a coordinate is of one axis, not of ["dp", "tp"]}}
  %0 = spmd.rank_value coordinate <0 by ["dp", "tp"]>
  return
}

// -----

func.func @mask_of_no_dimension(%x: tensor<4xf32>, %v: tensor<i64>) {
  // expected-error @+1 {{has no dimension 1 in a tensor of rank 1}}
  %0 = spmd.mask_tail %x, %v dim 1 neutral 0.0 : f32 in tensor<4xf32>
  return
}

// -----

func.func @neutral_of_another_type(%x: tensor<4xf32>, %v: tensor<i64>) {
  // expected-error @+1 {{neutral element of type 'f64' in 'tensor<4xf32>'}}
  %0 = spmd.mask_tail %x, %v dim 0 neutral 0.0 : f64 in tensor<4xf32>
  return
}

// -----

func.func @block_of_another_shape(%x: tensor<4x4xf32>, %o: tensor<i64>) {
  // expected-error @+1 {{differ not only in dimension 0}}
  %0 = spmd.take_block %x, %o dim 0 : tensor<4x4xf32> to tensor<2x2xf32>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @reduce_changes_the_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{changes 'tensor<4xf32>' to 'tensor<2xf32>'}}
  %0 = spmd.all_reduce %x ["tp"] sum for "reduce_from" : tensor<4xf32> to tensor<2xf32>
  return
}

// -----

mtp.mesh @mesh <dp = 2, tp = 2>
func.func @gather_of_the_major_axis(%x: tensor<2xf32>) {
  // expected-error @+1 {{the axes of the collective are not the minor-most of cut}}
  %0 = spmd.all_gather %x ["dp"] dim 0 <8 by ["dp", "tp"]> for "all_gather" : tensor<2xf32> to tensor<4xf32>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @gather_to_a_wrong_size(%x: tensor<3xf32>) {
  // expected-error @+1 {{gives sizes 5 and 3 in dimension 0, the types have 6 and 3}}
  %0 = spmd.all_gather %x ["tp"] dim 0 <5 by ["tp"]> for "all_gather" : tensor<3xf32> to tensor<6xf32>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @scatter_changes_another_dimension(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{besides the cut dimensions}}
  %0 = spmd.reduce_scatter %x ["tp"] dim 0 <4 by ["tp"]> for "reduce_scatter" : tensor<4x8xf32> to tensor<2x4xf32>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @all_to_all_of_one_dimension(%x: tensor<4xf32>) {
  // expected-error @+1 {{cuts and concatenates the same dimension 0}}
  %0 = spmd.all_to_all %x ["tp"] dim 0 <8 by ["tp"]> split 0 <8 by ["tp"]> for "all_to_all" : tensor<4xf32> to tensor<4xf32>
  return
}

// -----

mtp.mesh @mesh <tp = 3>
func.func @not_a_permutation(%x: tensor<4xf32>) {
  // expected-error @+1 {{source_of is not a permutation of the 3 ranks of a group}}
  %0 = spmd.permute %x ["tp"] from [0, 1, 1] for "permute" : tensor<4xf32> to tensor<4xf32>
  return
}

// -----

func.func @region_arguments(%x: tensor<4xf32>) {
  // expected-error @+1 {{block arguments do not have the types of the operands}}
  %0 = spmd.fused(%x) : (tensor<4xf32>) -> tensor<2xf32> {
  ^bb0(%1: tensor<2xf32>):
    spmd.yield %1 : tensor<2xf32>
  }
  return
}

// -----

func.func @region_results(%x: tensor<4xf32>) {
  // expected-error @+1 {{yielded values do not have the types of the results}}
  %0 = spmd.fused(%x) : (tensor<4xf32>) -> tensor<2xf32> {
  ^bb0(%1: tensor<4xf32>):
    spmd.yield %1 : tensor<4xf32>
  }
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @collective_in_a_region(%x: tensor<4xf32>) {
  %0 = spmd.fused(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%1: tensor<4xf32>):
    // expected-error @+1 {{a collective stands in a fused region}}
    %2 = spmd.all_reduce %1 ["tp"] sum for "reduce_from" : tensor<4xf32> to tensor<4xf32>
    spmd.yield %2 : tensor<4xf32>
  }
  return
}

// -----

func.func @product_of_wrong_sizes(%x: tensor<8x4xf32>, %w: tensor<5x6xf32>) {
  // expected-error @+1 {{contracted sizes are 4 and 5}}
  %0 = spmd.matmul %x, %w activation none : (tensor<8x4xf32>, tensor<5x6xf32>) -> tensor<8x6xf32>
  return
}

// -----

func.func @product_of_wrong_result(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) {
  // expected-error @+1 {{does not end as 'tensor<6x8xf32>'}}
  %0 = spmd.matmul %x, %w activation none : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<6x8xf32>
  return
}

// -----

func.func @product_with_wrong_bias(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{bias of type 'tensor<8xf32>' for 'tensor<8x6xf32>'}}
  %0 = spmd.matmul %x, %w bias %b activation none : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<8xf32>) -> tensor<8x6xf32>
  return
}
