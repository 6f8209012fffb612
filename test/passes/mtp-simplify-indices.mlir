// RUN: mtp-opt %s --mtp-simplify | FileCheck %s

mtp.initializer @table : tensor<12x4xf32> {file = "model.onnx", offset = 0 : i64, bytes = 192 : i64, parameter}

// A mask of padding, flat, looked up at 12 b + s.
// CHECK-LABEL: func.func @numbers_of_all_elements_are_a_reshape
// CHECK-NEXT: %[[MASK:.*]] = mtp.reshape %arg0 : (tensor<2x12xi1>) -> tensor<2x1x1x12xi1>
// CHECK-NEXT: return %[[MASK]]
func.func @numbers_of_all_elements_are_a_reshape(%mask: tensor<2x12xi1>) -> tensor<2x1x1x12xi1> {
  %flat = mtp.reshape %mask : (tensor<2x12xi1>) -> tensor<24x1xi1>
  %row = mtp.constant dense<[[[[0]]], [[[12]]]]> : tensor<2x1x1x1xi64>
  %column = mtp.iota dim 3 : tensor<1x1x1x12xi64>
  %index = mtp.add %column, %row : (tensor<1x1x1x12xi64>, tensor<2x1x1x1xi64>) -> tensor<2x1x1x12xi64>
  %0 = mtp.gather %flat[%index] dim 0 : (tensor<24x1xi1>, tensor<2x1x1x12xi64>) -> tensor<2x1x1x12x1xi1>
  %1 = mtp.reshape %0 : (tensor<2x1x1x12x1xi1>) -> tensor<2x1x1x12xi1>
  return %1 : tensor<2x1x1x12xi1>
}

// The same by pairs (b, s), one of them counted from the end.
// CHECK-LABEL: func.func @pairs_of_all_elements_are_a_reshape
// CHECK-NEXT: %[[MASK:.*]] = mtp.reshape %arg0 : (tensor<2x3xi1>) -> tensor<2x1x1x3xi1>
// CHECK-NEXT: return %[[MASK]]
func.func @pairs_of_all_elements_are_a_reshape(%mask: tensor<2x3xi1>) -> tensor<2x1x1x3xi1> {
  %row = mtp.constant dense<[[[[[0], [0], [0]]]], [[[[-1], [-1], [-1]]]]]> : tensor<2x1x1x3x1xi64>
  %counted = mtp.iota dim 3 : tensor<1x1x1x3x1xi64>
  %column = mtp.broadcast %counted : (tensor<1x1x1x3x1xi64>) -> tensor<2x1x1x3x1xi64>
  %pair = mtp.concat dim 4 %row, %column : (tensor<2x1x1x3x1xi64>, tensor<2x1x1x3x1xi64>) -> tensor<2x1x1x3x2xi64>
  %0 = mtp.gather_nd %mask[%pair] batch_dims 0 : (tensor<2x3xi1>, tensor<2x1x1x3x2xi64>) -> tensor<2x1x1x3xi1>
  return %0 : tensor<2x1x1x3xi1>
}

// Another order, a part, unknown numbers, and a weight stay lookups.
// CHECK-LABEL: func.func @others_stay
// CHECK: mtp.gather %arg0
// CHECK: mtp.gather %arg0
// CHECK: mtp.gather %arg0
// CHECK: mtp.gather %{{.*}}[%{{.*}}] dim 0 : (tensor<12x4xf32>
func.func @others_stay(%x: tensor<3x4xf32>, %i: tensor<3xi64>) -> (tensor<3x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<12x4xf32>) {
  %turned = mtp.constant dense<[2, 1, 0]> : tensor<3xi64>
  %part = mtp.constant dense<[0, 1]> : tensor<2xi64>
  %all = mtp.iota dim 0 : tensor<12xi64>
  %w = mtp.parameter @table : tensor<12x4xf32>
  %0 = mtp.gather %x[%turned] dim 0 : (tensor<3x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %1 = mtp.gather %x[%part] dim 0 : (tensor<3x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %2 = mtp.gather %x[%i] dim 0 : (tensor<3x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %3 = mtp.gather %w[%all] dim 0 : (tensor<12x4xf32>, tensor<12xi64>) -> tensor<12x4xf32>
  return %0, %1, %2, %3 : tensor<3x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<12x4xf32>
}
