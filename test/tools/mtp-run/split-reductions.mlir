// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions to few elements take two kernels on a GPU, whose numbers are those
// of the CPU.
// RUN: rm -rf %t && mkdir -p %t/dump
// RUN: mtp-run %s --device cuda-emulated --random-inputs --outputs %t/gpu.npz --no-cache --quiet --dump-dir %t/dump
// RUN: mtp-run %s --random-inputs --outputs %t/cpu.npz --no-cache --quiet
// RUN: %python -c "import numpy as np; a, b = (dict(np.load(f'%t/{x}.npz')) for x in ('gpu', 'cpu')); assert len(a) == 3 and all(np.allclose(a[k], b[k], rtol=2e-6, atol=1e-4) for k in b), (a, b)"
// RUN: FileCheck %s --input-file %t/dump/device.mlir

// A part of the sum of squares reads the operand: 16 blocks of 512 threads.
// CHECK-DAG: gpu.func @reduce_sum_{{[0-9]+}}({{.*}}known_block_size = array<i32: 512, 1, 1>
// CHECK-DAG: gpu.func @reduce_max_{{[0-9]+}}({{.*}}known_block_size = array<i32: 512, 1, 1>
// CHECK-DAG: gpu.func @reduce_max_{{[0-9]+}}({{.*}}known_block_size = array<i32: 32, 1, 1>
// CHECK-DAG: gpu.func @reduce_sum_{{[0-9]+}}({{.*}}known_block_size = array<i32: 32, 8, 1>

func.func @main(%x: tensor<512x128xf32>) -> (tensor<f32>, tensor<128xf32>, tensor<f32>) {
  %0 = mtp.mul %x, %x : (tensor<512x128xf32>, tensor<512x128xf32>) -> tensor<512x128xf32>
  %1 = mtp.reduce_sum %0 dims [0, 1] : (tensor<512x128xf32>) -> tensor<f32>
  %2 = mtp.sqrt %1 : (tensor<f32>) -> tensor<f32>
  %3 = mtp.reduce_sum %x dims [0] : (tensor<512x128xf32>) -> tensor<128xf32>
  %4 = mtp.reduce_max %x dims [0, 1] : (tensor<512x128xf32>) -> tensor<f32>
  return %2, %3, %4 : tensor<f32>, tensor<128xf32>, tensor<f32>
}
