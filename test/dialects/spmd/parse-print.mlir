// RUN: mtp-opt %s | mtp-opt | FileCheck %s
// RUN: mtp-opt %s --emit-bytecode | mtp-opt | FileCheck %s

mtp.mesh @mesh <dp = 2, tp = 2>
mtp.initializer @w : tensor<8x16xf32> {file = "m.onnx", offset = 0 : i64, bytes = 512 : i64, parameter}

// CHECK-LABEL: func.func @rank_data
func.func @rank_data() {
  // CHECK-NEXT: spmd.parameter @w recipe [#mtp.step<"transpose", [1, 0]>] layout #mtp.layout<@mesh, tp = S(1)> global tensor<16x8xf32> : tensor<16x4xf32>
  %0 = spmd.parameter @w recipe [#mtp.step<"transpose", [1, 0]>] layout #mtp.layout<@mesh, tp = S(1)> global tensor<16x8xf32> : tensor<16x4xf32>
  // CHECK-NEXT: spmd.rank_value offset <101 by ["tp"]>
  %1 = spmd.rank_value offset <101 by ["tp"]>
  // CHECK-NEXT: spmd.rank_value valid <1920 by ["dp", "tp"] unit 64>
  %2 = spmd.rank_value valid <1920 by ["dp", "tp"] unit 64>
  // CHECK-NEXT: spmd.rank_value coordinate <0 by ["tp"]>
  %3 = spmd.rank_value coordinate <0 by ["tp"]>
  return
}

// CHECK-LABEL: func.func @blocks
func.func @blocks(%x: tensor<8x6xf32>, %i: tensor<i64>) {
  // CHECK-NEXT: spmd.mask_tail %{{.*}}, %{{.*}} dim 1 neutral 0xFF800000 : f32 in tensor<8x6xf32>
  %0 = spmd.mask_tail %x, %i dim 1 neutral 0xFF800000 : f32 in tensor<8x6xf32>
  // CHECK-NEXT: spmd.take_block %{{.*}}, %{{.*}} dim 1 : tensor<8x6xf32> to tensor<8x3xf32>
  %1 = spmd.take_block %0, %i dim 1 : tensor<8x6xf32> to tensor<8x3xf32>
  // CHECK-NEXT: spmd.place_block %{{.*}}, %{{.*}}, %{{.*}} dim 1 : tensor<8x3xf32> to tensor<8x6xf32>
  %2 = spmd.place_block %1, %i, %i dim 1 : tensor<8x3xf32> to tensor<8x6xf32>
  // CHECK-NEXT: spmd.keep_on_root %{{.*}}, %{{.*}} : tensor<8x6xf32>
  %3 = spmd.keep_on_root %2, %i : tensor<8x6xf32>
  return
}

// CHECK-LABEL: func.func @collectives
func.func @collectives(%x: tensor<4x8xf32>) {
  // CHECK-NEXT: spmd.all_reduce %{{.*}} ["tp"] sum for "reduce_from" {node = "/h.0/Add"} : tensor<4x8xf32> to tensor<4x8xf32>
  %0 = spmd.all_reduce %x ["tp"] sum for "reduce_from" {node = "/h.0/Add"} : tensor<4x8xf32> to tensor<4x8xf32>
  // CHECK-NEXT: spmd.all_gather %{{.*}} ["tp"] dim 0 <7 by ["tp"]> for "all_gather" in "backward" : tensor<4x8xf32> to tensor<7x8xf32>
  %1 = spmd.all_gather %0 ["tp"] dim 0 <7 by ["tp"]> for "all_gather" in "backward" : tensor<4x8xf32> to tensor<7x8xf32>
  // CHECK-NEXT: spmd.reduce_scatter %{{.*}} ["tp"] dim 0 <14 by ["dp", "tp"]> for "reduce_scatter" : tensor<7x8xf32> to tensor<4x8xf32>
  %2 = spmd.reduce_scatter %1 ["tp"] dim 0 <14 by ["dp", "tp"]> for "reduce_scatter" : tensor<7x8xf32> to tensor<4x8xf32>
  // CHECK-NEXT: spmd.all_to_all %{{.*}} ["tp"] dim 0 <8 by ["tp"]> split 1 <8 by ["tp"]> for "all_to_all" : tensor<4x8xf32> to tensor<8x4xf32>
  %3 = spmd.all_to_all %2 ["tp"] dim 0 <8 by ["tp"]> split 1 <8 by ["tp"]> for "all_to_all" : tensor<4x8xf32> to tensor<8x4xf32>
  // CHECK-NEXT: spmd.permute %{{.*}} ["dp", "tp"] from [0, 2, 1, 3] for "permute" : tensor<8x4xf32> to tensor<8x4xf32>
  %4 = spmd.permute %3 ["dp", "tp"] from [0, 2, 1, 3] for "permute" : tensor<8x4xf32> to tensor<8x4xf32>
  return
}

// CHECK-LABEL: func.func @fused_region
func.func @fused_region(%x: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: %[[Y:.*]] = spmd.fused(%{{.*}}, %{{.*}}) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<4xf32>):
  %y = spmd.fused(%x, %b) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
  ^bb0(%0: tensor<8x4xf32>, %1: tensor<4xf32>):
    // CHECK-NEXT: %[[S:.*]] = mtp.add %[[A]], %[[B]]
    %2 = mtp.add %0, %1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    // CHECK-NEXT: spmd.yield %[[S]] : tensor<8x4xf32>
    spmd.yield %2 : tensor<8x4xf32>
  }
  // CHECK: return %[[Y]]
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @product_with_epilogue
func.func @product_with_epilogue(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>) {
  // CHECK-NEXT: spmd.matmul %{{.*}}, %{{.*}} bias %{{.*}} activation gelu_erf {transpose_rhs} : (tensor<8x4xf32>, tensor<6x4xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  %0 = spmd.matmul %x, %w bias %b activation gelu_erf {transpose_rhs} : (tensor<8x4xf32>, tensor<6x4xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  return
}
