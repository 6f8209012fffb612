// RUN: mtp-opt %s -split-input-file -verify-diagnostics --mtp-partition

// expected-error @+1 {{the module has no mtp.mesh}}
module {
  func.func @no_mesh() { return }
}

// -----

mtp.mesh @mesh <tp = 2>
// expected-error @+1 {{has a tensor type without a layout: 'tensor<4xf32>'}}
func.func @missing_layout(%x: tensor<4xf32>) { return }

// -----

mtp.mesh @mesh <tp = 2>
func.func @partial_result(%x: tensor<4xf32, #mtp.layout<@mesh>>) -> tensor<4xf32, #mtp.layout<@mesh, tp = P(sum)>> {
  %y = mtp.root_to %x ["tp"] : (tensor<4xf32, #mtp.layout<@mesh>>) -> tensor<4xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // expected-error @+1 {{result 0 is partial}}
  return %y : tensor<4xf32, #mtp.layout<@mesh, tp = P(sum)>>
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @foreign_op(%x: tensor<4xf32, #mtp.layout<@mesh>>) -> tensor<4xf32, #mtp.layout<@mesh>> {
  // expected-error @+1 {{has no sharding rule}}
  %y = arith.negf %x : tensor<4xf32, #mtp.layout<@mesh>>
  return %y : tensor<4xf32, #mtp.layout<@mesh>>
}

// -----

// Blocks of 6 in units of 1 are not blocks of 8 in units of 4.
mtp.mesh @mesh <dp = 2, tp = 2>
func.func @units_do_not_nest(%x: tensor<12xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<12xf32, #mtp.layout<@mesh, tp = S(0, unit 4), dp = S(0, unit 4)>> {
  // expected-error @+1 {{whose blocks do not nest}}
  %y = mtp.scatter_to %x ["dp"] : (tensor<12xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<12xf32, #mtp.layout<@mesh, tp = S(0, unit 4), dp = S(0, unit 4)>>
  return %y : tensor<12xf32, #mtp.layout<@mesh, tp = S(0, unit 4), dp = S(0, unit 4)>>
}
