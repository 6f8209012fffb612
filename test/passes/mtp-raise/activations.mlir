// RUN: mtp-opt %s --mtp-raise -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @gelu_by_erf
func.func @gelu_by_erf(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %root2 = mtp.constant dense<1.41421354> : tensor<f32>
  %one = mtp.constant dense<1.0> : tensor<f32>
  %half = mtp.constant dense<0.5> : tensor<f32>
  // CHECK: %[[Y:.*]] = mtp.gelu %arg0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: return %[[Y]]
  %0 = mtp.div %x, %root2 : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %1 = mtp.erf %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = mtp.add %1, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = mtp.mul %x, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = mtp.mul %3, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @gelu_by_tanh
func.func @gelu_by_tanh(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %three = mtp.constant dense<3.0> : tensor<f32>
  %cubic = mtp.constant dense<4.471500e-02> : tensor<f32>
  %scale = mtp.constant dense<0.797884583> : tensor<f32>
  %one = mtp.constant dense<1.0> : tensor<f32>
  %half = mtp.constant dense<0.5> : tensor<f32>
  // CHECK: mtp.gelu %arg0 {tanh}
  // CHECK-NOT: mtp.tanh
  %0 = mtp.mul %x, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %1 = mtp.pow %x, %three : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = mtp.mul %1, %cubic : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = mtp.add %x, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = mtp.mul %3, %scale : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %5 = mtp.tanh %4 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = mtp.add %5, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %7 = mtp.mul %0, %6 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %7 : tensor<4x8xf32>
}

// -----

// The operand may be a sum itself: a product with its bias.
// CHECK-LABEL: func.func @gelu_of_a_sum
func.func @gelu_of_a_sum(%m: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %half = mtp.constant dense<0.5> : tensor<f32>
  %cubic = mtp.constant dense<0.044715> : tensor<f32>
  %root = mtp.constant dense<0.797884583> : tensor<f32>
  %one = mtp.constant dense<1.0> : tensor<f32>
  %three = mtp.constant dense<3.0> : tensor<f32>
  // CHECK: %[[X:.*]] = mtp.add
  // CHECK: mtp.gelu %[[X]] {tanh}
  %x = mtp.add %m, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %0 = mtp.mul %x, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %1 = mtp.pow %x, %three : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = mtp.mul %1, %cubic : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = mtp.add %x, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = mtp.mul %3, %root : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %5 = mtp.tanh %4 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = mtp.add %5, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %7 = mtp.mul %0, %6 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %7 : tensor<4x8xf32>
}

// -----

// A wrong constant is not a GELU.
// CHECK-LABEL: func.func @not_a_gelu
func.func @not_a_gelu(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %root2 = mtp.constant dense<1.5> : tensor<f32>
  %one = mtp.constant dense<1.0> : tensor<f32>
  %half = mtp.constant dense<0.5> : tensor<f32>
  // CHECK-NOT: mtp.gelu
  %0 = mtp.div %x, %root2 : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %1 = mtp.erf %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = mtp.add %1, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = mtp.mul %x, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = mtp.mul %3, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @silu_gate
func.func @silu_gate(%g: tensor<4x8xf32>, %u: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[S:.*]] = mtp.silu %arg0
  // CHECK-NEXT: mtp.mul %[[S]], %arg1
  %0 = mtp.sigmoid %g : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mtp.mul %g, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = mtp.mul %1, %u : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
