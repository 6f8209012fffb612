// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MtpConversionOps.td - changes of layout -----------------------------===//
//
// Each conversion a -> b on mesh axes has a conjugate dual(b) -> dual(a), which
// is what makes differentiation sound. I and S are self-dual, R and P(sum) are
// dual. See docs and DESIGN section 3 for the table.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_CONVERSION_OPS_TD
#define MTP_CONVERSION_OPS_TD

include "dialects/mtp/MtpDialect.td"

class Mtp_ConversionOp<string mnemonic, string fromState, string toState,
                       string transfer, string conjugate, string sum, string text>
    : Mtp_Op<mnemonic, [Pure, Mtp_ConversionOpInterface]> {
  let summary = sum;
  let description = text # "\n\nConjugate: `mtp." # conjugate # [{`.

    Constraints:
    - The axes exist in the mesh of both types.
    - On the axes the operand's and the result's states are those of the op; on
      all others they are equal.
    - Only the minor-most axes of a dimension are added or removed.
  }];
  let arguments = (ins Mtp_Tensor:$input, StrArrayAttr:$axes);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input $axes attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    static ::mtp::Kind fromKind() { return ::mtp::Kind::}] # fromState # [{; }
    static ::mtp::Kind toKind() { return ::mtp::Kind::}] # toState # [{; }
    static ::mtp::Transfer getTransfer() { return ::mtp::Transfer::}] # transfer # [{; }
    static ::llvm::StringRef getConjugateName() { return "mtp.}] # conjugate # [{"; }
  }];
}

def Mtp_CopyToOp : Mtp_ConversionOp<"copy_to", "I", "R", "None", "reduce_from",
  "I to R, no data moved (Megatron's f).",
  [{Into a region where the axis's ranks do different work.

    ```
    rank 0: x  ->  x        backward:  g0 + g1  <-  g0
    rank 1: x  ->  x                   g0 + g1  <-  g1
    ```}]>;
def Mtp_ReduceFromOp : Mtp_ConversionOp<"reduce_from", "PSum", "I", "AllReduce", "copy_to",
  "P(sum) to I by an all-reduce (Megatron's g).",
  [{Out of a region of different work.

    ```
    rank 0: a  ->  a + b    backward:  g  <-  g
    rank 1: b  ->  a + b               g  <-  g
    ```}]>;
def Mtp_AllReduceOp : Mtp_ConversionOp<"all_reduce", "PSum", "R", "AllReduce", "all_reduce",
  "P(sum) to R by an all-reduce.",
  "The sum feeds different work again; the gradient is summed as well.">;
def Mtp_ReduceMaxFromOp : Mtp_ConversionOp<"reduce_max_from", "PMax", "I", "AllReduce", "reduce_max_from",
  "P(max) to I by an all-reduce of maxima.", "Has no gradient: only behind stop-gradient.">;
def Mtp_AllReduceMaxOp : Mtp_ConversionOp<"all_reduce_max", "PMax", "R", "AllReduce", "all_reduce_max",
  "P(max) to R by an all-reduce of maxima.", "Has no gradient: only behind stop-gradient.">;
def Mtp_ReduceMinFromOp : Mtp_ConversionOp<"reduce_min_from", "PMin", "I", "AllReduce", "reduce_min_from",
  "P(min) to I by an all-reduce of minima.", "Has no gradient: only behind stop-gradient.">;
def Mtp_AllReduceMinOp : Mtp_ConversionOp<"all_reduce_min", "PMin", "R", "AllReduce", "all_reduce_min",
  "P(min) to R by an all-reduce of minima.", "Has no gradient: only behind stop-gradient.">;
def Mtp_AllGatherOp : Mtp_ConversionOp<"all_gather", "S", "R", "AllGather", "reduce_scatter",
  "S to R: every rank gets all blocks.",
  [{

    ```
    rank 0: [a    ]  ->  [a b]
    rank 1: [    b]  ->  [a b]
    ```}]>;
def Mtp_ReduceScatterOp : Mtp_ConversionOp<"reduce_scatter", "PSum", "S", "ReduceScatter", "all_gather",
  "P(sum) to S: every rank gets its block of the sum.",
  [{

    ```
    rank 0: [a b]  ->  [a+c    ]
    rank 1: [c d]  ->  [    b+d]
    ```}]>;
def Mtp_GatherFromOp : Mtp_ConversionOp<"gather_from", "S", "I", "AllGather", "scatter_to",
  "S to I: every rank gets all blocks and uses them alike.",
  "Data as all_gather; the gradient is only sliced.">;
def Mtp_ScatterToOp : Mtp_ConversionOp<"scatter_to", "I", "S", "Slice", "gather_from",
  "I to S: every rank keeps its block.", "No data moved; the gradient is gathered.">;
def Mtp_SliceOp : Mtp_ConversionOp<"slice", "R", "S", "Slice", "pad_to",
  "R to S: every rank keeps its block.", "No data moved; the gradient is padded with zeros.">;
def Mtp_PadToOp : Mtp_ConversionOp<"pad_to", "S", "PSum", "Pad", "slice",
  "S to P(sum): every rank's block among zeros.", "No data moved.">;
def Mtp_RootToOp : Mtp_ConversionOp<"root_to", "I", "PSum", "Root", "assert_invariant",
  "I to P(sum): the first rank keeps the value, the others have zero.", "No data moved.">;
def Mtp_AssertInvariantOp : Mtp_ConversionOp<"assert_invariant", "R", "I", "None", "root_to",
  "R to I, no data moved.", "The author asserts that work on the axis is the same again.">;
def Mtp_RootOfOp : Mtp_ConversionOp<"root_of", "R", "PSum", "Root", "root_of",
  "R to P(sum): the first rank keeps the value, the others have zero.", "No data moved.">;
def Mtp_AllToAllOp : Mtp_ConversionOp<"all_to_all", "S", "S", "AllToAll", "all_to_all",
  "S(a) to S(b): every rank sends a block of b to each other.",
  [{

    ```
    rank 0: [a0 b0]  ->  [a0]      rows sharded by rank become
    rank 1: [a1 b1]  ->  [a1]      columns sharded by rank
    ```}]>;

def Mtp_PermuteOp : Mtp_Op<"permute", [Pure, Mtp_ConversionOpInterface]> {
  let summary = "S to S: blocks move between ranks (another order of axes).";
  let description = [{
    Both types cut the same dimension by the same axes in another order.

    ```mlir
    %y = mtp.permute %x ["dp", "tp"] : (tensor<8xf32, #mtp.layout<@mesh, dp = S(0), tp = S(0)>>) -> tensor<8xf32, #mtp.layout<@mesh, tp = S(0), dp = S(0)>>
    ```
    Conjugate: the inverse permutation, again `mtp.permute`.

    Constraints:
    - The listed axes cut one dimension in both types, minor-most, in different
      orders; nothing else differs.
    - Blocks have equal size in both types and no padding.
  }];
  let arguments = (ins Mtp_Tensor:$input, StrArrayAttr:$axes);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input $axes attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    static ::mtp::Kind fromKind() { return ::mtp::Kind::S; }
    static ::mtp::Kind toKind() { return ::mtp::Kind::S; }
    static ::mtp::Transfer getTransfer() { return ::mtp::Transfer::Permute; }
    static ::llvm::StringRef getConjugateName() { return "mtp.permute"; }
  }];
}

#endif // MTP_CONVERSION_OPS_TD
