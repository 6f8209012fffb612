// RUN: mtp-opt %s -split-input-file -verify-diagnostics --spmd-verify

mtp.mesh @mesh <tp = 2>
// expected-error @+1 {{argument 0 has no layout and global type}}
func.func @bare_argument(%x: tensor<4xf32>) { return }

// -----

mtp.mesh @mesh <tp = 2>
// expected-error @+1 {{argument 0 of type 'tensor<4xf32>' is not the block}}
func.func @wrong_block(%x: tensor<4xf32> {mtp.layout = #mtp.layout<@mesh, tp = S(0)>, mtp.global_type = tensor<4xf32>}) { return }

// -----

mtp.mesh @mesh <tp = 2>
func.func @layout_left() {
  // expected-error @+1 {{expected a plain tensor of static shape}}
  %0 = mtp.constant dense<0.0> : tensor<4xf32> in tensor<4xf32, #mtp.layout<@mesh>>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
mtp.initializer @w : tensor<4xf32> {value = dense<1.0> : tensor<4xf32>}
func.func @whole_parameter_left() {
  // expected-error @+1 {{is left from the whole graph; run mtp-partition}}
  %0 = mtp.parameter @w : tensor<4xf32>
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @control_flow(%c: tensor<4xf32> {mtp.layout = #mtp.layout<@mesh>, mtp.global_type = tensor<4xf32>}) {
  // expected-error @-1 {{has control flow: ranks could take different ways to a collective}}
  cf.br ^bb1
^bb1:
  return
}

// -----

mtp.mesh @mesh <tp = 2>
func.func @foreign_op() {
  // expected-error @+1 {{is not part of a rank's program}}
  %0 = arith.constant dense<0.0> : tensor<4xf32>
  return
}
