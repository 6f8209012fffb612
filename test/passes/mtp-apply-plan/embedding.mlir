// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=2" | FileCheck %s

// Table and tied head have one storage layout, split by vocabulary; the logits stay
// split; constants are produced where they are used, in the layout of the use.
mtp.initializer @wte : tensor<101x64xf32> {file = "m", offset = 0 : i64, bytes = 25856 : i64, parameter}

// CHECK-LABEL: func.func @main
// CHECK-SAME: -> tensor<2x12x101xf32, #mtp.layout<@mesh, tp = S(2)>>
// CHECK-NEXT: %[[T:.*]] = mtp.parameter @wte : tensor<101x64xf32, #mtp.layout<@mesh, tp = S(0)>>
// CHECK-NEXT: %[[P:.*]] = mtp.gather %[[T]][{{.*}}] dim 0 {{.*}} -> tensor<2x12x64xf32, #mtp.layout<@mesh, tp = P(sum)>>
// CHECK-NEXT: mtp.constant dense<8.000000e+00> : tensor<f32>
// CHECK-NOT: mtp.all_gather
// CHECK-NOT: mtp.gather_from
// CHECK: mtp.matmul {{.*}}, %[[T]] {transpose_rhs}
// CHECK-NEXT: return
func.func @main(%ids: tensor<2x12xi64>) -> tensor<2x12x101xf32> {
  %t = mtp.parameter @wte : tensor<101x64xf32>
  %0 = mtp.gather %t[%ids] dim 0 : (tensor<101x64xf32>, tensor<2x12xi64>) -> tensor<2x12x64xf32>
  %c = mtp.constant dense<8.0> : tensor<f32>
  %1 = mtp.mul %0, %c : (tensor<2x12x64xf32>, tensor<f32>) -> tensor<2x12x64xf32>
  %2 = mtp.tanh %1 : (tensor<2x12x64xf32>) -> tensor<2x12x64xf32>
  %3 = mtp.matmul %2, %t {transpose_rhs} : (tensor<2x12x64xf32>, tensor<101x64xf32>) -> tensor<2x12x101xf32>
  return %3 : tensor<2x12x101xf32>
}
