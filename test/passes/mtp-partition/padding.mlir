// RUN: mtp-opt %s -split-input-file --mtp-partition --spmd-verify | FileCheck %s

// k = 5 on 2 ranks: the activation is masked, the weight was loaded with zeros.
mtp.mesh @mesh <tp = 2>
mtp.initializer @w : tensor<5x4xf32> {file = "m.onnx", offset = 0 : i64, bytes = 80 : i64, parameter}
// CHECK-LABEL: func.func @contraction_with_a_weight(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
func.func @contraction_with_a_weight(%x: tensor<2x5xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<2x4xf32, #mtp.layout<@mesh>> {
  // CHECK-NEXT: %[[W:.*]] = spmd.parameter @w {{.*}} : tensor<3x4xf32>
  %w = mtp.parameter @w : tensor<5x4xf32, #mtp.layout<@mesh, tp = S(0)>>
  // CHECK-NEXT: %[[N:.*]] = spmd.rank_value valid <5 by ["tp"]>
  // CHECK-NEXT: %[[M:.*]] = spmd.mask_tail %[[X]], %[[N]] dim 1 neutral 0.000000e+00 : f32 in tensor<2x3xf32>
  // CHECK-NEXT: mtp.matmul %[[M]], %[[W]]
  %0 = mtp.matmul %x, %w : (tensor<2x5xf32, #mtp.layout<@mesh, tp = S(1)>>, tensor<5x4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<2x4xf32, #mtp.layout<@mesh, tp = P(sum)>>
  %1 = mtp.reduce_from %0 ["tp"] : (tensor<2x4xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<2x4xf32, #mtp.layout<@mesh>>
  return %1 : tensor<2x4xf32, #mtp.layout<@mesh>>
}

// -----

// Both activations, because 0 times infinity is not 0; each of them once.
mtp.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @contraction_of_two_activations(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32> {{.*}}, %[[Y:.*]]: tensor<3x4xf32> {{.*}}) ->
func.func @contraction_of_two_activations(%x: tensor<2x5xf32, #mtp.layout<@mesh, tp = S(1)>>, %y: tensor<5x4xf32, #mtp.layout<@mesh, tp = S(0)>>)
    -> (tensor<2x4xf32, #mtp.layout<@mesh, tp = R>>, tensor<2xf32, #mtp.layout<@mesh, tp = R>>) {
  // CHECK-NEXT: %[[N:.*]] = spmd.rank_value valid <5 by ["tp"]>
  // CHECK-NEXT: %[[MX:.*]] = spmd.mask_tail %[[X]], %[[N]] dim 1
  // CHECK-NEXT: %[[MY:.*]] = spmd.mask_tail %[[Y]], %[[N]] dim 0
  // CHECK-NEXT: mtp.matmul %[[MX]], %[[MY]]
  %0 = mtp.matmul %x, %y : (tensor<2x5xf32, #mtp.layout<@mesh, tp = S(1)>>, tensor<5x4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<2x4xf32, #mtp.layout<@mesh, tp = P(sum)>>
  // CHECK-NEXT: mtp.reduce_sum %[[MX]]
  %1 = mtp.reduce_sum %x dims [1] : (tensor<2x5xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<2xf32, #mtp.layout<@mesh, tp = P(sum)>>
  %2 = mtp.all_reduce %0 ["tp"] : (tensor<2x4xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<2x4xf32, #mtp.layout<@mesh, tp = R>>
  %3 = mtp.all_reduce %1 ["tp"] : (tensor<2xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<2xf32, #mtp.layout<@mesh, tp = R>>
  return %2, %3 : tensor<2x4xf32, #mtp.layout<@mesh, tp = R>>, tensor<2xf32, #mtp.layout<@mesh, tp = R>>
}

// -----

// Padding reaches only padding where nothing is contracted.
mtp.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @no_mask_without_contraction(
// CHECK-NEXT: mtp.exp
// CHECK-NEXT: mtp.reduce_sum %{{.*}} dims [0]
// CHECK-NEXT: return
func.func @no_mask_without_contraction(%x: tensor<2x5xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<5xf32, #mtp.layout<@mesh, tp = S(0)>> {
  %0 = mtp.exp %x : (tensor<2x5xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<2x5xf32, #mtp.layout<@mesh, tp = S(1)>>
  %1 = mtp.reduce_sum %0 dims [0] : (tensor<2x5xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<5xf32, #mtp.layout<@mesh, tp = S(0)>>
  return %1 : tensor<5xf32, #mtp.layout<@mesh, tp = S(0)>>
}

// -----

// Neutral elements of maximum and minimum.
mtp.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @neutral_elements(
func.func @neutral_elements(%x: tensor<5xi32, #mtp.layout<@mesh, tp = S(0)>>, %b: tensor<5xi1, #mtp.layout<@mesh, tp = S(0)>>)
    -> (tensor<i32, #mtp.layout<@mesh>>, tensor<i32, #mtp.layout<@mesh>>, tensor<i1, #mtp.layout<@mesh>>, tensor<i1, #mtp.layout<@mesh>>) {
  // CHECK: spmd.mask_tail %{{.*}} dim 0 neutral -2147483648 : i32 in tensor<3xi32>
  %0 = mtp.reduce_max %x dims [0] : (tensor<5xi32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<i32, #mtp.layout<@mesh, tp = P(max)>>
  // CHECK: spmd.mask_tail %{{.*}} dim 0 neutral 2147483647 : i32 in tensor<3xi32>
  %1 = mtp.reduce_min %x dims [0] : (tensor<5xi32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<i32, #mtp.layout<@mesh, tp = P(min)>>
  // CHECK: spmd.mask_tail %{{.*}} dim 0 neutral false in tensor<3xi1>
  %2 = mtp.reduce_max %b dims [0] : (tensor<5xi1, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<i1, #mtp.layout<@mesh, tp = P(max)>>
  // CHECK: spmd.mask_tail %{{.*}} dim 0 neutral true in tensor<3xi1>
  %3 = mtp.reduce_min %b dims [0] : (tensor<5xi1, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<i1, #mtp.layout<@mesh, tp = P(min)>>
  %4 = mtp.reduce_max_from %0 ["tp"] : (tensor<i32, #mtp.layout<@mesh, tp = P(max)>>) -> tensor<i32, #mtp.layout<@mesh>>
  %5 = mtp.reduce_min_from %1 ["tp"] : (tensor<i32, #mtp.layout<@mesh, tp = P(min)>>) -> tensor<i32, #mtp.layout<@mesh>>
  %6 = mtp.reduce_max_from %2 ["tp"] : (tensor<i1, #mtp.layout<@mesh, tp = P(max)>>) -> tensor<i1, #mtp.layout<@mesh>>
  %7 = mtp.reduce_min_from %3 ["tp"] : (tensor<i1, #mtp.layout<@mesh, tp = P(min)>>) -> tensor<i1, #mtp.layout<@mesh>>
  return %4, %5, %6, %7 : tensor<i32, #mtp.layout<@mesh>>, tensor<i32, #mtp.layout<@mesh>>, tensor<i1, #mtp.layout<@mesh>>, tensor<i1, #mtp.layout<@mesh>>
}

// -----

// Heads of 4: blocks and what is valid of them count in units.
mtp.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @padding_in_units(
// CHECK-SAME: %[[X:.*]]: tensor<2x8xf32>
func.func @padding_in_units(%x: tensor<2x12xf32, #mtp.layout<@mesh, tp = S(1, unit 4)>>) -> tensor<2xf32, #mtp.layout<@mesh>> {
  // CHECK-NEXT: %[[N:.*]] = spmd.rank_value valid <12 by ["tp"] unit 4>
  // CHECK-NEXT: spmd.mask_tail %[[X]], %[[N]] dim 1
  %0 = mtp.reduce_sum %x dims [1] : (tensor<2x12xf32, #mtp.layout<@mesh, tp = S(1, unit 4)>>) -> tensor<2xf32, #mtp.layout<@mesh, tp = P(sum)>>
  %1 = mtp.reduce_from %0 ["tp"] : (tensor<2xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<2xf32, #mtp.layout<@mesh>>
  return %1 : tensor<2xf32, #mtp.layout<@mesh>>
}

// -----

// Two axes nest: 10 on tp = 3 is 4 4 2, on dp = 2 inside that 2 2 2 2 2 0.
mtp.mesh @mesh <dp = 2, tp = 3>
// CHECK-LABEL: func.func @nested_padding(
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>
func.func @nested_padding(%x: tensor<10xf32, #mtp.layout<@mesh, tp = S(0), dp = S(0)>>) -> tensor<f32, #mtp.layout<@mesh>> {
  // CHECK-NEXT: %[[N:.*]] = spmd.rank_value valid <10 by ["tp", "dp"]>
  // CHECK-NEXT: spmd.mask_tail %[[X]], %[[N]] dim 0
  %0 = mtp.reduce_sum %x dims [0] : (tensor<10xf32, #mtp.layout<@mesh, tp = S(0), dp = S(0)>>) -> tensor<f32, #mtp.layout<@mesh, dp = P(sum), tp = P(sum)>>
  %1 = mtp.reduce_from %0 ["dp", "tp"] : (tensor<f32, #mtp.layout<@mesh, dp = P(sum), tp = P(sum)>>) -> tensor<f32, #mtp.layout<@mesh>>
  return %1 : tensor<f32, #mtp.layout<@mesh>>
}

// -----

// Rows of the vocabulary that a rank has not are zero; padding of the token ids
// is a token that exists.
mtp.mesh @mesh <dp = 2, tp = 2>
mtp.initializer @wte : tensor<101x8xf32> {file = "m.onnx", offset = 0 : i64, bytes = 3232 : i64, parameter}
// CHECK-LABEL: func.func @vocabulary_parallel_embedding(
// CHECK-SAME: %[[IDS:.*]]: tensor<2x6xi64>
func.func @vocabulary_parallel_embedding(%ids: tensor<3x6xi64, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<3x6x8xf32, #mtp.layout<@mesh, dp = S(0)>> {
  // CHECK-NEXT: %[[T:.*]] = spmd.parameter @wte {{.*}} : tensor<51x8xf32>
  %p = mtp.parameter @wte : tensor<101x8xf32, #mtp.layout<@mesh, tp = S(0)>>
  %t = mtp.copy_to %p ["dp"] : (tensor<101x8xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<101x8xf32, #mtp.layout<@mesh, tp = S(0), dp = R>>
  // CHECK-NEXT: %[[N:.*]] = spmd.rank_value valid <3 by ["dp"]>
  // CHECK-NEXT: %[[M:.*]] = spmd.mask_tail %[[IDS]], %[[N]] dim 0 neutral 0 : i64 in tensor<2x6xi64>
  // CHECK: spmd.rank_value offset <101 by ["tp"]>
  // CHECK: spmd.rank_value valid <101 by ["tp"]>
  // CHECK: mtp.gather %[[T]][%{{.*}}] dim 0 : (tensor<51x8xf32>, tensor<2x6xi64>) -> tensor<2x6x8xf32>
  // CHECK: mtp.select
  // CHECK-NEXT: spmd.all_reduce
  %i = mtp.copy_to %ids ["tp"] : (tensor<3x6xi64, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<3x6xi64, #mtp.layout<@mesh, dp = S(0), tp = R>>
  %0 = mtp.gather %t[%i] dim 0 : (tensor<101x8xf32, #mtp.layout<@mesh, tp = S(0), dp = R>>, tensor<3x6xi64, #mtp.layout<@mesh, dp = S(0), tp = R>>) -> tensor<3x6x8xf32, #mtp.layout<@mesh, dp = S(0), tp = P(sum)>>
  %1 = mtp.reduce_from %0 ["tp"] : (tensor<3x6x8xf32, #mtp.layout<@mesh, dp = S(0), tp = P(sum)>>) -> tensor<3x6x8xf32, #mtp.layout<@mesh, dp = S(0)>>
  return %1 : tensor<3x6x8xf32, #mtp.layout<@mesh, dp = S(0)>>
}
