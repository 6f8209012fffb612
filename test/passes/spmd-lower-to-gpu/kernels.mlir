// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mtp-opt %s --spmd-lower-to-gpu=to=gpu | FileCheck %s
// RUN: mtp-opt %s --mtp-to-nvvm="arch=sm_75" | FileCheck %s --check-prefix=NVVM
// RUN: not mtp-opt %s --spmd-lower-to-gpu=to=ptx 2>&1 | FileCheck %s --check-prefix=TO
// RUN: not mtp-opt %s --spmd-lower-to-gpu=arch=sm_60 2>&1 | FileCheck %s --check-prefix=ARCH
// TO: error: option 'to' is 'ptx', expected gpu or nvvm
// ARCH: error: option 'arch' is 'sm_60', expected one of sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, sm_120

mtp.mesh @mesh <tp = 2>

// Four neighbours a thread: 64 positions are 16 threads of one block. Equal ops
// are one kernel.
// CHECK-LABEL: gpu.func @neg_0(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %[[X:.*]]: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias}, %[[Y:.*]]: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias}) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK: gpu.block_id  x
// CHECK: gpu.thread_id  x
// CHECK: scf.for
// CHECK:   %[[FIRST:.*]] = arith.muli %{{.*}}, %c4_i64
// CHECK:   scf.for %[[I:.*]] = %c0_i64 to %c4_i64
// CHECK:     %[[AT:.*]] = arith.addi %[[FIRST]], %[[I]]
// CHECK:     llvm.getelementptr %[[X]][%[[AT]]]
// CHECK:     arith.negf
// CHECK:     llvm.getelementptr %[[Y]][%[[AT]]]
// CHECK:     llvm.store

// A block a row: its threads share the sweeps, combine by shuffles and through
// shared memory, and keep the exponentials there.
// CHECK-LABEL: gpu.func @softmax_1(
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK: %[[ROW:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK: scf.for %{{.*}} = %{{.*}} to %c1024_i64 step %c256_i64 iter_args
// CHECK:   arith.maximumf
// CHECK: gpu.shuffle  xor %{{.*}}, %c16_i32
// CHECK: gpu.shuffle  xor %{{.*}}, %c1_i32
// CHECK: scf.if
// CHECK:   llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK: scf.for %{{.*}} to %c1024_i64 step %c256_i64 iter_args
// CHECK:   math.exp
// CHECK:   llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: scf.for %{{.*}} to %c1024_i64 step %c256_i64
// CHECK:   llvm.store %{{.*}} : f32, !llvm.ptr

// A sum down columns: 8 threads share a column; the first one stores.
// CHECK-LABEL: gpu.func @reduce_sum_2(
// CHECK-SAME: known_block_size = array<i32: 32, 8, 1>
// CHECK: gpu.thread_id  y
// CHECK: scf.for %{{.*}} to %c64_i64 step %c8_i64 iter_args
// CHECK:   arith.addf %{{.*}} fastmath<reassoc> : f32
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK:   llvm.store

// Sums over ranks of one device.
// CHECK-LABEL: gpu.func @mtp_reduce_sum_f32(
// CHECK-SAME: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i64) kernel

// CHECK-LABEL: func.func @main(
// CHECK: gpu.launch_func  @kernels::@neg_0 blocks in (%{{.*}}) threads in
// CHECK: gpu.launch_func  @kernels::@softmax_1
// CHECK: gpu.launch_func  @kernels::@neg_0
// CHECK: gpu.launch_func  @kernels::@reduce_sum_2
// CHECK: call @start_reduce_from_0
// CHECK: call @done_reduce_from_0

// NVVM-NOT: scf.
// NVVM-NOT: math.
// NVVM: llvm.func @neg_1({{.*}} nvvm.kernel
// NVVM: nvvm.read.ptx.sreg.ctaid.x
// NVVM: llvm.func @softmax_2({{.*}} nvvm.kernel
// NVVM: nvvm.shfl.sync  bfly
// NVVM: nvvm.barrier

// The collective runs beside what doesn't need it.
// NVVM-LABEL: func.func @main(
// NVVM: gpu.launch_func  @kernels::@reduce_sum_0
// NVVM: call @start_reduce_from_0
// NVVM: gpu.launch_func  @kernels::@neg_1
// NVVM: gpu.launch_func  @kernels::@softmax_2
// NVVM: gpu.launch_func  @kernels::@neg_1
// NVVM: call @done_reduce_from_0
func.func @main(%x: tensor<4x16xf32> {mtp.global_type = tensor<4x16xf32>, mtp.layout = #mtp.layout<@mesh>},
                %y: tensor<4x16xf32> {mtp.global_type = tensor<4x16xf32>, mtp.layout = #mtp.layout<@mesh>},
                %s: tensor<8x1024xf32> {mtp.global_type = tensor<8x1024xf32>, mtp.layout = #mtp.layout<@mesh>},
                %c: tensor<64x48xf32> {mtp.global_type = tensor<64x48xf32>, mtp.layout = #mtp.layout<@mesh>})
    -> (tensor<4x16xf32> {mtp.global_type = tensor<4x16xf32>, mtp.layout = #mtp.layout<@mesh>},
        tensor<8x1024xf32> {mtp.global_type = tensor<8x1024xf32>, mtp.layout = #mtp.layout<@mesh>},
        tensor<4x16xf32> {mtp.global_type = tensor<4x16xf32>, mtp.layout = #mtp.layout<@mesh>},
        tensor<48xf32> {mtp.global_type = tensor<48xf32>, mtp.layout = #mtp.layout<@mesh>}) {
  %0 = mtp.neg %x : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %1 = mtp.softmax %s dim 1 : (tensor<8x1024xf32>) -> tensor<8x1024xf32>
  %2 = mtp.neg %y : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %3 = mtp.reduce_sum %c dims [0] : (tensor<64x48xf32>) -> tensor<48xf32>
  %4 = spmd.all_reduce %3 ["tp"] sum for "reduce_from" : tensor<48xf32> to tensor<48xf32>
  return %0, %1, %2, %4 : tensor<4x16xf32>, tensor<8x1024xf32>, tensor<4x16xf32>, tensor<48xf32>
}
