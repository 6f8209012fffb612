// RUN: mtp-opt %s --spmd-verify | FileCheck %s

mtp.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<2xf32> {mtp.layout = #mtp.layout<@mesh, tp = S(0)>, mtp.global_type = tensor<4xf32>})
    -> (tensor<4xf32> {mtp.layout = #mtp.layout<@mesh>, mtp.global_type = tensor<4xf32>}) {
  // CHECK-NEXT: %[[G:.*]] = spmd.all_gather
  %0 = spmd.all_gather %x ["tp"] dim 0 <4 by ["tp"]> for "gather_from" : tensor<2xf32> to tensor<4xf32>
  // CHECK-NEXT: return %[[G]]
  return %0 : tensor<4xf32>
}
