// RUN: mtp-opt %s --mtp-add-loss="loss=mse:prediction=y,target=t" | FileCheck %s --check-prefix=MSE
// RUN: mtp-opt %s --mtp-add-loss="loss=output:total" | FileCheck %s --check-prefix=OUTPUT
// RUN: echo '{"kind": "mse", "prediction": "y", "target": "a,b=c"}' > %t.json
// RUN: mtp-opt %s --mtp-add-loss="loss=@%t.json" | FileCheck %s --check-prefix=FILE
// RUN: not mtp-opt %s --mtp-add-loss="loss=output:none" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not mtp-opt %s --mtp-add-loss="loss=output:y" 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not mtp-opt %s --mtp-add-loss="loss=output:ids" 2>&1 | FileCheck %s --check-prefix=FLOATS
// RUN: not mtp-opt %s --mtp-add-loss="loss=mse:prediction=y,target=x" 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: not mtp-opt %s --mtp-add-loss="loss=output:total input-gradients=i" 2>&1 | FileCheck %s --check-prefix=WANTED
// RUN: not mtp-opt %s --mtp-add-loss="loss=mse:prediction=y" 2>&1 | FileCheck %s --check-prefix=KEY

// MSE: %[[T:[a-z0-9]+]]: tensor<2x4xf32> {mtp.name = "t"}
// MSE: %[[D:.*]] = mtp.sub %{{.*}}, %[[T]]
// MSE-NEXT: %[[S:.*]] = mtp.mul %[[D]], %[[D]]
// MSE-NEXT: %[[SUM:.*]] = mtp.reduce_sum %[[S]] dims [0, 1]
// MSE: mtp.mul %[[SUM]]

// OUTPUT: %[[SUM:.*]] = mtp.reduce_sum
// OUTPUT: %[[SCALAR:.*]] = mtp.reshape %[[SUM]] : (tensor<1xf32>) -> tensor<f32>
// OUTPUT: mtp.mul %[[SCALAR]]

// FILE: tensor<2x4xf32> {mtp.name = "a,b=c"}

// NONE: error: the loss is of output 'none', which the model lacks; it has: 'y', 'total', 'ids'
// SHAPE: error: output 'y' is the loss, but has shape [2, 4]: a scalar is needed
// FLOATS: error: the loss is of output 'ids', which holds 'i64', not floats
// INPUT: error: target 'x' is an input of type 'tensor<2x2xf32>', the loss needs 'tensor<2x4xf32>'
// WANTED: error: the gradient of input 'i' is wanted, which does not hold floats
// KEY: error: loss: mse needs target=NAME
mtp.initializer @w : tensor<2x4xf32> {file = "w.bin", offset = 0 : i64, bytes = 32 : i64}
func.func @main(%x: tensor<2x2xf32> {mtp.name = "x"}, %i: tensor<3xi64> {mtp.name = "i"}) -> (tensor<2x4xf32> {mtp.name = "y"}, tensor<1xf32> {mtp.name = "total"}, tensor<3xi64> {mtp.name = "ids"}) {
  %w = mtp.parameter @w : tensor<2x4xf32>
  %y = mtp.matmul %x, %w : (tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %r = mtp.reshape %y : (tensor<2x4xf32>) -> tensor<1x8xf32>
  %s = mtp.reduce_sum %r dims [1] : (tensor<1x8xf32>) -> tensor<1xf32>
  return %y, %s, %i : tensor<2x4xf32>, tensor<1xf32>, tensor<3xi64>
}
