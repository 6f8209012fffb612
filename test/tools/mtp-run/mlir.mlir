// A module of the user: planned here, or laid out by its author.
// RUN: split-file %s %t
// RUN: mtp-run %t/plain.mlir --mesh tp=2 --random-inputs --check --no-cache | FileCheck %s --check-prefix=PLAIN
// RUN: mtp-run %t/plain.mlir --mesh tp=3 --random-inputs --check --no-cache --poison --precision f64 --quiet
// RUN: mtp-opt %t/plain.mlir --mtp-shard="mesh=tp=2" -o %t/typed.mlir
// RUN: mtp-run %t/typed.mlir --random-inputs --no-cache --outputs %t/typed.npz | FileCheck %s --check-prefix=TYPED
// RUN: mtp-run %t/typed.mlir --mesh tp=2 --random-inputs --no-cache --quiet
// RUN: %exits 2 mtp-run %t/typed.mlir --mesh tp=4 --random-inputs --no-cache 2>&1 | FileCheck %s --check-prefix=MESH
// RUN: %exits 2 mtp-run %t/typed.mlir --plan random:1 --random-inputs --no-cache 2>&1 | FileCheck %s --check-prefix=PLAN
// RUN: %exits 1 mtp-run %t/nomain.mlir --random-inputs --no-cache 2>&1 | FileCheck %s --check-prefix=NOMAIN
// RUN: %exits 1 mtp-run %t/syntax.mlir --random-inputs --no-cache 2>&1 | FileCheck %s --check-prefix=SYNTAX

// PLAIN: mesh tp=2
// PLAIN: w {{.*}} tp = S(0)
// PLAIN: all_reduce on tp (reduce_from)
// PLAIN: result0 {{.*}} ok
// TYPED: mesh tp=2
// MESH: error: --mesh tp=4: {{.*}}typed.mlir is laid out for tp = 2
// PLAN: error: --plan, --pin, --save-plan: {{.*}}typed.mlir has its layouts already
// NOMAIN: error: {{.*}}nomain.mlir: there is no func.func @main
// SYNTAX: error: {{.*}}syntax.mlir:1:

//--- plain.mlir
mtp.initializer @v : tensor<4x6xf32> {value = dense<[[1.0, 2.0, 3.0, -1.0, 0.5, 2.0], [0.0, 1.0, 1.0, 2.0, -2.0, 1.0], [3.0, 0.5, 1.0, 1.0, 0.0, -1.0], [1.0, 1.0, -1.0, 0.0, 2.0, 0.5]]> : tensor<4x6xf32>, parameter}
mtp.initializer @w : tensor<6x4xf32> {value = dense<0.25> : tensor<6x4xf32>, parameter}
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %v = mtp.parameter @v : tensor<4x6xf32>
  %w = mtp.parameter @w : tensor<6x4xf32>
  %0 = mtp.matmul %x, %v : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
  %1 = mtp.gelu %0 : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %2 = mtp.matmul %1, %w : (tensor<2x6xf32>, tensor<6x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
//--- nomain.mlir
func.func @other(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  return %x : tensor<2x4xf32>
}
//--- syntax.mlir
func.func @main(%x: tensor<2x4xf32) -> tensor<2x4xf32> {
