mtp.initializer @"<script>alert(1)</script>" : tensor<16x8xf32> {file = "m", offset = 0 : i64, bytes = 512 : i64, parameter}
func.func @main(%x: tensor<4x16xf32> {mtp.name = "\"><script>alert(2)</script>"}) -> (tensor<4x8xf32> {mtp.name = "<b onmouseover='alert(3)'>&amp;"}) {
  %w = mtp.parameter @"<script>alert(1)</script>" : tensor<16x8xf32>
  %0 = mtp.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> loc("</title><script>alert(4)</script>")
  return %0 : tensor<4x8xf32>
}
