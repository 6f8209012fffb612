// W[7,5] behind a column of one: dimensions that no usual mesh divides.
mtp.initializer @w : tensor<7x5xf32> {file = "w.bin", offset = 0 : i64, bytes = 140 : i64, parameter}
mtp.initializer @v : tensor<128x1xf32> {file = "w.bin", offset = 0 : i64, bytes = 512 : i64, parameter}
func.func @main(%x: tensor<128x7xf32> {mtp.name = "x"}) -> (tensor<128x5xf32> {mtp.name = "y"}) {
  %w = mtp.parameter @w : tensor<7x5xf32>
  %v = mtp.parameter @v : tensor<128x1xf32>
  %0 = mtp.mul %x, %v : (tensor<128x7xf32>, tensor<128x1xf32>) -> tensor<128x7xf32> loc("scaled")
  %1 = mtp.matmul %0, %w : (tensor<128x7xf32>, tensor<7x5xf32>) -> tensor<128x5xf32> loc("product")
  return %1 : tensor<128x5xf32>
}
