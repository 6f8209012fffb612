// RUN: mtp-opt %s --mtp-shard="mesh=tp=2" | FileCheck %s
// RUN: mtp-opt %s --mtp-shard="mesh=dp=2,tp=2" | FileCheck %s --check-prefix=DP
// RUN: mtp-opt %s --mtp-shard="mesh=tp=2" --mtp-to-spmd | FileCheck %s --check-prefix=SPMD
// RUN: mtp-opt %s --mtp-shard="mesh=tp=2" --explain -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: %exits 1 mtp-opt %s --mtp-shard="mesh=tp=0" 2>&1 | FileCheck %s --check-prefix=ZERO

// ZERO: error: {{.*}}tp

mtp.initializer @v : tensor<8x16xf32> {file = "model.bin", offset = 0 : i64, bytes = 512 : i64, parameter}
mtp.initializer @w : tensor<8x16xf32> {file = "model.bin", offset = 512 : i64, bytes = 512 : i64, parameter}

// A column split, then a row split: one all-reduce.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[V:.*]] = mtp.parameter @v : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
// CHECK-DAG: %[[W:.*]] = mtp.parameter @w : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
// CHECK-DAG: %[[F:.*]] = mtp.copy_to %arg0 ["tp"]
// CHECK: %[[A:.*]] = mtp.matmul %[[F]], %[[V]]
// CHECK-NEXT: %[[G:.*]] = mtp.gelu %[[A]]
// CHECK-NEXT: %[[P:.*]] = mtp.matmul %[[G]], %[[W]] {transpose_rhs} {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
// CHECK-NEXT: %[[Y:.*]] = mtp.reduce_from %[[P]] ["tp"]
// CHECK-NEXT: return %[[Y]]

// DP: func.func @main(%arg0: tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>
// DP: mtp.copy_to %{{.*}} ["dp"]

// SPMD-LABEL: func.func @main
// SPMD-DAG: spmd.parameter @v layout #mtp.layout<@mesh, tp = S(1)> global tensor<8x16xf32> : tensor<8x8xf32>
// SPMD: spmd.all_reduce {{.*}} sum for "reduce_from"
// SPMD-NOT: spmd.all

// EXPLAIN: plan for mesh tp=2
// EXPLAIN: v: column parallel
// EXPLAIN: w:
// EXPLAIN: forward reduce_from on tp
func.func @main(%x: tensor<4x8xf32> {mtp.name = "x"}) -> (tensor<4x8xf32> {mtp.name = "y"}) {
  %v = mtp.parameter @v : tensor<8x16xf32>
  %w = mtp.parameter @w : tensor<8x16xf32>
  %0 = mtp.matmul %x, %v : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = mtp.gelu %0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %t = mtp.transpose %w [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %2 = mtp.matmul %1, %t : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
