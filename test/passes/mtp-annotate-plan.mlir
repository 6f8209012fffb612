// The plan as attributes, and back: the same layouts, from the attributes alone.
// RUN: mtp-opt %s --mtp-annotate-plan="mesh=tp=2" > %t.annotated
// RUN: FileCheck %s < %t.annotated
// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=2" > %t.chosen
// RUN: mtp-opt %t.annotated --mtp-apply-plan="mesh=tp=2" > %t.kept
// RUN: diff %t.chosen %t.kept
// RUN: mtp-opt %t.annotated --mtp-apply-plan | diff %t.chosen -
// RUN: mtp-opt %s --mtp-plan="mesh=tp=2" | FileCheck %s

// A plan that no objective would choose is kept all the same.
// RUN: mtp-opt %s --mtp-annotate-plan="mesh=dp=2,tp=2 plan=random:5" > %t.random
// RUN: mtp-opt %t.random --mtp-apply-plan="mesh=dp=2,tp=2" > %t.again
// RUN: mtp-opt %s --mtp-apply-plan="mesh=dp=2,tp=2 plan=random:5" | diff - %t.again

// Hosts change costs: a plan can be made for them.
// RUN: mtp-opt %s --mtp-plan="mesh=tp=2 topology=nodes:2,ranks:1" | FileCheck %s
// RUN: not mtp-opt %s --mtp-plan="mesh=tp=2 topology=nodes:2,rank" 2>&1 | FileCheck %s --check-prefix=TOPOLOGY
// RUN: not mtp-opt %s --mtp-shard="mesh=tp=4 topology=nodes:1,ranks:2" 2>&1 | FileCheck %s --check-prefix=SMALL

// RUN: not mtp-opt %t.annotated --mtp-apply-plan="mesh=tp=4" 2>&1 | FileCheck %s --check-prefix=MESH

// CHECK: module attributes {mtp.plan_mesh = "tp=2"}
// CHECK: mtp.plan = {results = [""]}
// CHECK: mtp.parameter @w {mtp.plan = {results = ["tp = S(1)"]}} : tensor<8x16xf32>
// CHECK: mtp.matmul
// CHECK-SAME: {mtp.plan = {operands = ["tp = R", "tp = S(1)"], results = ["tp = S(1)"]}}
// CHECK-SAME: -> tensor<4x16xf32>
// CHECK-NOT: #mtp.layout
// TOPOLOGY: error: topology 'nodes:2,rank': 'rank' is none of nodes, ranks
// SMALL: error: {{.*}}4
// MESH: error: the module is annotated with a plan for mesh tp=2, not for tp=4
mtp.initializer @w : tensor<8x16xf32> {file = "m", offset = 0 : i64, bytes = 512 : i64, parameter}
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %w = mtp.parameter @w : tensor<8x16xf32>
  %0 = mtp.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("product")
  %1 = mtp.gelu %0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}
