// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mtp-opt %s --spmd-fuse | FileCheck %s

// The look-up in a sharded table: all arithmetic on the index is done once a row.
// CHECK-LABEL: func.func @vocabulary_parallel_embedding_is_one_kernel(
// CHECK-SAME: %[[A0:[^ :]+]]: tensor<51x16xf32>, %[[A1:[^ :]+]]: tensor<2x5xi64>, %[[A2:[^ :]+]]: tensor<i64>, %[[A3:[^ :]+]]: tensor<i64>
// CHECK-NEXT: %[[V0:[^ :]+]] = spmd.fused(%[[A1]], %[[A2]], %[[A3]], %[[A0]]) : (tensor<2x5xi64>, tensor<i64>, tensor<i64>, tensor<51x16xf32>) -> tensor<2x5x16xf32> {
// CHECK-NEXT: ^bb0(%[[A4:[^ :]+]]: tensor<2x5xi64>, %[[A5:[^ :]+]]: tensor<i64>, %[[A6:[^ :]+]]: tensor<i64>, %[[A7:[^ :]+]]: tensor<51x16xf32>):
// CHECK-NEXT: %[[V1:[^ :]+]] = mtp.constant dense<0> : tensor<i64>
// CHECK-NEXT: %[[V2:[^ :]+]] = mtp.constant dense<101> : tensor<i64>
// CHECK-NEXT: %[[V3:[^ :]+]] = mtp.constant dense<51> : tensor<i64>
// CHECK-NEXT: %[[V4:[^ :]+]] = mtp.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[V5:[^ :]+]] = mtp.compare  lt %[[A4]], %[[V1]] : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi1>
// CHECK-NEXT: %[[V6:[^ :]+]] = mtp.add %[[A4]], %[[V2]] : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi64>
// CHECK-NEXT: %[[V7:[^ :]+]] = mtp.select %[[V5]], %[[V6]], %[[A4]] : (tensor<2x5xi1>, tensor<2x5xi64>, tensor<2x5xi64>) -> tensor<2x5xi64>
// CHECK-NEXT: %[[V8:[^ :]+]] = mtp.compare  ge %[[V7]], %[[V1]] : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi1>
// CHECK-NEXT: %[[V9:[^ :]+]] = mtp.compare  lt %[[V7]], %[[V2]] : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi1>
// CHECK-NEXT: %[[V10:[^ :]+]] = mtp.and %[[V8]], %[[V9]] : (tensor<2x5xi1>, tensor<2x5xi1>) -> tensor<2x5xi1>
// CHECK-NEXT: %[[V11:[^ :]+]] = mtp.sub %[[V7]], %[[A5]] : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi64>
// CHECK-NEXT: %[[V12:[^ :]+]] = mtp.compare  ge %[[V11]], %[[V1]] : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi1>
// CHECK-NEXT: %[[V13:[^ :]+]] = mtp.compare  lt %[[V11]], %[[A6]] : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi1>
// CHECK-NEXT: %[[V14:[^ :]+]] = mtp.and %[[V12]], %[[V13]] : (tensor<2x5xi1>, tensor<2x5xi1>) -> tensor<2x5xi1>
// CHECK-NEXT: %[[V15:[^ :]+]] = mtp.select %[[V14]], %[[V11]], %[[V1]] : (tensor<2x5xi1>, tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi64>
// CHECK-NEXT: %[[V16:[^ :]+]] = mtp.select %[[V10]], %[[V15]], %[[V3]] : (tensor<2x5xi1>, tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi64>
// CHECK-NEXT: %[[V17:[^ :]+]] = mtp.gather %[[A7]][%[[V16]]] dim 0 : (tensor<51x16xf32>, tensor<2x5xi64>) -> tensor<2x5x16xf32>
// CHECK-NEXT: %[[V18:[^ :]+]] = mtp.reshape %[[V14]] : (tensor<2x5xi1>) -> tensor<2x5x1xi1>
// CHECK-NEXT: %[[V19:[^ :]+]] = mtp.select %[[V18]], %[[V17]], %[[V4]] : (tensor<2x5x1xi1>, tensor<2x5x16xf32>, tensor<f32>) -> tensor<2x5x16xf32>
// CHECK-NEXT: spmd.yield %[[V19]] : tensor<2x5x16xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V0]] : tensor<2x5x16xf32>
func.func @vocabulary_parallel_embedding_is_one_kernel(%t: tensor<51x16xf32>, %i: tensor<2x5xi64>, %o: tensor<i64>, %v: tensor<i64>) -> tensor<2x5x16xf32> {
  %zero = mtp.constant dense<0> : tensor<i64>
  %rows = mtp.constant dense<101> : tensor<i64>
  %held = mtp.constant dense<51> : tensor<i64>
  %none = mtp.constant dense<0.0> : tensor<f32>
  %0 = mtp.compare lt %i, %zero : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi1>
  %1 = mtp.add %i, %rows : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi64>
  %2 = mtp.select %0, %1, %i : (tensor<2x5xi1>, tensor<2x5xi64>, tensor<2x5xi64>) -> tensor<2x5xi64>
  %3 = mtp.compare ge %2, %zero : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi1>
  %4 = mtp.compare lt %2, %rows : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi1>
  %5 = mtp.and %3, %4 : (tensor<2x5xi1>, tensor<2x5xi1>) -> tensor<2x5xi1>
  %6 = mtp.sub %2, %o : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi64>
  %7 = mtp.compare ge %6, %zero : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi1>
  %8 = mtp.compare lt %6, %v : (tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi1>
  %9 = mtp.and %7, %8 : (tensor<2x5xi1>, tensor<2x5xi1>) -> tensor<2x5xi1>
  %10 = mtp.select %9, %6, %zero : (tensor<2x5xi1>, tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi64>
  %11 = mtp.select %5, %10, %held : (tensor<2x5xi1>, tensor<2x5xi64>, tensor<i64>) -> tensor<2x5xi64>
  %12 = mtp.gather %t[%11] dim 0 : (tensor<51x16xf32>, tensor<2x5xi64>) -> tensor<2x5x16xf32>
  %13 = mtp.reshape %9 : (tensor<2x5xi1>) -> tensor<2x5x1xi1>
  %14 = mtp.select %13, %12, %none : (tensor<2x5x1xi1>, tensor<2x5x16xf32>, tensor<f32>) -> tensor<2x5x16xf32>
  return %14 : tensor<2x5x16xf32>
}
