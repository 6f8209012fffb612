// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuPasses.td - passes for programs that run on GPUs ----------------===//
//
// Part of Passes.td, in the order in which they run.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_PASSES_GPUPASSES
#define MTP_PASSES_GPUPASSES

include "mlir/Pass/PassBase.td"

def SpmdSplitEpilogues : Pass<"spmd-split-epilogues", "::mlir::ModuleOp"> {
  let summary = "Take activations that cuBLASLt lacks out of matrix products.";
  let description = [{
    Activations become ops of their own again: relu there turns NaN into 0, silu and
    the exact gelu are missing, and whether the gelu by tanh pays is found out where
    it runs (`spmd-gather-epilogues`). The bias stays with the product. For programs
    that run on GPUs, before `spmd-fuse`.

    ```mlir
    %0 = spmd.matmul %x, %w bias %b activation silu : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
    ```
    becomes
    ```mlir
    %0 = spmd.matmul %x, %w bias %b activation none : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
    %1 = mtp.silu %0 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    ```
  }];
  let dependentDialects = ["::mtp::MtpDialect", "::mtp::spmd::SpmdDialect"];
}

def SpmdSplitReductions : Pass<"spmd-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Let many blocks of a GPU share a reduction to few elements.";
  let description = [{
    A kernel of a GPU reduces a row in one block, and 32 columns. Where that makes few
    blocks of much work (the norm of all gradients, the gradient of a bias over many
    tokens) the first reduced dimension is cut: one kernel reduces the parts, a second
    one their results. Parts depend on shapes only, so sums keep their order from run
    to run. Sums of f16 and bf16 have parts of f32.

    ```mlir
    %y = mtp.reduce_sum %x dims [0, 1] : (tensor<4096x1024xf32>) -> tensor<f32>
    ```
    becomes
    ```mlir
    %0 = mtp.reshape %x : (tensor<4096x1024xf32>) -> tensor<512x8x1024xf32>
    %1 = mtp.reduce_sum %0 dims [1, 2] : (tensor<512x8x1024xf32>) -> tensor<512xf32>
    %y = mtp.reduce_sum %1 dims [0] : (tensor<512xf32>) -> tensor<f32>
    ```
  }];
  let dependentDialects = ["::mtp::MtpDialect"];
}

def SpmdChunkProducts : Pass<"spmd-chunk-products", "::mlir::ModuleOp"> {
  let summary = "Give row-parallel products and their sums in parts.";
  let description = [{
    For programs that run on GPUs. A product of the forward pass that is summed over
    ranks becomes up to four products of some of its rows, each summed while the
    next one is multiplied, where that saves a twentieth of their time on a host of 8
    devices of `capability` (compiler/cost/Gpu.h). Rows must divide, and parts begin
    at multiples of 256 bytes. All parts are one collective in what is predicted and
    counted: the first has the prediction.

    ```mlir
    %0 = mtp.matmul %x, %w : (tensor<2x128x64xf32>, tensor<64x64xf32>) -> tensor<2x128x64xf32>
    %1 = spmd.all_reduce %0 ["tp"] sum for "reduce_from" : tensor<2x128x64xf32> to tensor<2x128x64xf32>
    ```
    becomes (`parts=2`)
    ```mlir
    %0 = mtp.strided_slice %x dim 0 start 0 step 1 : (tensor<2x128x64xf32>) -> tensor<1x128x64xf32>
    %1 = mtp.matmul %0, %w : (tensor<1x128x64xf32>, tensor<64x64xf32>) -> tensor<1x128x64xf32>
    %2 = spmd.all_reduce %1 ["tp"] sum for "reduce_from" {spmd.part = 0} : tensor<1x128x64xf32> to tensor<1x128x64xf32>
    %3 = mtp.strided_slice %x dim 0 start 1 step 1 : (tensor<2x128x64xf32>) -> tensor<1x128x64xf32>
    %4 = mtp.matmul %3, %w : (tensor<1x128x64xf32>, tensor<64x64xf32>) -> tensor<1x128x64xf32>
    %5 = spmd.all_reduce %4 ["tp"] sum for "reduce_from" {spmd.part = 1} : tensor<1x128x64xf32> to tensor<1x128x64xf32>
    %6 = mtp.concat dim 0 %2, %5 : (tensor<1x128x64xf32>, tensor<1x128x64xf32>) -> tensor<2x128x64xf32>
    ```
  }];
  let options = [Option<"capability", "capability", "int", "90", "Of the devices: 90 for 9.0">,
                 Option<"parts", "parts", "int64_t", "0", "Parts of each product; 0: where they pay">];
  let dependentDialects = ["::mtp::MtpDialect", "::mtp::spmd::SpmdDialect"];
}

def SpmdOverlapCollectives : Pass<"spmd-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Let collectives run beside what doesn't wait for them.";
  let description = [{
    For programs that run on GPUs. Collectives get `spmd.overlaps`: they begin where
    they stand and are done before the first op that needs their result
    (compiler/codegen/Overlap.h). What stood before a collective without being
    needed for it goes behind it.

    ```mlir
    %0 = mtp.matmul %g, %w {transpose_rhs} : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
    %1 = mtp.matmul %x, %g {transpose_lhs} : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    %2 = spmd.all_reduce %0 ["tp"] sum for "reduce_from" in "backward" : tensor<8x6xf32> to tensor<8x6xf32>
    ```
    becomes
    ```mlir
    %0 = mtp.matmul %g, %w {transpose_rhs} : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
    %1 = spmd.all_reduce %0 ["tp"] sum for "reduce_from" in "backward" {spmd.overlaps} : tensor<8x6xf32> to tensor<8x6xf32>
    %2 = mtp.matmul %x, %g {transpose_lhs} : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    ```
  }];
}

def SpmdGatherEpilogues : Pass<"spmd-gather-epilogues", "::mlir::ModuleOp"> {
  let summary = "Put kernels that cuBLASLt could take along behind their product.";
  let description = [{
    For programs that run on GPUs, after `spmd-fuse` and
    `spmd-overlap-collectives`. A kernel that is nothing but the gelu by tanh of a
    product, its gradient, or the sum of rows that is a bias gradient goes right
    behind the product (compiler/codegen/Epilogues.h), which gets the number of them.
    The artifact then has both forms, and the faster one runs.

    ```mlir
    %0 = spmd.matmul %x, %w bias %b activation none : (tensor<8x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
    %1 = mtp.neg %z : (tensor<4xf32>) -> tensor<4xf32>
    %2 = spmd.fused(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%a: tensor<8x8xf32>):
      %3 = mtp.gelu %a {tanh} : (tensor<8x8xf32>) -> tensor<8x8xf32>
      spmd.yield %3 : tensor<8x8xf32>
    }
    ```
    becomes
    ```mlir
    %0 = spmd.matmul %x, %w bias %b activation none {spmd.epilogue = 1} : (tensor<8x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
    %1 = spmd.fused(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
      ...
    }
    %2 = mtp.neg %z : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
}

def SpmdLowerToGpu : Pass<"spmd-lower-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Replace the program of a rank by its device code and launches.";
  let description = [{
    The kernels become a gpu.module: `to=gpu` in gpu, scf, arith and math, `to=nvvm`
    in the nvvm and llvm dialects, which is what PTX is printed from. Each function
    becomes the list of its launches, calls of the library and of communicators on
    addresses of device memory; the runtime executes the same list as data, this one
    is for reading.

    ```mlir
    %1 = mtp.neg %0 : (tensor<8xf32>) -> tensor<8xf32>
    ```
    becomes (`to=gpu`)
    ```mlir
    gpu.module @kernels {
      gpu.func @neg_0(%rank: !llvm.ptr, %a: !llvm.ptr {llvm.noalias}, %y: !llvm.ptr {llvm.noalias}) kernel {
        ...
    func.func @main(%rank: !llvm.ptr, %values: !llvm.ptr, %arena: !llvm.ptr, ...) {
      gpu.launch_func @kernels::@neg_0 blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1) args(%rank : !llvm.ptr, ...)
    ```
  }];
  let options = [Option<"arch", "arch", "std::string", [{"sm_90"}], "Least compute capability">,
                 Option<"precision", "precision", "std::string", [{"f32"}], "As --precision; tf32 rounds products">,
                 Option<"to", "to", "std::string", [{"nvvm"}], "gpu or nvvm">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::func::FuncDialect", "::mlir::vector::VectorDialect",
                           "::mtp::spmd::SpmdDialect"];
}

#endif // MTP_PASSES_GPUPASSES
