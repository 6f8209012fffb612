// RUN: mtp-opt %s -split-input-file -verify-diagnostics

mtp.mesh @mesh <tp = 2>
func.func @bias_before_reduce(%x: tensor<2x8xf32, #mtp.layout<@mesh, tp = P(sum)>>, %b: tensor<8xf32, #mtp.layout<@mesh, tp = R>>) {
  // expected-error @+1 {{axis tp: partial + replicated adds the replicated term once per rank}}
  %0 = mtp.add %x, %b : (tensor<2x8xf32, #mtp.layout<@mesh, tp = P(sum)>>, tensor<8xf32, #mtp.layout<@mesh, tp = R>>) -> tensor<2x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @missing_copy_to(%x: tensor<4x8xf32, #mtp.layout<@mesh>>, %w: tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>) {
  // expected-error @+1 {{axis tp: an invariant operand meets a varying one; convert it with copy_to}}
  %0 = mtp.matmul %x, %w : (tensor<4x8xf32, #mtp.layout<@mesh>>, tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @partial_into_gelu(%x: tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>) {
  // expected-error @+1 {{axis tp: a partial value reaches a non-linear op}}
  %0 = mtp.gelu %x : (tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @product_of_two_partials(%x: tensor<8xf32, #mtp.layout<@mesh, tp = P(sum)>>) {
  // expected-error @+1 {{axis tp: product of two partials}}
  %0 = mtp.mul %x, %x : (tensor<8xf32, #mtp.layout<@mesh, tp = P(sum)>>, tensor<8xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<8xf32, #mtp.layout<@mesh, tp = P(sum)>>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @norm_axis_is_whole(%x: tensor<4x8xf32, #mtp.layout<@mesh, tp = S(1)>>, %g: tensor<8xf32, #mtp.layout<@mesh, tp = S(0)>>) {
  // expected-error @+1 {{axis tp: operand 0 is sharded in dimension 1, which is never sharded here}}
  %0 = mtp.rms_norm %x, %g {epsilon = 1.0e-6 : f64} : (tensor<4x8xf32, #mtp.layout<@mesh, tp = S(1)>>, tensor<8xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<4x8xf32, #mtp.layout<@mesh, tp = S(1)>>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @different_factors(%x: tensor<8x8xf32, #mtp.layout<@mesh, tp = S(0)>>, %y: tensor<8x8xf32, #mtp.layout<@mesh, tp = S(1)>>) {
  // expected-error @+1 {{axis tp: operands are sharded in different factors}}
  %0 = mtp.add %x, %y : (tensor<8x8xf32, #mtp.layout<@mesh, tp = S(0)>>, tensor<8x8xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<8x8xf32, #mtp.layout<@mesh, tp = S(0)>>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @missing_layout(%x: tensor<8xf32, #mtp.layout<@mesh, tp = R>>) {
  // expected-error @+1 {{has a tensor type without a layout}}
  %0 = mtp.neg %x : (tensor<8xf32, #mtp.layout<@mesh, tp = R>>) -> tensor<8xf32>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @wrong_result(%x: tensor<4x8xf32, #mtp.layout<@mesh, tp = S(1)>>, %w: tensor<8x16xf32, #mtp.layout<@mesh, tp = S(0)>>) {
  // expected-error @+1 {{axis tp: the result's state does not follow from the operands}}
  %0 = mtp.matmul %x, %w : (tensor<4x8xf32, #mtp.layout<@mesh, tp = S(1)>>, tensor<8x16xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<4x16xf32, #mtp.layout<@mesh, tp = R>>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @minor_factor_behind_a_whole_major_one(%x: tensor<4x6xf32, #mtp.layout<@mesh, tp = S(1)>>) {
  // expected-error @+1 {{lies behind a factor that is not cut to size 1}}
  %0 = mtp.reshape %x : (tensor<4x6xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<24xf32, #mtp.layout<@mesh, tp = S(0)>>
  return
}

// -----

mtp.mesh @mesh <dp = 2, tp = 2>
func.func @gather_of_the_major_axis(%x: tensor<8xf32, #mtp.layout<@mesh, dp = S(0), tp = S(0)>>) {
  // expected-error @+1 {{axis dp: is not the minor-most axis of dimension 0}}
  %0 = mtp.all_gather %x ["dp"] : (tensor<8xf32, #mtp.layout<@mesh, dp = S(0), tp = S(0)>>) -> tensor<8xf32, #mtp.layout<@mesh, tp = S(0), dp = R>>
  return
}

// -----

mtp.mesh @mesh <dp = 2, tp = 2>
func.func @another_axis_changes(%x: tensor<8xf32, #mtp.layout<@mesh, tp = P(sum)>>) {
  // expected-error @+1 {{axis dp: the state changes although the axis is not listed}}
  %0 = mtp.all_reduce %x ["tp"] : (tensor<8xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<8xf32, #mtp.layout<@mesh, dp = R, tp = R>>
  return
}

// -----

// expected-error @+1 {{axis tp is given twice}}
func.func @axis_twice(%x: tensor<8xf32, #mtp.layout<@mesh, tp = R, tp = S(0)>>) { return }

// -----

// expected-error @+1 {{axis tp shards dimension 5 of a tensor of rank 2}}
func.func @no_such_dimension(%x: tensor<2x4xf32, #mtp.layout<@mesh, tp = S(5)>>) { return }

// -----

func.func @sizes_disagree(%x: tensor<4x8xf32>, %w: tensor<9x16xf32>) {
  // expected-error @+1 {{operand 0 has size 8 in dimension 1, but the other tensors say 9}}
  %0 = mtp.matmul %x, %w : (tensor<4x8xf32>, tensor<9x16xf32>) -> tensor<4x16xf32>
  return
}
