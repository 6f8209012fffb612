// RUN: mtp-opt %s --mtp-simplify | FileCheck %s

// CHECK-LABEL: func.func @broadcasts_are_implicit
func.func @broadcasts_are_implicit(%x: tensor<2x8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  // CHECK-NEXT: mtp.add %arg0, %arg1 : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  // CHECK-NEXT: return
  %0 = mtp.broadcast %b : (tensor<8xf32>) -> tensor<2x8xf32>
  %1 = mtp.add %x, %0 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @broadcast_that_makes_the_shape_stays
func.func @broadcast_that_makes_the_shape_stays(%x: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  // CHECK-NEXT: mtp.broadcast
  // CHECK-NEXT: mtp.add
  // CHECK-NEXT: return
  %0 = mtp.broadcast %b : (tensor<8xf32>) -> tensor<2x8xf32>
  %1 = mtp.add %x, %0 : (tensor<8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @neutral_operands_vanish
func.func @neutral_operands_vanish(%x: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>) {
  // CHECK-NEXT: return %arg0, %arg1
  %one = mtp.constant dense<1.0> : tensor<f32>
  %zero = mtp.constant dense<0.0> : tensor<f32>
  %0 = mtp.mul %one, %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = mtp.add %0, %zero : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = mtp.div %1, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %izero = mtp.constant dense<0> : tensor<i64>
  %3 = mtp.sub %i, %izero : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
  return %2, %3 : tensor<4xf32>, tensor<4xi64>
}

// CHECK-LABEL: func.func @one_over_x_stays
func.func @one_over_x_stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: mtp.div
  %one = mtp.constant dense<1.0> : tensor<f32>
  %0 = mtp.div %one, %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @select_by_a_constant_takes_the_branch
func.func @select_by_a_constant_takes_the_branch(%x: tensor<4xf32>, %y: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[B:.*]] = mtp.broadcast %arg1 : (tensor<f32>) -> tensor<4xf32>
  // CHECK-NEXT: return %arg0, %[[B]]
  %true = mtp.constant dense<true> : tensor<4xi1>
  %false = mtp.constant dense<false> : tensor<4xi1>
  %0 = mtp.select %true, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = mtp.select %false, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @lossless_conversions_are_skipped
func.func @lossless_conversions_are_skipped(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[C:.*]] = mtp.convert %arg1 : (tensor<4xi32>) -> tensor<4xf32>
  // CHECK-NEXT: return %arg0, %[[C]]
  %0 = mtp.convert %x : (tensor<4xf32>) -> tensor<4xf64>
  %1 = mtp.convert %0 : (tensor<4xf64>) -> tensor<4xf32>
  %2 = mtp.convert %i : (tensor<4xi32>) -> tensor<4xi64>
  %3 = mtp.convert %2 : (tensor<4xi64>) -> tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @rounding_conversions_stay
func.func @rounding_conversions_stay(%x: tensor<4xf64>) -> tensor<4xf64> {
  // CHECK-NEXT: mtp.convert
  // CHECK-NEXT: mtp.convert
  // CHECK-NEXT: return
  %0 = mtp.convert %x : (tensor<4xf64>) -> tensor<4xf32>
  %1 = mtp.convert %0 : (tensor<4xf32>) -> tensor<4xf64>
  return %1 : tensor<4xf64>
}
