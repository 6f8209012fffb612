// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Passes.td - all passes of mtp ---------------------------------------===//
#ifndef MTP_PASSES_TD
#define MTP_PASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/GpuPasses.td"

def MtpSimplify : Pass<"mtp-simplify", "::mlir::ModuleOp"> {
  let summary = "Bring the graph into the form that planning expects.";
  let description = [{
    Removes what hides how dimensions relate: chains of reshapes and transposes,
    explicit broadcasts, reshapes around products, weights that are transposed or
    sliced after they are loaded. Needed for a good plan, never for a right result.

    ```mlir
    %w = mtp.parameter @w : tensor<256x64xf32>
    %t = mtp.transpose %w [1, 0] : (tensor<256x64xf32>) -> tensor<64x256xf32>
    ```
    becomes
    ```mlir
    %t = mtp.parameter @w recipe [#mtp.step<"transpose", [1, 0]>] : tensor<64x256xf32>
    ```
  }];
}

def MtpRaise : Pass<"mtp-raise", "::mlir::ModuleOp"> {
  let summary = "Recognise composite ops in the decomposed forms of exporters.";
  let description = [{
    LayerNorm, RMSNorm, GELU (erf and tanh), SiLU, rotary embedding, and attention
    with its scale, masks, cap and repeated key heads. Only for speed: numbers
    are right without it.

    ```mlir
    %s = mtp.matmul %q, %k {transpose_rhs} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
    %c = mtp.mul %s, %scale : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
    %p = mtp.softmax %c dim 3 : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
    %y = mtp.matmul %p, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
    ```
    becomes
    ```mlir
    %y, %l = mtp.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    ```
  }];
}

def MtpConvertPrecision : Pass<"mtp-convert-precision", "::mlir::ModuleOp"> {
  let summary = "Compute in the precision that was asked for.";
  let description = [{
    f64: every float of the program becomes a double, conversions to float
    included; stored weights are widened when they are loaded. bf16 and f16:
    operands of matrix products are rounded to 16 bits and accumulated in f32; all
    else stays. f32: nothing changes.

    ```mlir
    %w = mtp.parameter @w : tensor<64x256xf32>
    %y = mtp.matmul %x, %w : (tensor<8x64xf32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    ```
    becomes, with `precision=bf16`,
    ```mlir
    %w = mtp.parameter @w : tensor<64x256xbf16>
    %r = mtp.convert %x : (tensor<8x64xf32>) -> tensor<8x64xbf16>
    %y = mtp.matmul %r, %w : (tensor<8x64xbf16>, tensor<64x256xbf16>) -> tensor<8x256xf32>
    ```
  }];
  let options = [
    Option<"precision", "precision", "std::string", "\"f32\"", "f32, f64, bf16 or f16">,
    Option<"masterWeights", "master-weights", "bool", "false",
           "All floats have 32 bits at least, and weights are rounded in the program: training updates them">];
}

def MtpPartition : Pass<"mtp-partition", "::mlir::ModuleOp"> {
  let summary = "Turn a program on whole tensors with layouts into the program of one rank.";
  let description = [{
    Shapes become those of a rank's block, layouts leave the types, conversions
    become collectives or local copies, weights become blocks of stored tensors.
    Where a dimension is cut with padding, ops that contract it read the neutral
    element of their reduction there. Ops without results in use are dropped.

    ```mlir
    mtp.mesh @mesh <tp = 2>
    func.func @main(%x: tensor<2x8xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<2x4xf32, #mtp.layout<@mesh>> {
      %w = mtp.parameter @w : tensor<8x4xf32, #mtp.layout<@mesh, tp = S(0)>>
      %0 = mtp.matmul %x, %w : (tensor<2x8xf32, #mtp.layout<@mesh, tp = S(1)>>, tensor<8x4xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<2x4xf32, #mtp.layout<@mesh, tp = P(sum)>>
      %1 = mtp.reduce_from %0 ["tp"] : (tensor<2x4xf32, #mtp.layout<@mesh, tp = P(sum)>>) -> tensor<2x4xf32, #mtp.layout<@mesh>>
      return %1 : tensor<2x4xf32, #mtp.layout<@mesh>>
    }
    ```
    becomes
    ```mlir
    func.func @main(%x: tensor<2x4xf32> {mtp.layout = ..., mtp.global_type = tensor<2x8xf32>}) -> (tensor<2x4xf32> {...}) {
      %w = spmd.parameter @w layout #mtp.layout<@mesh, tp = S(0)> global tensor<8x4xf32> : tensor<4x4xf32>
      %0 = mtp.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      %1 = spmd.all_reduce %0 ["tp"] sum for "reduce_from" : tensor<2x4xf32> to tensor<2x4xf32>
      return %1 : tensor<2x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mtp::spmd::SpmdDialect"];
}

def SpmdVerify : Pass<"spmd-verify", "::mlir::ModuleOp"> {
  let summary = "Refuse a program whose ranks could disagree.";
  let description = [{
    Changes nothing. Every rank must issue the same collectives in the same order:
    they stand in the one block of a function, never in a region that a rank could
    skip, and their local sizes follow from cuts that all ranks share. Types have
    no layout and a static shape; arguments and results are the blocks that their
    layouts give.

    ```mlir
    %1 = spmd.all_reduce %0 ["tp"] sum for "reduce_from" : tensor<2x4xf32> to tensor<2x4xf32>
    ```
    stays as it is;
    ```mlir
    %1 = mtp.neg %0 : (tensor<2x4xf32, #mtp.layout<@mesh>>) -> tensor<2x4xf32, #mtp.layout<@mesh>>
    ```
    is refused: a layout is left.
  }];
}

def SpmdFoldEpilogues : Pass<"spmd-fold-epilogues", "::mlir::ModuleOp"> {
  let summary = "Let matrix products add their bias and apply their activation.";
  let description = [{
    A bias that is added to a product and an activation of the sum, each the only
    reader of what it reads, are computed while the product's rows are in cache.

    ```mlir
    %0 = mtp.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = mtp.add %0, %b : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
    %2 = mtp.gelu %1 {tanh} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    ```
    becomes
    ```mlir
    %2 = spmd.matmul %x, %w bias %b activation gelu_tanh : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
    ```
  }];
  let dependentDialects = ["::mtp::spmd::SpmdDialect"];
}

def SpmdFuse : Pass<"spmd-fuse", "::mlir::ModuleOp"> {
  let summary = "Group ops between library calls and collectives into kernels.";
  let description = [{
    Elementwise ops, moves of elements, look-ups, reductions, softmax and norms
    that pass values to each other become one `spmd.fused`, which becomes one
    kernel. Library calls, collectives and reshapes (which are aliases) stay.

    ```mlir
    %1 = mtp.add %0, %bias : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    %2 = mtp.gelu %1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
    becomes
    ```mlir
    %2 = spmd.fused (%0, %bias) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
    ^bb0(%a: tensor<8x4xf32>, %b: tensor<4xf32>):
      %1 = mtp.add %a, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
      %3 = mtp.gelu %1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
      spmd.yield %3 : tensor<8x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mtp::spmd::SpmdDialect"];
}

def SpmdBucketCollectives : Pass<"spmd-bucket-collectives", "::mlir::ModuleOp"> {
  let summary = "Take sums of gradients over the same ranks together.";
  let description = [{
    All-reduces of the backward pass or of the update on the same axes, of the
    same element type, whose results nothing reads before the last of them, become
    one for each `limit` bytes. The values that it takes are written one after the
    other in memory, so that joining and parting them moves nothing. The
    prediction of the one is the sum of its parts'.

    ```mlir
    %3 = spmd.all_reduce %0 ["dp"] sum for "reduce_from" in "backward" : tensor<4x2xf32> to tensor<4x2xf32>
    %4 = spmd.all_reduce %1 ["dp"] sum for "reduce_from" in "backward" : tensor<3xf32> to tensor<3xf32>
    ```
    becomes
    ```mlir
    %2 = mtp.reshape %0 : (tensor<4x2xf32>) -> tensor<8xf32>
    %3 = mtp.concat dim 0 %2, %1 : (tensor<8xf32>, tensor<3xf32>) -> tensor<11xf32>
    %4 = spmd.all_reduce %3 ["dp"] sum for "reduce_from" in "backward" : tensor<11xf32> to tensor<11xf32>
    %5 = mtp.strided_slice %4 dim 0 start 0 step 1 : (tensor<11xf32>) -> tensor<8xf32>
    %6 = mtp.reshape %5 : (tensor<8xf32>) -> tensor<4x2xf32>
    %7 = mtp.strided_slice %4 dim 0 start 8 step 1 : (tensor<11xf32>) -> tensor<3xf32>
    ```
  }];
  let options = [Option<"limit", "limit", "int64_t", "16 << 20",
                        "Bytes of a bucket; a larger value stays alone">];
  let dependentDialects = ["::mtp::spmd::SpmdDialect"];
}

def SpmdLowerKernels : Pass<"spmd-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "Replace the program by the code of its kernels.";
  let description = [{
    Each `spmd.fused` becomes a function `body_N(rank, buffers..., begin, end)`
    that computes the slice [begin, end) of its outermost loop; equal regions
    become one. `to=loops` gives scf, arith and math, `to=llvm` the llvm dialect,
    with exp, tanh, erf and log as polynomials. This is what the driver compiles;
    as a pass it is for reading.

    ```mlir
    %1 = spmd.fused (%0) : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%a: tensor<8xf32>):
      %2 = mtp.neg %a : (tensor<8xf32>) -> tensor<8xf32>
      spmd.yield %2 : tensor<8xf32>
    }
    ```
    becomes (`to=loops`)
    ```mlir
    func.func private @body_0(%rank: !llvm.ptr, %a: !llvm.ptr {llvm.noalias}, %y: !llvm.ptr {llvm.noalias}, %begin: i64, %end: i64) {
      scf.for %i = %begin to %end step %one : i64 {
        %0 = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %1 = llvm.load %0 : !llvm.ptr -> f32
        %2 = arith.negf %1 : f32
        ...
    ```
  }];
  let options = [Option<"to", "to", "std::string", [{"llvm"}], "loops or llvm">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::func::FuncDialect", "::mlir::vector::VectorDialect",
                           "::mtp::spmd::SpmdDialect"];
}

def MtpApplyPlan : Pass<"mtp-apply-plan", "::mlir::ModuleOp"> {
  let summary = "Choose a layout for every value and make every conversion an op.";
  let description = [{
    Plans @main for `mesh` (the cheapest plan under `objective`, a random legal one,
    or the one of a plan file), gives every tensor type its layout, and inserts the
    conversions, each right before the first op that needs it.

    ```mlir
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %v = mtp.parameter @v : tensor<8x16xf32>
      %w = mtp.parameter @w : tensor<16x8xf32>
      %0 = mtp.matmul %x, %v : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
      %1 = mtp.matmul %0, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
      return %1 : tensor<4x8xf32>
    }
    ```
    with `mesh=tp=2` becomes (types of operands left out)
    ```mlir
    mtp.mesh @mesh <tp = 2>
    func.func @main(%x: tensor<4x8xf32, #mtp.layout<@mesh>>) -> tensor<4x8xf32, #mtp.layout<@mesh>> {
      %v = mtp.parameter @v : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
      %w = mtp.parameter @w : tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0)>>
      %f = mtp.copy_to %x ["tp"] : tensor<4x8xf32, #mtp.layout<@mesh, tp = R>>
      %0 = mtp.matmul %f, %v : tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
      %1 = mtp.matmul %0, %w : tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
      %g = mtp.reduce_from %1 ["tp"] : tensor<4x8xf32, #mtp.layout<@mesh>>
      return %g : tensor<4x8xf32, #mtp.layout<@mesh>>
    }
    ```

    Attributes that `mtp-annotate-plan` writes, and pins of the user, are kept to and
    removed: `mtp.pin = "tp = S(1)"` on an op (a list where it has several results) or
    on an argument is a layout that the value has on the axes that it names.
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", [{"tp=1"}], "Mesh axes, slowest first: dp=2,tp=4">,
    Option<"objective", "objective", "std::string", [{"parallel"}], "parallel or time">,
    Option<"plan", "plan", "std::string", [{""}], "A plan file, or random:SEED">,
    Option<"pins", "pin", "std::string", [{""}], "VALUE=LAYOUT; several are split at semicolons">,
    Option<"sequenceParallel", "sequence-parallel", "bool", "false",
           "Cut norms, dropout and residuals by tokens on axes besides dp">,
    Option<"topology", "topology", "std::string", [{""}],
           "Hosts and links that the plan is made for, as mtp-run --topology has it">,
    Option<"explain", "explain", "bool", "false", "Print the plan to standard error">];
  let dependentDialects = ["::mtp::MtpDialect"];
}

def MtpAnnotatePlan : Pass<"mtp-annotate-plan", "::mlir::ModuleOp"> {
  let summary = "Write the plan of a mesh as attributes, without changing a type.";
  let description = [{
    Plans as `mtp-apply-plan` does and notes the layouts of operands and results on each
    op and on each argument, and the mesh on the module. A constant has none for its
    result: each use gets it in the layout that it reads.

    ```mlir
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4x16xf32> {
      %w = mtp.parameter @w : tensor<8x16xf32>
      %0 = mtp.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    ```
    with `mesh=tp=2` becomes
    ```mlir
    module attributes {mtp.plan_mesh = "tp=2"} {
    func.func @main(%x: tensor<4x8xf32> {mtp.plan = {results = [""]}}) -> tensor<4x16xf32> {
      %w = mtp.parameter @w {mtp.plan = {results = ["tp = S(1)"]}} : tensor<8x16xf32>
      %0 = mtp.matmul %x, %w {mtp.plan = {operands = ["tp = R", "tp = S(1)"], results = ["tp = S(1)"]}} : ...
    ```
    `mtp-apply-plan` and `mtp-run` keep to what stands there; what is deleted is chosen.
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", [{"tp=1"}], "Mesh axes, slowest first: dp=2,tp=4">,
    Option<"objective", "objective", "std::string", [{"parallel"}], "parallel or time">,
    Option<"plan", "plan", "std::string", [{""}], "A plan file, or random:SEED">,
    Option<"pins", "pin", "std::string", [{""}], "VALUE=LAYOUT; several are split at semicolons">,
    Option<"sequenceParallel", "sequence-parallel", "bool", "false",
           "Cut norms, dropout and residuals by tokens on axes besides dp">,
    Option<"topology", "topology", "std::string", [{""}],
           "Hosts and links that the plan is made for, as mtp-run --topology has it">,
    Option<"explain", "explain", "bool", "false", "Print the plan to standard error">];
  let dependentDialects = ["::mtp::MtpDialect"];
}

def MtpExpandDropout : Pass<"mtp-expand-dropout", "::mlir::ModuleOp"> {
  let summary = "Replace dropout by random bits and a selection, or by the identity.";
  let description = [{
    `mode=model` follows each op's `training`, `on` takes all as active, `off` none.
    The bits of an element are a function of the scalars "mtp.seed" and "mtp.step"
    (arguments of @main, added where they are missing), the op's stream and the
    element's position, the same on any mesh. With `accumulate` the position is that
    in the batch of all micro-batches, of which "mtp.micro_batch" is the number.

    ```mlir
    func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y, %m = mtp.dropout %x {ratio = 0.5 : f64, stream = 3 : i64, training} : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi1>)
    ```
    becomes
    ```mlir
    func.func @main(%x: tensor<2x8xf32>, %seed: tensor<i64> {mtp.name = "mtp.seed"}, ...) -> tensor<2x8xf32> {
      %i = mtp.iota dim 0 : tensor<2x1xi64>
      ... // %index = position of the element
      %r = mtp.philox %index, %seed, %step {stream = 3 : i64} : (tensor<2x8xi64>, tensor<i64>, tensor<i64>) -> tensor<2x8xi64>
      %m = mtp.compare lt %r, %threshold : (tensor<2x8xi64>, tensor<i64>) -> tensor<2x8xi1>
      %s = mtp.mul %x, %two : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
      %y = mtp.select %m, %s, %zero : (tensor<2x8xi1>, tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
    ```
  }];
  let options = [Option<"mode", "mode", "std::string", [{"model"}], "model, on or off">,
                 Option<"accumulate", "accumulate", "bool", "false", "Several micro-batches make a step">];
}

def MtpAddLoss : Pass<"mtp-add-loss", "::mlir::ModuleOp"> {
  let summary = "Make the loss the result of @main.";
  let description = [{
    `loss` is `cross_entropy:logits=NAME,labels=NAME[,ignore_index=N][,label_smoothing=X]`,
    `mse:prediction=NAME,target=NAME`, `output:NAME`, or `@FILE.json` with the same
    keys. Labels and targets become arguments, and so does "mtp.label_count", the
    number of terms of the mean over all micro-batches. The cross entropy is written
    in open ops, so that logits with a cut vocabulary need three reductions of
    a number a row. The loss is the first result, with the attribute `mtp.loss`; other
    results stay with `keep-outputs` only. Arguments named by `input-gradients` get
    `mtp.wants_gradient`.

    ```mlir
    func.func @main(%x: ...) -> (tensor<4x8xf32> {mtp.name = "logits"})
    ```
    with `loss=cross_entropy:logits=logits,labels=labels` becomes
    ```mlir
    func.func @main(%x: ..., %labels: tensor<4xi64> {mtp.name = "labels"}, %n: tensor<f32> {mtp.name = "mtp.label_count"}) -> (tensor<f32> {mtp.loss, mtp.name = "mtp.loss"})
    ```
  }];
  let options = [
    Option<"loss", "loss", "std::string", [{""}], "The loss, as mtp-run --loss has it">,
    Option<"labelType", "label-type", "std::string", [{"i64"}], "i64 or i32">,
    Option<"lossScale", "loss-scale", "bool", "false", "Multiply the differentiated loss by mtp.loss_scale">,
    Option<"keepOutputs", "keep-outputs", "bool", "false", "Keep the outputs of the model as further results">,
    ListOption<"inputGradients", "input-gradients", "std::string", "Inputs whose gradient is wanted">];
}

def MtpMarkTrainable : Pass<"mtp-mark-trainable", "::mlir::ModuleOp"> {
  let summary = "Mark the stored tensors that training changes.";
  let description = [{
    Trainable initializers (compiler/plan/Trainable.h) get `trainable`, and each
    piece of them that the program loads gets `mtp.trainable = N`, N being its number.
    An element belongs to one piece: if recipes overlap or leave elements out, they
    become ops on one piece that is the whole initializer. `tie=A,B` or
    `tie=A,B:transposed` makes B's uses read A.

    ```mlir
    %a = mtp.parameter @w recipe [#mtp.step<"slice", [0, 0, 4]>] : tensor<4x8xf32>
    %b = mtp.parameter @w : tensor<16x8xf32>
    ```
    becomes
    ```mlir
    %b = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<16x8xf32>
    %a = mtp.strided_slice %b dim 0 start 0 step 1 : (tensor<16x8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let options = [
    ListOption<"freeze", "freeze", "std::string", "Globs of names that are not trained">,
    ListOption<"trainOnly", "train-only", "std::string", "Globs of the only names that are trained">,
    ListOption<"tie", "tie", "std::string", "A,B or A,B:transposed, one entry each; split at ';' in text">];
}

def MtpShardStates : Pass<"mtp-shard-states", "::mlir::ModuleOp"> {
  let summary = "Store trained parameters in blocks over the data parallel axis (ZeRO).";
  let description = [{
    With `zero=3` a trained parameter that is invariant on `axis` is stored cut by it,
    minor-most in the dimension that pads least, and gathered where it is used; the
    conjugate scatters its gradient. Stages 1 and 2 cut states and gradients only,
    which mtp-add-optimizer does; with stage 3 that pass also gathers again what the
    backward reads.

    ```mlir
    %w = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<8x4xf32, #mtp.layout<@mesh>>
    %r = mtp.copy_to %w ["dp"] : (tensor<8x4xf32, #mtp.layout<@mesh>>) -> tensor<8x4xf32, #mtp.layout<@mesh, dp = R>>
    ```
    becomes
    ```mlir
    %w = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<8x4xf32, #mtp.layout<@mesh, dp = S(0)>>
    %r = mtp.all_gather %w ["dp"] : (tensor<8x4xf32, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<8x4xf32, #mtp.layout<@mesh, dp = R>>
    ```
  }];
  let options = [
    Option<"zero", "zero", "int64_t", "0", "Stage: 0, 1, 2 or 3">,
    Option<"axis", "axis", "std::string", [{"dp"}], "Mesh axis that cuts states">];
}

def MtpAddOptimizer : Pass<"mtp-add-optimizer", "::mlir::ModuleOp"> {
  let summary = "Turn gradients into an update of parameters and optimizer states.";
  let description = [{
    Gradients (results with `mtp.gradient_of = N`) become one global norm in which
    every element counts once, a clipping coefficient, and the step of torch's SGD or
    AdamW, written to the stored tensors. Scalars that change from step to step are
    arguments. Results that remain: the loss and "mtp.grad_norm".

    ```mlir
    func.func @main(...) -> (tensor<f32> {mtp.loss}, tensor<8x4xf32> {mtp.gradient_of = 0 : i64})
    ```
    with `optimizer=sgd` becomes (layouts left out)
    ```mlir
    func.func @main(..., %rate: tensor<f32> {mtp.name = "mtp.learning_rate"}) -> (tensor<f32> {mtp.loss}, tensor<f32> {mtp.name = "mtp.grad_norm"}) {
      ...
      %step = mtp.mul %g, %rate : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
      %new = mtp.sub %w, %step : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      mtp.store %new to %w : tensor<8x4xf32>, tensor<8x4xf32>
    ```
    With `accumulate` above 1, @main adds gradients to states "accumulator" and a
    second function @update does the rest.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", [{"adamw"}], "sgd or adamw">,
    Option<"momentum", "momentum", "double", "0", "Of sgd">,
    Option<"weightDecay", "weight-decay", "double", "0", "Of all trained parameters">,
    Option<"beta1", "beta1", "double", "0.9", "Of adamw">,
    Option<"beta2", "beta2", "double", "0.999", "Of adamw">,
    Option<"eps", "eps", "double", "1e-8", "Of adamw">,
    Option<"clipNorm", "clip-norm", "double", "0", "Largest norm of the gradient; 0: any">,
    Option<"zero", "zero", "int64_t", "0", "Stage: 0, 1, 2 or 3">,
    Option<"axis", "axis", "std::string", [{"dp"}], "Mesh axis that cuts states">,
    Option<"accumulate", "accumulate", "int64_t", "1", "Micro-batches of a step">,
    Option<"lossScale", "loss-scale", "bool", "false", "Gradients are multiplied by mtp.loss_scale">,
    Option<"keepGradients", "keep-gradients", "bool", "false",
           "Store gradients, before clipping, in states \"gradient\"">];
}

def MtpDifferentiate : Pass<"mtp-differentiate", "::mlir::ModuleOp"> {
  let summary = "Append the gradients of the loss to a program with layouts.";
  let description = [{
    The result marked `mtp.loss` is differentiated with respect to every op that
    has `mtp.trainable` and every argument with `mtp.wants_gradient`; each adds a
    result, marked `mtp.gradient_of`. A gradient has the dual of its value's layout
    (I and S their own, R and P each other). Conversions become their conjugates,
    of phase "backward", and share a number `pair` with them.

    ```mlir
    func.func @main(%x: tensor<4x8xf32, #mtp.layout<@mesh>>) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
      %v = mtp.parameter @v {mtp.trainable = 0 : i64} : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
      %f = mtp.copy_to %x ["tp"] : tensor<4x8xf32, #mtp.layout<@mesh, tp = R>>
      %0 = mtp.matmul %f, %v : tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
      %1 = mtp.reduce_sum %0 dims [0, 1] : tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>
      %2 = mtp.reduce_from %1 ["tp"] : tensor<f32, #mtp.layout<@mesh>>
      return %2 : tensor<f32, #mtp.layout<@mesh>>
    }
    ```
    becomes (types of operands left out)
    ```mlir
    func.func @main(%x: tensor<4x8xf32, #mtp.layout<@mesh>>) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}, tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>> {mtp.gradient_of = 0 : i64}) {
      ...
      %2 = mtp.reduce_from %1 ["tp"] {pair = 0 : i64} : tensor<f32, #mtp.layout<@mesh>>
      %g = mtp.constant {mtp.backward} dense<1.0> : tensor<f32, #mtp.layout<@mesh>>
      %3 = mtp.copy_to %g ["tp"] {pair = 0 : i64, phase = "backward"} : tensor<f32, #mtp.layout<@mesh, tp = R>>
      %4 = mtp.reshape %3 : tensor<1x1xf32, #mtp.layout<@mesh, tp = R>>
      %5 = mtp.broadcast %4 : tensor<4x16xf32, #mtp.layout<@mesh, tp = S(1)>>
      %6 = mtp.weight_gradient %f, %5 : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
      return %2, %6 : tensor<f32, #mtp.layout<@mesh>>, tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
    }
    ```
  }];
  let dependentDialects = ["::mtp::MtpDialect"];
}

def MtpRecompute : Pass<"mtp-recompute", "::mlir::ModuleOp"> {
  let summary = "Compute forward values again where the backward needs them.";
  let description = [{
    For a program of `mtp-differentiate`. With `mode=layers` the forward is cut
    where one activation alone is live (the residual stream); what the backward
    reads besides is computed again from there, right before its first use. With
    `layers=N` that is done for the first N of the segments only.

    ```mlir
    %1 = mtp.matmul %0, %v
    %2 = mtp.gelu %1
    %3 = mtp.matmul %2, %w
    %4 = mtp.add %0, %3
    ...
    %g2 = mtp.gelu_gradient %1, %g3
    ```
    becomes
    ```mlir
    %1 = mtp.matmul %0, %v
    %2 = mtp.gelu %1
    %3 = mtp.matmul %2, %w
    %4 = mtp.add %0, %3
    ...
    %b = mtp.barrier %0
    %r = mtp.matmul %b, %v
    %g2 = mtp.gelu_gradient %r, %g3
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", [{"layers"}], "none or layers">,
    Option<"layers", "layers", "int64_t", "-1", "So many of the segments, from the first; -1: all">
  ];
  let dependentDialects = ["::mtp::MtpDialect"];
}

#endif // MTP_PASSES_TD
