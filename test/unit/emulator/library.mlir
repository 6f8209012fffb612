// Ops that the CPU's library computes and a GPU by kernels of the compiler's
// own. The reference is the CPU's library.

func.func @attention_of_groups(%q: tensor<2x4x9x20xf32>, %k: tensor<2x2x37x20xf32>, %v: tensor<2x2x37x36xf32>) -> (tensor<2x4x9x36xf32>, tensor<2x4x9xf32>) {
  %y, %l = mtp.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<2x4x9x20xf32>, tensor<2x2x37x20xf32>, tensor<2x2x37x36xf32>) -> (tensor<2x4x9x36xf32>, tensor<2x4x9xf32>)
  return %y, %l : tensor<2x4x9x36xf32>, tensor<2x4x9xf32>
}

func.func @causal_attention_with_a_mask(%q: tensor<1x3x34x16xf64>, %k: tensor<1x3x34x16xf64>, %v: tensor<1x3x34x16xf64>, %m: tensor<1x1x34x34xf64>) -> (tensor<1x3x34x16xf64>, tensor<1x3x34xf64>) {
  %y, %l = mtp.attention %q, %k, %v mask %m {scale = 0.25 : f64, causal} : (tensor<1x3x34x16xf64>, tensor<1x3x34x16xf64>, tensor<1x3x34x16xf64>, tensor<1x1x34x34xf64>) -> (tensor<1x3x34x16xf64>, tensor<1x3x34xf64>)
  return %y, %l : tensor<1x3x34x16xf64>, tensor<1x3x34xf64>
}

func.func @attention_back(%q: tensor<2x4x18x12xf32>, %k: tensor<2x2x35x12xf32>, %v: tensor<2x2x35x8xf32>, %m: tensor<18x35xf32>, %g: tensor<2x4x18x8xf32>) -> (tensor<2x4x18x12xf32>, tensor<2x2x35x12xf32>, tensor<2x2x35x8xf32>, tensor<18x35xf32>) {
  %y, %l = mtp.attention %q, %k, %v mask %m {scale = 0.5 : f64} : (tensor<2x4x18x12xf32>, tensor<2x2x35x12xf32>, tensor<2x2x35x8xf32>, tensor<18x35xf32>) -> (tensor<2x4x18x8xf32>, tensor<2x4x18xf32>)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v mask %m, %y, %l, %g {scale = 0.5 : f64} : (tensor<2x4x18x12xf32>, tensor<2x2x35x12xf32>, tensor<2x2x35x8xf32>, tensor<18x35xf32>, tensor<2x4x18x8xf32>, tensor<2x4x18xf32>, tensor<2x4x18x8xf32>) -> (tensor<2x4x18x12xf32>, tensor<2x2x35x12xf32>, tensor<2x2x35x8xf32>, tensor<18x35xf32>)
  return %dq, %dk, %dv, %dm : tensor<2x4x18x12xf32>, tensor<2x2x35x12xf32>, tensor<2x2x35x8xf32>, tensor<18x35xf32>
}

func.func @rows_of_a_table_back(%i: tensor<2x50xi64> {mtp.below = 11 : i64}, %g: tensor<2x50x40xf32>) -> tensor<11x40xf32> {
  %0 = mtp.gather_gradient %i, %g dim 0 : (tensor<2x50xi64>, tensor<2x50x40xf32>) -> tensor<11x40xf32>
  return %0 : tensor<11x40xf32>
}

func.func @convolution(%x: tensor<2x4x9x10xf32>, %w: tensor<6x2x3x3xf32>) -> tensor<2x6x5x5xf32> {
  %y = mtp.convolution %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x4x9x10xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x5x5xf32>
  return %y : tensor<2x6x5x5xf32>
}

func.func @convolution_back(%w: tensor<5x3x2x2xf32>, %g: tensor<2x5x4x4xf32>, %x: tensor<2x3x8x8xf32>) -> (tensor<2x3x8x8xf32>, tensor<5x3x2x2xf32>) {
  %0 = mtp.convolution_input_gradient %w, %g {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<5x3x2x2xf32>, tensor<2x5x4x4xf32>) -> tensor<2x3x8x8xf32>
  %1 = mtp.convolution_filter_gradient %x, %g {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<2x5x4x4xf32>) -> tensor<5x3x2x2xf32>
  return %0, %1 : tensor<2x3x8x8xf32>, tensor<5x3x2x2xf32>
}

func.func @lines(%x: tensor<6x19x5xf32>) -> (tensor<6x4x5xf32>, tensor<6x4x5xi64>, tensor<6x19x5xf32>, tensor<6x5xi64>) {
  %v, %i = mtp.topk %x dim 1 : (tensor<6x19x5xf32>) -> (tensor<6x4x5xf32>, tensor<6x4x5xi64>)
  %c = mtp.cumsum %x dim 1 : (tensor<6x19x5xf32>) -> tensor<6x19x5xf32>
  %a = mtp.argmax %x dim 1 : (tensor<6x19x5xf32>) -> tensor<6x5xi64>
  return %v, %i, %c, %a : tensor<6x4x5xf32>, tensor<6x4x5xi64>, tensor<6x19x5xf32>, tensor<6x5xi64>
}

func.func @scattered(%x: tensor<7x6xf32>, %i: tensor<5x6xi64> {mtp.below = 7 : i64}, %u: tensor<5x6xf32>, %j: tensor<9x1xi64> {mtp.below = 7 : i64}, %w: tensor<9x6xf32>) -> (tensor<7x6xf32>, tensor<7x6xf32>) {
  %0 = mtp.scatter_elements %x[%i], %u dim 0 combine add : (tensor<7x6xf32>, tensor<5x6xi64>, tensor<5x6xf32>) -> tensor<7x6xf32>
  %1 = mtp.scatter_nd %x[%j], %w combine none : (tensor<7x6xf32>, tensor<9x1xi64>, tensor<9x6xf32>) -> tensor<7x6xf32>
  return %0, %1 : tensor<7x6xf32>, tensor<7x6xf32>
}

func.func @integer_product(%a: tensor<5x9xi32>, %b: tensor<9x7xi32>) -> tensor<5x7xi32> {
  %0 = mtp.matmul %a, %b : (tensor<5x9xi32>, tensor<9x7xi32>) -> tensor<5x7xi32>
  return %0 : tensor<5x7xi32>
}
