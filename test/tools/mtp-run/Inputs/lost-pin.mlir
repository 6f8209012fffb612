func.func @main(%x: tensor<4x8xf32> {mtp.name = "x"}) -> (tensor<4x8xf32> {mtp.name = "y"}) {
  %0 = mtp.reshape %x {mtp.pin = "tp = S(1)"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mtp.gelu %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
