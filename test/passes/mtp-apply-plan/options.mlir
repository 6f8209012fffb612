// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=2 pin=product=tp=P(sum)" | FileCheck %s --check-prefix=PIN
// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=2 plan=random:7" > %t.a
// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=2 plan=random:7" > %t.b
// RUN: diff %t.a %t.b
// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=2 explain pin=product=tp=P(sum)" -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: not mtp-opt %s --mtp-apply-plan="mesh=tp=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not mtp-opt %s --mtp-apply-plan="mesh=tp=2,tp=2" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not mtp-opt %s --mtp-apply-plan="mesh=tp=70000" 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not mtp-opt %s --mtp-apply-plan="mesh=tp=2 objective=best" 2>&1 | FileCheck %s --check-prefix=OBJECTIVE
// RUN: not mtp-opt %s --mtp-apply-plan="mesh=tp=2 plan=random:x" 2>&1 | FileCheck %s --check-prefix=SEED
// RUN: not mtp-opt %s --mtp-apply-plan="mesh=tp=2 plan=%t.missing" 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not mtp-opt %s --mtp-apply-plan="mesh=tp=2 pin=nothing=tp=R" 2>&1 | FileCheck %s --check-prefix=NAME

// PIN: mtp.matmul {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
// EXPLAIN: plan for mesh tp=2 (chosen)
// EXPLAIN: w: row parallel: 2 blocks of [8, 8]
// EXPLAIN: reduce_from on tp of 'product' {{.*}} runner-up: none: no other way is allowed
// ZERO: mesh axis 'tp=0' is not NAME=SIZE
// TWICE: mesh axis 'tp' is given twice
// LARGE: the mesh has more than 65536 ranks
// OBJECTIVE: objective is parallel or time, not 'best'
// SEED: random:SEED needs a number, not 'x'
// MISSING: cannot read the plan
// NAME: no value is named 'nothing'
mtp.initializer @w : tensor<16x8xf32> {file = "m", offset = 0 : i64, bytes = 512 : i64, parameter}
func.func @main(%x: tensor<4x16xf32>) -> tensor<4x8xf32> {
  %w = mtp.parameter @w : tensor<16x8xf32>
  %0 = mtp.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> loc("product")
  return %0 : tensor<4x8xf32>
}
