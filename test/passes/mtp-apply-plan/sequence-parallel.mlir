// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=2 sequence-parallel" | FileCheck %s

mtp.initializer @n : tensor<64xf32> {file = "m", offset = 0 : i64, bytes = 256 : i64, parameter}
mtp.initializer @v : tensor<64x256xf32> {file = "m", offset = 0 : i64, bytes = 65536 : i64, parameter}
mtp.initializer @w : tensor<256x64xf32> {file = "m", offset = 0 : i64, bytes = 65536 : i64, parameter}

// The residual stays cut by tokens; it is gathered for the product with @v alone.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[IN:.*]]: tensor<4x8x64xf32, #mtp.layout<@mesh>> {{.*}}) -> tensor<4x8x64xf32, #mtp.layout<@mesh, tp = S(1)>>
// CHECK: %[[V:.*]] = mtp.parameter @v : tensor<64x256xf32, #mtp.layout<@mesh, tp = S(1)>>
// CHECK-NEXT: %[[W:.*]] = mtp.parameter @w : tensor<256x64xf32, #mtp.layout<@mesh, tp = S(0)>>
// CHECK-NEXT: %[[X:.*]] = mtp.scatter_to %[[IN]] ["tp"]
// CHECK: %[[N:.*]] = mtp.rms_norm %[[X]], {{.*}} -> tensor<4x8x64xf32, #mtp.layout<@mesh, tp = S(1)>>
// CHECK-NEXT: %[[F:.*]] = mtp.all_gather %[[N]] ["tp"] {{.*}} -> tensor<4x8x64xf32, #mtp.layout<@mesh, tp = R>>
// CHECK-NEXT: %[[Y:.*]] = mtp.matmul %[[F]], %[[V]] {{.*}} -> tensor<4x8x256xf32, #mtp.layout<@mesh, tp = S(2)>>
// CHECK-NEXT: %[[P:.*]] = mtp.matmul %[[Y]], %[[W]] {{.*}} -> tensor<4x8x64xf32, #mtp.layout<@mesh, tp = P(sum)>>
// CHECK-NEXT: %[[G:.*]] = mtp.reduce_scatter %[[P]] ["tp"] {{.*}} -> tensor<4x8x64xf32, #mtp.layout<@mesh, tp = S(1)>>
// CHECK-NEXT: %[[Z:.*]] = mtp.add %[[G]], %[[X]]
// CHECK-NEXT: return %[[Z]]
func.func @main(%x: tensor<4x8x64xf32> {mtp.dim_names = ["", "sequence", ""]}) -> tensor<4x8x64xf32> {
  %n = mtp.parameter @n : tensor<64xf32>
  %v = mtp.parameter @v : tensor<64x256xf32>
  %w = mtp.parameter @w : tensor<256x64xf32>
  %0 = mtp.rms_norm %x, %n {epsilon = 1.0e-5 : f64} : (tensor<4x8x64xf32>, tensor<64xf32>) -> tensor<4x8x64xf32>
  %1 = mtp.matmul %0, %v : (tensor<4x8x64xf32>, tensor<64x256xf32>) -> tensor<4x8x256xf32>
  %2 = mtp.matmul %1, %w : (tensor<4x8x256xf32>, tensor<256x64xf32>) -> tensor<4x8x64xf32>
  %3 = mtp.add %2, %x : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  return %3 : tensor<4x8x64xf32>
}
