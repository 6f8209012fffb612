// RUN: mtp-opt %s -split-input-file -verify-diagnostics --mtp-differentiate

mtp.mesh @mesh <tp = 2>
// expected-error@+1 {{has no result marked as the loss}}
func.func @no_loss(%x: tensor<f32, #mtp.layout<@mesh>>) -> tensor<f32, #mtp.layout<@mesh>> {
  return %x : tensor<f32, #mtp.layout<@mesh>>
}

// -----

mtp.mesh @mesh <tp = 2>
// expected-error@+1 {{has two results marked as the loss}}
func.func @two_losses(%x: tensor<f32, #mtp.layout<@mesh>>) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}, tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  return %x, %x : tensor<f32, #mtp.layout<@mesh>>, tensor<f32, #mtp.layout<@mesh>>
}

// -----

mtp.mesh @mesh <tp = 2>
// expected-error@+1 {{the loss is a float scalar, not 'tensor<2xf32, #mtp.layout<@mesh>>'}}
func.func @vector(%x: tensor<2xf32, #mtp.layout<@mesh>>) -> (tensor<2xf32, #mtp.layout<@mesh>> {mtp.loss}) {
  return %x : tensor<2xf32, #mtp.layout<@mesh>>
}

// -----

mtp.mesh @mesh <tp = 2>
// expected-error@+1 {{the loss is a float scalar, not 'tensor<i64, #mtp.layout<@mesh>>'}}
func.func @integer(%x: tensor<i64, #mtp.layout<@mesh>>) -> (tensor<i64, #mtp.layout<@mesh>> {mtp.loss}) {
  return %x : tensor<i64, #mtp.layout<@mesh>>
}

// -----

// A loss that every rank has a part of.
mtp.mesh @mesh <tp = 2>
// expected-error@+1 {{the loss is invariant on every axis, not 'tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>'}}
func.func @partial(%x: tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> (tensor<f32, #mtp.layout<@mesh, tp = P(sum)>> {mtp.loss}) {
  %l = mtp.reduce_sum %x dims [0] : (tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>
  return %l : tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>
}

// -----

// An op without a gradient between the parameter and the loss.
mtp.mesh @mesh <tp = 2>
mtp.initializer @w : tensor<4xf32> {file = "m.onnx", offset = 0 : i64, bytes = 16 : i64, parameter, trainable}
func.func @dropout_as_the_model_has_it() -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %w = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<4xf32, #mtp.layout<@mesh>>
  // expected-error@+1 {{has no gradient, but the loss depends on parameters through it; freeze them, or stop the gradient before it}}
  %y, %m = mtp.dropout %w {ratio = 0.1 : f64, stream = 3 : i64, training} : (tensor<4xf32, #mtp.layout<@mesh>>) -> (tensor<4xf32, #mtp.layout<@mesh>>, tensor<4xi1, #mtp.layout<@mesh>>)
  %l = mtp.reduce_sum %y dims [0] : (tensor<4xf32, #mtp.layout<@mesh>>) -> tensor<f32, #mtp.layout<@mesh>>
  return %l : tensor<f32, #mtp.layout<@mesh>>
}

// -----

mtp.mesh @mesh <tp = 2>
mtp.initializer @w : tensor<4xf32> {file = "m.onnx", offset = 0 : i64, bytes = 16 : i64, parameter, trainable}
func.func @maximum_of_writes(%i: tensor<2xi64, #mtp.layout<@mesh>>, %u: tensor<2xf32, #mtp.layout<@mesh>>) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %w = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<4xf32, #mtp.layout<@mesh>>
  // expected-error@+1 {{has no gradient where it combines by max; freeze the parameters before it, or stop the gradient there}}
  %y = mtp.scatter_elements %w[%i], %u dim 0 combine max : (tensor<4xf32, #mtp.layout<@mesh>>, tensor<2xi64, #mtp.layout<@mesh>>, tensor<2xf32, #mtp.layout<@mesh>>) -> tensor<4xf32, #mtp.layout<@mesh>>
  %l = mtp.reduce_sum %y dims [0] : (tensor<4xf32, #mtp.layout<@mesh>>) -> tensor<f32, #mtp.layout<@mesh>>
  return %l : tensor<f32, #mtp.layout<@mesh>>
}

// -----

// An integer path: zeros would hide that nothing is learnt.
mtp.mesh @mesh <tp = 2>
mtp.initializer @w : tensor<4xf32> {file = "m.onnx", offset = 0 : i64, bytes = 16 : i64, parameter, trainable}
func.func @through_an_index(%x: tensor<4xf32, #mtp.layout<@mesh>>) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %w = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<4xf32, #mtp.layout<@mesh>>
  // expected-error@+1 {{gives no float, and the loss depends on a parameter through nothing else; freeze that parameter}}
  %i = mtp.argmax %w dim 0 : (tensor<4xf32, #mtp.layout<@mesh>>) -> tensor<i64, #mtp.layout<@mesh>>
  %l = mtp.gather %x[%i] dim 0 : (tensor<4xf32, #mtp.layout<@mesh>>, tensor<i64, #mtp.layout<@mesh>>) -> tensor<f32, #mtp.layout<@mesh>>
  return %l : tensor<f32, #mtp.layout<@mesh>>
}
