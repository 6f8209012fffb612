// RUN: mtp-opt %s --mtp-mark-trainable | FileCheck %s

// The angle of a rotary embedding comes from positions, which are integers; an
// activation may have a sine and a cosine as well. The bias of a gate is no mask
// of scores: those are products of two activations.
// CHECK-DAG: mtp.initializer @frequency {{.*}}mtp.reason = "reaches the result only as a table of a rotary embedding (
// CHECK-DAG: mtp.initializer @phase {{.*}}trainable
// CHECK-DAG: mtp.initializer @gate {{.*}}trainable
// CHECK-DAG: mtp.initializer @gate_bias {{.*}}trainable
// CHECK-DAG: mtp.initializer @score_bias {{.*}}mtp.reason = "reaches the result only as an addend of attention scores (add)"
// CHECK-DAG: mtp.initializer @step {{.*}}mtp.reason = "reaches the result only through round, which is constant piece by piece"
mtp.initializer @frequency : tensor<4xf32> {file = "w.bin", offset = 0 : i64, bytes = 16 : i64}
mtp.initializer @phase : tensor<4xf32> {file = "w.bin", offset = 16 : i64, bytes = 16 : i64}
mtp.initializer @gate : tensor<4x4xf32> {file = "w.bin", offset = 32 : i64, bytes = 64 : i64}
mtp.initializer @gate_bias : tensor<4xf32> {file = "w.bin", offset = 96 : i64, bytes = 16 : i64}
mtp.initializer @score_bias : tensor<2xf32> {file = "w.bin", offset = 112 : i64, bytes = 8 : i64}
mtp.initializer @step : tensor<4xf32> {file = "w.bin", offset = 120 : i64, bytes = 16 : i64}
func.func @main(%x: tensor<2x4xf32>, %positions: tensor<2x1xi64>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x2xf32>) {
  %frequency = mtp.parameter @frequency : tensor<4xf32>
  %phase = mtp.parameter @phase : tensor<4xf32>
  %gate = mtp.parameter @gate : tensor<4x4xf32>
  %gate_bias = mtp.parameter @gate_bias : tensor<4xf32>
  %score_bias = mtp.parameter @score_bias : tensor<2xf32>
  %step = mtp.parameter @step : tensor<4xf32>

  %place = mtp.convert %positions : (tensor<2x1xi64>) -> tensor<2x1xf32>
  %angle = mtp.mul %place, %frequency : (tensor<2x1xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %cos = mtp.cos %angle : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %sin = mtp.sin %angle : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %table = mtp.add %cos, %sin : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>

  %moved = mtp.add %x, %phase : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %even = mtp.cos %moved : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %odd = mtp.sin %moved : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %features = mtp.add %even, %odd : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>

  %product = mtp.matmul %x, %gate : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %biased = mtp.add %product, %gate_bias : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %weights = mtp.softmax %biased dim 1 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %jump = mtp.add %x, %step : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %rounded = mtp.round %jump : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %gated = mtp.mul %weights, %rounded : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>

  %scores = mtp.matmul %features, %weights {transpose_rhs} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
  %masked = mtp.add %scores, %score_bias : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %probabilities = mtp.softmax %masked dim 1 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %table, %features, %gated, %probabilities : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x2xf32>
}
