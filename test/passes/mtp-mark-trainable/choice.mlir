// RUN: mtp-opt %s --mtp-mark-trainable | FileCheck %s
// RUN: mtp-opt %s --mtp-mark-trainable="freeze=b*" | FileCheck %s --check-prefix=FREEZE
// RUN: mtp-opt %s --mtp-mark-trainable="train-only=b" | FileCheck %s --check-prefix=ONLY
// RUN: not mtp-opt %s --mtp-mark-trainable="freeze=x*" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not mtp-opt %s --mtp-mark-trainable="freeze=*" 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: not mtp-opt %s --mtp-mark-trainable="freeze=[" 2>&1 | FileCheck %s --check-prefix=GLOB

// CHECK-DAG: mtp.initializer @w : tensor<4x4xf32> {{.*}}mtp.reason = "reaches the result through differentiable operations"{{.*}}trainable
// CHECK-DAG: mtp.initializer @b {{.*}}trainable
// CHECK-DAG: mtp.initializer @limit {{.*}}mtp.reason = "reaches the result only through compare"
// CHECK-DAG: mtp.initializer @unused {{.*}}mtp.reason = "nothing reads it"
// CHECK-NOT: mtp.parameter @limit {mtp.trainable

// FREEZE: mtp.initializer @b {{.*}}mtp.reason = "is frozen (--freeze)"
// FREEZE: mtp.parameter @w {mtp.trainable = 0 : i64}
// FREEZE-NEXT: mtp.parameter @b : tensor<4xf32>
// ONLY: mtp.initializer @w {{.*}}mtp.reason = "is not among those that --train-only names"
// ONLY: mtp.parameter @w : tensor<4x4xf32>
// ONLY-NEXT: mtp.parameter @b {mtp.trainable = 0 : i64}
// ABSENT: error: freeze 'x*' matches no trainable initializer
// ALL: error: there is nothing to train
// GLOB: error: freeze '['
mtp.initializer @w : tensor<4x4xf32> {file = "w.bin", offset = 0 : i64, bytes = 64 : i64}
mtp.initializer @b : tensor<4xf32> {file = "w.bin", offset = 64 : i64, bytes = 16 : i64}
mtp.initializer @limit : tensor<4xf32> {file = "w.bin", offset = 80 : i64, bytes = 16 : i64}
mtp.initializer @unused : tensor<4xf32> {file = "w.bin", offset = 96 : i64, bytes = 16 : i64}
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %w = mtp.parameter @w : tensor<4x4xf32>
  %b = mtp.parameter @b : tensor<4xf32>
  %limit = mtp.parameter @limit : tensor<4xf32>
  %0 = mtp.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = mtp.add %0, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %m = mtp.compare lt %1, %limit : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xi1>
  %2 = mtp.select %m, %1, %0 : (tensor<2x4xi1>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
