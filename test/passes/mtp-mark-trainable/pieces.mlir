// RUN: mtp-opt %s --split-input-file --mtp-mark-trainable | FileCheck %s

// Disjoint columns that are all of the weight stay pieces.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: mtp.parameter @w recipe [#mtp.step<"slice", [1, 0, 4]>] {mtp.trainable = 0 : i64}
// CHECK-NEXT: mtp.parameter @w recipe [#mtp.step<"slice", [1, 4, 4]>] {mtp.trainable = 1 : i64}
mtp.initializer @w : tensor<4x8xf32> {file = "w.bin", offset = 0 : i64, bytes = 128 : i64}
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %a = mtp.parameter @w recipe [#mtp.step<"slice", [1, 0, 4]>] : tensor<4x4xf32>
  %b = mtp.parameter @w recipe [#mtp.step<"slice", [1, 4, 4]>] : tensor<4x4xf32>
  %0 = mtp.matmul %x, %a : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = mtp.matmul %0, %b : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// The same piece twice is one.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[W:.*]] = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<4x4xf32>
// CHECK-NEXT: %[[Y:.*]] = mtp.matmul %arg0, %[[W]]
// CHECK-NEXT: mtp.matmul %[[Y]], %[[W]]
mtp.initializer @w : tensor<4x4xf32> {file = "w.bin", offset = 0 : i64, bytes = 64 : i64}
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %a = mtp.parameter @w : tensor<4x4xf32>
  %b = mtp.parameter @w : tensor<4x4xf32>
  %0 = mtp.matmul %x, %a : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = mtp.matmul %0, %b : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// As it lies and transposed: two uses of one piece.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[W:.*]] = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<4x6xf32>
// CHECK-NEXT: %[[T:.*]] = mtp.transpose %[[W]] [1, 0]
// CHECK-NEXT: %[[Y:.*]] = mtp.matmul %arg0, %[[W]]
// CHECK-NEXT: mtp.matmul %[[Y]], %[[T]]
mtp.initializer @w : tensor<4x6xf32> {file = "w.bin", offset = 0 : i64, bytes = 96 : i64}
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %a = mtp.parameter @w : tensor<4x6xf32>
  %b = mtp.parameter @w recipe [#mtp.step<"transpose", [1, 0]>] : tensor<6x4xf32>
  %0 = mtp.matmul %x, %a : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
  %1 = mtp.matmul %0, %b : (tensor<2x6xf32>, tensor<6x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// A part of the rows: the others have a zero gradient, but weight decay.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[W:.*]] = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<8x4xf32>
// CHECK-NEXT: %[[A:.*]] = mtp.strided_slice %[[W]] dim 0 start 0 step 1 : (tensor<8x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: mtp.add %arg0, %[[A]]
mtp.initializer @w : tensor<8x4xf32> {file = "w.bin", offset = 0 : i64, bytes = 128 : i64}
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %a = mtp.parameter @w recipe [#mtp.step<"slice", [0, 0, 2]>] : tensor<2x4xf32>
  %0 = mtp.add %x, %a : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// Rows that lie interleaved are pieces once their common reshape is seen.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: mtp.parameter @w recipe [#mtp.step<"reshape", [2, 2, 4]>, #mtp.step<"slice", [1, 0, 1]>, #mtp.step<"reshape", [2, 4]>] {mtp.trainable = 0 : i64}
// CHECK-NEXT: mtp.parameter @w recipe [#mtp.step<"reshape", [2, 2, 4]>, #mtp.step<"slice", [1, 1, 1]>, #mtp.step<"reshape", [2, 4]>] {mtp.trainable = 1 : i64}
mtp.initializer @w : tensor<4x4xf32> {file = "w.bin", offset = 0 : i64, bytes = 64 : i64}
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %a = mtp.parameter @w recipe [#mtp.step<"reshape", [2, 2, 4]>, #mtp.step<"slice", [1, 0, 1]>, #mtp.step<"reshape", [2, 4]>] : tensor<2x4xf32>
  %b = mtp.parameter @w recipe [#mtp.step<"reshape", [2, 2, 4]>, #mtp.step<"slice", [1, 1, 1]>, #mtp.step<"reshape", [2, 4]>] : tensor<2x4xf32>
  %0 = mtp.mul %x, %a : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = mtp.add %0, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
