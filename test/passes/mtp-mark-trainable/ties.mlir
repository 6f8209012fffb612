// RUN: mtp-opt %s --mtp-train="mesh=tp=2 loss=mse:prediction=y,target=t tie=e,h:transposed" | FileCheck %s --check-prefix=TRAIN
// RUN: not mtp-opt %s --mtp-train="loss=mse:prediction=y,target=t tie=e,h" 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not mtp-opt %s --mtp-train="loss=mse:prediction=y,target=t tie=e,none" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not mtp-opt %s --mtp-train="loss=mse:prediction=y,target=t tie=e" 2>&1 | FileCheck %s --check-prefix=FORM

// The head reads the table, and nothing else is trained.
// TRAIN: mtp.initializer @h {{.*}}mtp.tied_to = "e"
// TRAIN: %[[E:.*]] = mtp.parameter @e {mtp.trainable = 0 : i64}
// TRAIN: mtp.gather %[[E]]
// TRAIN: mtp.matmul %{{.*}}, %[[E]] {transpose_rhs}
// TRAIN-NOT: mtp.parameter @h
// SHAPE: error: tie: 'e' is 'tensor<8x4xf32>' and 'h' is 'tensor<4x8xf32>'; they must have one type
// NAME: error: tie: there is no initializer 'none'
// FORM: error: tie: 'e' is not of the form A,B or A,B:transposed
mtp.initializer @e : tensor<8x4xf32> {file = "w.bin", offset = 0 : i64, bytes = 128 : i64}
mtp.initializer @h : tensor<4x8xf32> {file = "w.bin", offset = 128 : i64, bytes = 128 : i64}
func.func @main(%ids: tensor<2x3xi64> {mtp.name = "ids"}) -> (tensor<2x3x8xf32> {mtp.name = "y"}) {
  %e = mtp.parameter @e : tensor<8x4xf32>
  %h = mtp.parameter @h : tensor<4x8xf32>
  %x = mtp.gather %e[%ids] dim 0 : (tensor<8x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %y = mtp.matmul %x, %h : (tensor<2x3x4xf32>, tensor<4x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}
