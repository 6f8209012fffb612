// RUN: mtp-opt %s --split-input-file --mtp-shard-states=zero=3 | FileCheck %s
// RUN: mtp-opt %s --split-input-file --mtp-shard-states=zero=2 | FileCheck %s --check-prefix=TWO
// RUN: not mtp-opt %s --split-input-file --mtp-shard-states="zero=1 axis=none" 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not mtp-opt %s --split-input-file --mtp-shard-states=zero=4 2>&1 | FileCheck %s --check-prefix=STAGE

// AXIS: error: zero=1 splits over the mesh axis none, which the mesh lacks
// STAGE: error: ZeRO has stages 1, 2 and 3, not 4
// TWO: mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1)>>
// TWO: mtp.copy_to

// A copy becomes a gather, whose conjugate reduces and scatters. What is frozen
// stays whole; a dimension that tp cuts already is cut finer only if that pads
// less.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[W:.*]] = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<8x4xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
// CHECK-NEXT: %[[B:.*]] = mtp.parameter @b : tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>
// CHECK-NEXT: %[[G:.*]] = mtp.all_gather %[[W]] ["dp"] : {{.*}} -> tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1), dp = R>>
// CHECK-NEXT: mtp.copy_to %[[B]] ["dp"]
// CHECK-NEXT: mtp.matmul %arg0, %[[G]]
mtp.mesh @mesh <dp = 2, tp = 2>
mtp.initializer @w : tensor<8x4xf32> {file = "w.bin", offset = 0 : i64, bytes = 128 : i64}
mtp.initializer @b : tensor<4xf32> {file = "w.bin", offset = 128 : i64, bytes = 16 : i64}
func.func @main(%x: tensor<2x8xf32, #mtp.layout<@mesh, dp = S(0), tp = R>>) -> tensor<2x4xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>> {
  %w = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1)>>
  %b = mtp.parameter @b : tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>
  %f = mtp.copy_to %w ["dp"] : (tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1), dp = R>>
  %c = mtp.copy_to %b ["dp"] : (tensor<4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<4xf32, #mtp.layout<@mesh, tp = S(0), dp = R>>
  %0 = mtp.matmul %x, %f : (tensor<2x8xf32, #mtp.layout<@mesh, dp = S(0), tp = R>>, tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1), dp = R>>) -> tensor<2x4xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
  %1 = mtp.add %0, %c : (tensor<2x4xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>, tensor<4xf32, #mtp.layout<@mesh, tp = S(0), dp = R>>) -> tensor<2x4xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
  return %1 : tensor<2x4xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
}

// -----

// Used alike on all ranks: gathered for that; copied over two axes: gathered,
// then copied.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[W:.*]] = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<4xf32, #mtp.layout<@mesh, dp = S(0)>>
// CHECK-NEXT: %[[I:.*]] = mtp.gather_from %[[W]] ["dp"] : {{.*}} -> tensor<4xf32, #mtp.layout<@mesh>>
// CHECK-NEXT: %[[G:.*]] = mtp.all_gather %[[W]] ["dp"] : {{.*}} -> tensor<4xf32, #mtp.layout<@mesh, dp = R>>
// CHECK-NEXT: %[[R:.*]] = mtp.copy_to %[[G]] ["tp"] : {{.*}} -> tensor<4xf32, #mtp.layout<@mesh, dp = R, tp = R>>
// CHECK-NEXT: mtp.neg %[[I]]
// CHECK-NEXT: mtp.neg %[[R]]
mtp.mesh @mesh <dp = 2, tp = 2>
mtp.initializer @w : tensor<4xf32> {file = "w.bin", offset = 0 : i64, bytes = 16 : i64}
func.func @main() -> (tensor<4xf32, #mtp.layout<@mesh>>, tensor<4xf32, #mtp.layout<@mesh, dp = R, tp = R>>) {
  %w = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<4xf32, #mtp.layout<@mesh>>
  %f = mtp.copy_to %w ["dp", "tp"] : (tensor<4xf32, #mtp.layout<@mesh>>) -> tensor<4xf32, #mtp.layout<@mesh, dp = R, tp = R>>
  %0 = mtp.neg %w : (tensor<4xf32, #mtp.layout<@mesh>>) -> tensor<4xf32, #mtp.layout<@mesh>>
  %1 = mtp.neg %f : (tensor<4xf32, #mtp.layout<@mesh, dp = R, tp = R>>) -> tensor<4xf32, #mtp.layout<@mesh, dp = R, tp = R>>
  return %0, %1 : tensor<4xf32, #mtp.layout<@mesh>>, tensor<4xf32, #mtp.layout<@mesh, dp = R, tp = R>>
}
