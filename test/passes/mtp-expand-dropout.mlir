// RUN: mtp-opt %s --split-input-file --mtp-expand-dropout | FileCheck %s
// RUN: mtp-opt %s --split-input-file --mtp-expand-dropout=mode=off | FileCheck %s --check-prefix=OFF
// RUN: mtp-opt %s --split-input-file --mtp-expand-dropout="mode=on accumulate=true" | FileCheck %s --check-prefix=MICRO
// RUN: not mtp-opt %s --split-input-file --mtp-expand-dropout=mode=maybe 2>&1 | FileCheck %s --check-prefix=MODE

// MODE: error: dropout is model, on or off, not 'maybe'

// A kept element has bits below (1 - 1/4) 2^32 and is divided by 1 - 1/4.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32> {mtp.name = "x"}, %[[SEED:.*]]: tensor<i64> {mtp.name = "mtp.seed"}, %[[STEP:.*]]: tensor<i64> {mtp.name = "mtp.step"})
// CHECK-NEXT: %[[J:.*]] = mtp.iota dim 1 : tensor<1x3xi64>
// CHECK-NEXT: %[[I:.*]] = mtp.iota dim 0 : tensor<2x1xi64>
// CHECK-NEXT: %[[STRIDE:.*]] = mtp.constant dense<3>
// CHECK-NEXT: %[[ROW:.*]] = mtp.mul %[[I]], %[[STRIDE]]
// CHECK-NEXT: %[[AT:.*]] = mtp.add %[[ROW]], %[[J]]
// CHECK-NEXT: %[[BITS:.*]] = mtp.philox %[[AT]], %[[SEED]], %[[STEP]] {stream = 3 : i64}
// CHECK-NEXT: %[[LIMIT:.*]] = mtp.constant dense<3221225472>
// CHECK-NEXT: %[[KEPT:.*]] = mtp.compare lt %[[BITS]], %[[LIMIT]]
// CHECK-NEXT: %[[SCALE:.*]] = mtp.constant dense<1.33333337>
// CHECK-NEXT: %[[SCALED:.*]] = mtp.mul %[[X]], %[[SCALE]]
// CHECK-NEXT: %[[ZERO:.*]] = mtp.constant dense<0.0
// CHECK-NEXT: %[[Y:.*]] = mtp.select %[[KEPT]], %[[SCALED]], %[[ZERO]]
// CHECK-NEXT: return %[[Y]], %[[KEPT]]

// OFF-LABEL: func.func @main(%arg0: tensor<2x3xf32> {mtp.name = "x"})
// OFF-NEXT: %[[ALL:.*]] = mtp.constant dense<true>
// OFF-NEXT: return %arg0, %[[ALL]]

// The position counts on from micro-batch to micro-batch.
// MICRO-LABEL: func.func @main
// MICRO-SAME: %[[NUMBER:[a-z0-9]+]]: tensor<i64> {mtp.name = "mtp.micro_batch"}
// MICRO: %[[AT:.*]] = mtp.add {{.*}} -> tensor<2x3xi64>
// MICRO-NEXT: %[[SIZE:.*]] = mtp.constant dense<6>
// MICRO-NEXT: %[[OFFSET:.*]] = mtp.mul %[[NUMBER]], %[[SIZE]]
// MICRO-NEXT: %[[WHOLE:.*]] = mtp.add %[[AT]], %[[OFFSET]]
// MICRO-NEXT: mtp.philox %[[WHOLE]]
func.func @main(%x: tensor<2x3xf32> {mtp.name = "x"}) -> (tensor<2x3xf32>, tensor<2x3xi1>) {
  %y, %m = mtp.dropout %x {ratio = 0.25 : f64, stream = 3 : i64, training} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi1>)
  return %y, %m : tensor<2x3xf32>, tensor<2x3xi1>
}

// -----

// Not in training, or of ratio 0: the identity.
// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>)
// CHECK-NEXT: return %arg0
// MICRO-LABEL: func.func @main
// MICRO-COUNT-1: mtp.philox
// MICRO-NOT: mtp.philox
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y, %m = mtp.dropout %x {ratio = 0.5 : f64, stream = 0 : i64} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>)
  %z, %n = mtp.dropout %y {ratio = 0.0 : f64, stream = 1 : i64, training} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>)
  return %z : tensor<4xf32>
}
