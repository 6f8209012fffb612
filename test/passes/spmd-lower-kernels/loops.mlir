// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mtp-opt %s --spmd-lower-kernels=to=loops --cse --canonicalize | FileCheck %s
// RUN: mtp-opt %s --mtp-to-llvm | FileCheck %s --check-prefix=LLVM
// RUN: not mtp-opt %s --spmd-lower-kernels=to=gpu 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: error: option 'to' is 'gpu', expected loops or llvm

// Equal regions are one kernel.
// CHECK-LABEL: func.func private @body_0(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %[[X:.*]]: !llvm.ptr {llvm.noalias}, %[[Y:.*]]: !llvm.ptr {llvm.noalias}, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-NEXT: scf.for %[[I:.*]] = %[[BEGIN]] to %[[END]] step %[[ONE]]  : i64 {
// CHECK-NEXT:   %[[FROM:.*]] = llvm.getelementptr %[[X]][%[[I]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   %[[A:.*]] = llvm.load %[[FROM]] : !llvm.ptr -> f32
// CHECK-NEXT:   %[[B:.*]] = arith.negf %[[A]] : f32
// CHECK-NEXT:   %[[TO:.*]] = llvm.getelementptr %[[Y]][%[[I]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   llvm.store %[[B]], %[[TO]] : f32, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: return

// The maximum of a row is before its last loop, the sum may be reordered.
// CHECK-LABEL: func.func private @body_1(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %[[X:.*]]: !llvm.ptr {llvm.noalias}, %[[Y:.*]]: !llvm.ptr {llvm.noalias}, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK:      %[[EXPS:.*]] = llvm.alloca %{{.*}} x f32
// CHECK-NEXT: scf.for %[[ROW:.*]] = %[[BEGIN]] to %[[END]]
// CHECK-NEXT:   %[[START:.*]] = arith.muli %[[ROW]], %{{.*}} : i64
// CHECK-NEXT:   %[[MAX:.*]] = scf.for %[[J:.*]] = %{{.*}} iter_args(%[[M:.*]] = %{{.*}}) -> (f32)
// CHECK-NEXT:     arith.addi %[[START]], %[[J]]
// CHECK-NEXT:     llvm.getelementptr %[[X]]
// CHECK-NEXT:     llvm.load
// CHECK-NEXT:     arith.maximumf %[[M]]
// CHECK-NEXT:     scf.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[SUM:.*]] = scf.for %[[J:.*]] = %{{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (f32)
// CHECK-NEXT:     arith.addi %[[START]], %[[J]]
// CHECK-NEXT:     llvm.getelementptr %[[X]]
// CHECK-NEXT:     llvm.load
// CHECK-NEXT:     arith.subf %{{.*}}, %[[MAX]]
// CHECK-NEXT:     math.exp
// CHECK-NEXT:     llvm.getelementptr %[[EXPS]][%[[J]]]
// CHECK-NEXT:     llvm.store
// CHECK-NEXT:     arith.addf %[[S]], %{{.*}} fastmath<reassoc> : f32
// CHECK-NEXT:     scf.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[SCALE:.*]] = arith.divf %{{.*}}, %[[SUM]] : f32
// CHECK-NEXT:   scf.for %[[J:.*]] =
// CHECK-NEXT:     llvm.getelementptr %[[EXPS]][%[[J]]]
// CHECK-NEXT:     llvm.load
// CHECK-NEXT:     arith.mulf %{{.*}}, %[[SCALE]]
// CHECK-NEXT:     arith.addi %[[START]], %[[J]]
// CHECK-NEXT:     llvm.getelementptr %[[Y]]
// CHECK-NEXT:     llvm.store
// CHECK-NEXT:   }
// CHECK-NEXT: }

// A concat breaks the loop where it changes over: no test inside.
// CHECK-LABEL: func.func private @body_2(
// CHECK-NOT:  scf.if
// CHECK-NOT:  arith.select
// CHECK-NOT:  arith.div
// CHECK-COUNT-5: scf.for
// CHECK-NOT:  scf.for
// CHECK-NOT:  func.func
// CHECK: }

// LLVM-NOT: scf.
// LLVM-NOT: math.
// LLVM: llvm.func @body_0(
// LLVM: llvm.func @body_1(
// LLVM: llvm.func @body_2(
// LLVM-NOT: llvm.func
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>, %s: tensor<2x4x16xf32>, %k: tensor<4x3x8xf32>, %l: tensor<4x5x8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<2x4x16xf32>, tensor<4x64xf32>) {
  %0 = spmd.fused (%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    %r = mtp.neg %a : (tensor<8xf32>) -> tensor<8xf32>
    spmd.yield %r : tensor<8xf32>
  }
  %1 = spmd.fused (%y) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%b: tensor<8xf32>):
    %q = mtp.neg %b : (tensor<8xf32>) -> tensor<8xf32>
    spmd.yield %q : tensor<8xf32>
  }
  %2 = spmd.fused (%s) : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32> {
  ^bb0(%a: tensor<2x4x16xf32>):
    %r = mtp.softmax %a dim 2 : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    spmd.yield %r : tensor<2x4x16xf32>
  }
  %3 = spmd.fused (%k, %l) : (tensor<4x3x8xf32>, tensor<4x5x8xf32>) -> tensor<4x64xf32> {
  ^bb0(%a: tensor<4x3x8xf32>, %b: tensor<4x5x8xf32>):
    %r = mtp.concat dim 1 %a, %b : (tensor<4x3x8xf32>, tensor<4x5x8xf32>) -> tensor<4x8x8xf32>
    %t = mtp.reshape %r : (tensor<4x8x8xf32>) -> tensor<4x64xf32>
    spmd.yield %t : tensor<4x64xf32>
  }
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<2x4x16xf32>, tensor<4x64xf32>
}
