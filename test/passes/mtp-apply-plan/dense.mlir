// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=2" | FileCheck %s --check-prefix=TP
// RUN: mtp-opt %s --mtp-apply-plan="mesh=dp=2,tp=2" | FileCheck %s --check-prefix=DP
// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=1" | FileCheck %s --check-prefix=ONE

mtp.initializer @v : tensor<64x256xf32> {file = "m", offset = 0 : i64, bytes = 65536 : i64, parameter}
mtp.initializer @c : tensor<256xf32> {file = "m", offset = 0 : i64, bytes = 1024 : i64, parameter}
mtp.initializer @w : tensor<256x64xf32> {file = "m", offset = 0 : i64, bytes = 65536 : i64, parameter}

// TP: mtp.mesh @mesh <tp = 2>
// TP-LABEL: func.func @main
// TP-SAME: (%[[X:.*]]: tensor<4x8x64xf32, #mtp.layout<@mesh>> {{.*}}) -> tensor<4x8x64xf32, #mtp.layout<@mesh>>
// TP-NEXT: %[[V:.*]] = mtp.parameter @v : tensor<64x256xf32, #mtp.layout<@mesh, tp = S(1)>>
// TP-NEXT: %[[C:.*]] = mtp.parameter @c : tensor<256xf32, #mtp.layout<@mesh, tp = S(0)>>
// TP-NEXT: %[[W:.*]] = mtp.parameter @w : tensor<256x64xf32, #mtp.layout<@mesh, tp = S(0)>>
// TP-NEXT: %[[F:.*]] = mtp.copy_to %[[X]] ["tp"]
// TP-NEXT: %[[Y:.*]] = mtp.matmul %[[F]], %[[V]] {{.*}} -> tensor<4x8x256xf32, #mtp.layout<@mesh, tp = S(2)>>
// TP-NEXT: %[[B:.*]] = mtp.add %[[Y]], %[[C]]
// TP-NEXT: %[[G:.*]] = mtp.gelu %[[B]] {{.*}} -> tensor<4x8x256xf32, #mtp.layout<@mesh, tp = S(2)>>
// TP-NEXT: %[[P:.*]] = mtp.matmul %[[G]], %[[W]] {{.*}} -> tensor<4x8x64xf32, #mtp.layout<@mesh, tp = P(sum)>>
// TP-NEXT: %[[R:.*]] = mtp.reduce_from %[[P]] ["tp"]
// TP-NEXT: %[[Z:.*]] = mtp.add %[[R]], %[[X]]
// TP-NEXT: return %[[Z]]

// The batch is cut, and each weight passes through one copy_to on dp.
// DP-LABEL: func.func @main
// DP-SAME: tensor<4x8x64xf32, #mtp.layout<@mesh, dp = S(0)>>
// DP: mtp.parameter @v : tensor<64x256xf32, #mtp.layout<@mesh, tp = S(1)>>
// DP-COUNT-3: mtp.copy_to %{{.*}} ["dp"]
// DP-NOT: ["dp"]
// DP: mtp.reduce_from %{{.*}} ["tp"]
// DP-NOT: ["dp"]

// ONE-NOT: mtp.copy_to
// ONE-NOT: mtp.reduce_from
func.func @main(%x: tensor<4x8x64xf32> {mtp.dim_names = ["", "sequence", ""]}) -> tensor<4x8x64xf32> {
  %v = mtp.parameter @v : tensor<64x256xf32>
  %c = mtp.parameter @c : tensor<256xf32>
  %w = mtp.parameter @w : tensor<256x64xf32>
  %0 = mtp.matmul %x, %v : (tensor<4x8x64xf32>, tensor<64x256xf32>) -> tensor<4x8x256xf32>
  %1 = mtp.add %0, %c : (tensor<4x8x256xf32>, tensor<256xf32>) -> tensor<4x8x256xf32>
  %2 = mtp.gelu %1 : (tensor<4x8x256xf32>) -> tensor<4x8x256xf32>
  %3 = mtp.matmul %2, %w : (tensor<4x8x256xf32>, tensor<256x64xf32>) -> tensor<4x8x64xf32>
  %4 = mtp.add %3, %x : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  return %4 : tensor<4x8x64xf32>
}
