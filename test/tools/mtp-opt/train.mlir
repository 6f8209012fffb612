// A training step on dp=2,tp=2: forward, backward and update with layouts; every
// conversion and its conjugate have one number.
// RUN: mtp-opt %s --mtp-train="mesh=dp=2,tp=2 loss=cross_entropy:logits=logits,labels=labels optimizer=sgd" | FileCheck %s
// RUN: mtp-opt %s --mtp-train="mesh=dp=2,tp=2 loss=cross_entropy:logits=logits,labels=labels" --mtp-to-spmd | FileCheck %s --check-prefix=SPMD

// CHECK: %[[V:.*]] = mtp.parameter @v {mtp.trainable = {{[01]}} : i64} : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
// CHECK: mtp.copy_to %[[V]] ["dp"] {pair = [[PV:[0-9]+]] : i64}
// CHECK: mtp.reduce_max_from {{.*}} ["tp"]
// CHECK: mtp.reduce_from {{.*}} ["tp"] {pair = [[PS:[0-9]+]] : i64} : (tensor<4xf32
// CHECK: mtp.copy_to {{.*}} ["tp"] {pair = [[PS]] : i64, phase = "backward"}
// CHECK: mtp.reduce_from {{.*}} ["dp"] {pair = [[PV]] : i64, phase = "backward"}
// CHECK: mtp.store

// Logits of 4 rows x 101 classes never move: 2 rows and 51 classes a rank.
// SPMD-NOT: spmd.all_{{.*}}tensor<{{[24]}}x{{51|101}}xf32>
// SPMD: spmd.store
mtp.initializer @v : tensor<8x16xf32> {file = "w.bin", offset = 0 : i64, bytes = 512 : i64}
mtp.initializer @w : tensor<16x101xf32> {file = "w.bin", offset = 512 : i64, bytes = 6464 : i64}
func.func @main(%x: tensor<4x8xf32> {mtp.name = "x"}) -> (tensor<4x101xf32> {mtp.name = "logits"}) {
  %v = mtp.parameter @v : tensor<8x16xf32>
  %w = mtp.parameter @w : tensor<16x101xf32>
  %0 = mtp.matmul %x, %v : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = mtp.tanh %0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %2 = mtp.matmul %1, %w : (tensor<4x16xf32>, tensor<16x101xf32>) -> tensor<4x101xf32>
  return %2 : tensor<4x101xf32>
}
