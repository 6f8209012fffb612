// Rows of several warps, whose threads meet in shared memory, and columns of
// many rows.

func.func @wide_softmax(%x: tensor<8x700xf32>) -> tensor<8x700xf32> {
  %0 = mtp.softmax %x dim 1 : (tensor<8x700xf32>) -> tensor<8x700xf32>
  return %0 : tensor<8x700xf32>
}

func.func @wide_softmax_gradient(%y: tensor<8x700xf32>, %g: tensor<8x700xf32>) -> tensor<8x700xf32> {
  %0 = mtp.softmax_gradient %y, %g dim 1 : (tensor<8x700xf32>, tensor<8x700xf32>) -> tensor<8x700xf32>
  return %0 : tensor<8x700xf32>
}

func.func @wide_residual_layer_norm(%x: tensor<2x641xf32>, %y: tensor<2x641xf32>, %g: tensor<641xf32>, %b: tensor<641xf32>) -> (tensor<2x641xf32>, tensor<2x641xf32>) {
  %0 = mtp.add %x, %y : (tensor<2x641xf32>, tensor<2x641xf32>) -> tensor<2x641xf32>
  %1 = mtp.layer_norm %0, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<2x641xf32>, tensor<641xf32>, tensor<641xf32>) -> tensor<2x641xf32>
  return %0, %1 : tensor<2x641xf32>, tensor<2x641xf32>
}

func.func @wide_layer_norm_gradient(%x: tensor<2x641xf32>, %s: tensor<641xf32>, %g: tensor<2x641xf32>) -> tensor<2x641xf32> {
  %0 = mtp.layer_norm_gradient %x, %s, %g {epsilon = 1.0e-5 : f64} : (tensor<2x641xf32>, tensor<641xf32>, tensor<2x641xf32>) -> tensor<2x641xf32>
  return %0 : tensor<2x641xf32>
}

func.func @wide_sums(%x: tensor<8x900xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = mtp.reduce_sum %x dims [1] : (tensor<8x900xf32>) -> tensor<8xf32>
  %1 = mtp.reduce_max %x dims [1] : (tensor<8x900xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

func.func @high_column_sum(%x: tensor<75x40xf32>) -> tensor<40xf32> {
  %0 = mtp.reduce_sum %x dims [0] : (tensor<75x40xf32>) -> tensor<40xf32>
  return %0 : tensor<40xf32>
}
