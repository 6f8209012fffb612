// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mtp-opt %s --spmd-bucket-collectives --split-input-file | FileCheck %s
// RUN: mtp-opt %s --spmd-bucket-collectives=limit=40 --split-input-file | FileCheck %s --check-prefix=SMALL

mtp.mesh @mesh <dp = 2>

// Sums whose results wait until the end become one, at the place of the last.
// CHECK-LABEL: func.func @gradients
// CHECK-SAME: (%[[A:.*]]: tensor<4x2xf32>, %[[B:.*]]: tensor<3xf32>, %[[C:.*]]: tensor<2xf32>)
// CHECK-NEXT: %[[N:.*]] = mtp.neg %[[B]]
// CHECK-NEXT: %[[FLAT:.*]] = mtp.reshape %[[A]] : (tensor<4x2xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[JOINED:.*]] = mtp.concat dim 0 %[[FLAT]], %[[N]] : (tensor<8xf32>, tensor<3xf32>) -> tensor<11xf32>
// CHECK-NEXT: %[[SUM:.*]] = spmd.all_reduce %[[JOINED]] ["dp"]  sum for "reduce_from" in "backward" {node = "a and 1 more", predicted_bytes = 44 : i64, predicted_count = 2 : i64, reason = "sums of 2 gradients over the same ranks, taken together"}
// CHECK-NEXT: %[[FIRST:.*]] = mtp.strided_slice %[[SUM]] dim 0 start 0 step 1 : (tensor<11xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[SHAPED:.*]] = mtp.reshape %[[FIRST]] : (tensor<8xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: %[[SECOND:.*]] = mtp.strided_slice %[[SUM]] dim 0 start 8 step 1 : (tensor<11xf32>) -> tensor<3xf32>
// CHECK-NEXT: %[[ALONE:.*]] = spmd.all_reduce %[[C]] ["dp"]  sum for "reduce_from" in "update"
// CHECK-NEXT: return %[[SHAPED]], %[[SECOND]], %[[ALONE]]

// With a limit of 40 bytes the first one, of 32, is alone.
// SMALL-LABEL: func.func @gradients
// SMALL-NOT: mtp.concat
func.func @gradients(%a: tensor<4x2xf32>, %b: tensor<3xf32>, %c: tensor<2xf32>) -> (tensor<4x2xf32>, tensor<3xf32>, tensor<2xf32>) {
  %0 = spmd.all_reduce %a ["dp"] sum for "reduce_from" in "backward" {node = "a", predicted_bytes = 32 : i64, predicted_count = 1 : i64} : tensor<4x2xf32> to tensor<4x2xf32>
  %1 = mtp.neg %b : (tensor<3xf32>) -> tensor<3xf32>
  %2 = spmd.all_reduce %1 ["dp"] sum for "reduce_from" in "backward" {node = "b", predicted_bytes = 12 : i64, predicted_count = 1 : i64} : tensor<3xf32> to tensor<3xf32>
  %3 = spmd.all_reduce %c ["dp"] sum for "reduce_from" in "update" : tensor<2xf32> to tensor<2xf32>
  return %0, %2, %3 : tensor<4x2xf32>, tensor<3xf32>, tensor<2xf32>
}

// -----

mtp.mesh @mesh <dp = 2, tp = 2>

// What is read at once, other axes, types, and the forward pass stay as they are.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: mtp.concat
// CHECK-COUNT-6: spmd.all_reduce
// CHECK-NOT: mtp.concat
// CHECK: return
func.func @left_alone(%a: tensor<4xf32>, %b: tensor<3xf64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<3xf64>, tensor<4xf32>, tensor<4xf32>) {
  %0 = spmd.all_reduce %a ["dp"] sum for "reduce_from" in "backward" : tensor<4xf32> to tensor<4xf32>
  %1 = mtp.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = spmd.all_reduce %1 ["dp"] sum for "reduce_from" in "backward" : tensor<4xf32> to tensor<4xf32>
  %3 = spmd.all_reduce %a ["tp"] sum for "reduce_from" in "backward" : tensor<4xf32> to tensor<4xf32>
  %4 = spmd.all_reduce %b ["dp"] sum for "reduce_from" in "backward" : tensor<3xf64> to tensor<3xf64>
  %5 = spmd.all_reduce %a ["dp"] sum for "reduce_from" : tensor<4xf32> to tensor<4xf32>
  %6 = spmd.all_reduce %a ["dp"] sum for "reduce_from" : tensor<4xf32> to tensor<4xf32>
  return %2, %3, %4, %5, %6 : tensor<4xf32>, tensor<4xf32>, tensor<3xf64>, tensor<4xf32>, tensor<4xf32>
}

// -----

mtp.mesh @mesh <dp = 2>

// The gradient of a table from that of the rows in use waits with the sum.
// CHECK-LABEL: func.func @rows_of_a_table
// CHECK-NEXT: %[[FLAT:.*]] = mtp.reshape %arg0
// CHECK-NEXT: %[[JOINED:.*]] = mtp.concat dim 0 %[[FLAT]], %arg1
// CHECK-NEXT: %[[SUM:.*]] = spmd.all_reduce %[[JOINED]]
// CHECK-NEXT: %[[PART:.*]] = mtp.strided_slice %[[SUM]] dim 0 start 0
// CHECK-NEXT: %[[ROWS:.*]] = mtp.reshape %[[PART]] : (tensor<6xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %[[OTHER:.*]] = mtp.strided_slice %[[SUM]] dim 0 start 6
// CHECK-NEXT: %[[TABLE:.*]] = mtp.gather_gradient %arg2, %[[ROWS]] dim 0
// CHECK-NEXT: return %[[TABLE]], %[[OTHER]]
func.func @rows_of_a_table(%rows: tensor<2x3xf32>, %b: tensor<5xf32>, %ids: tensor<2xi64>) -> (tensor<8x3xf32>, tensor<5xf32>) {
  %0 = spmd.all_reduce %rows ["dp"] sum for "reduce_from" in "backward" : tensor<2x3xf32> to tensor<2x3xf32>
  %1 = mtp.gather_gradient %ids, %0 dim 0 : (tensor<2xi64>, tensor<2x3xf32>) -> tensor<8x3xf32>
  %2 = spmd.all_reduce %b ["dp"] sum for "reduce_from" in "backward" : tensor<5xf32> to tensor<5xf32>
  return %1, %2 : tensor<8x3xf32>, tensor<5xf32>
}
