// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SpmdCollectiveOps.td - what ranks do together -----------------------===//
//
// Every collective names mesh axes; a group is the ranks that differ only on
// them. Attributes that a plan gave to the conversion (node, reason, predicted
// bytes) are carried along.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_COLLECTIVE_OPS_TD
#define SPMD_COLLECTIVE_OPS_TD

include "dialects/spmd/SpmdDialect.td"

/// Reads and writes: collectives keep their order, and none is dropped or merged
/// on its own.
class Spmd_CollectiveOp<string mnemonic, string sum, string text, dag extra,
                        string syntax>
    : Spmd_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>, Spmd_CollectiveOpInterface]> {
  let summary = sum;
  let description = text;
  let arguments = !con((ins Mtp_Tensor:$input, StrArrayAttr:$axes, StrAttr:$mtp_op,
                            DefaultValuedAttr<StrAttr, "\"forward\"">:$phase), extra);
  let results = (outs Mtp_Tensor:$result);
  let assemblyFormat = "$input $axes" # syntax # " `for` $mtp_op (`in` $phase^)? attr-dict `:` type($input) `to` type($result)";
}

def Spmd_AllReduceOp : Spmd_CollectiveOp<"all_reduce",
    "Every rank of the group gets the sum (maximum, minimum).", [{
    ```
    rank 0: a  ->  a + b
    rank 1: b  ->  a + b
    ```
    ```mlir
    %y = spmd.all_reduce %x ["tp"] sum for "reduce_from" : tensor<4x8xf32> to tensor<4x8xf32>
    ```
    Constraints:
    - The axes exist, and there is at least one.
    - The type stays.
  }], (ins Spmd_ReductionAttr:$reduction), " $reduction"> {
  let hasVerifier = 1;
  let extraClassDeclaration = "::mtp::spmd::Reduction getReductionKind() { return getReduction(); }";
}

defvar CutMethods = [{
    int64_t getChangedDim() { return getDim(); }
    ::mtp::spmd::CutAttr getChangedCut() { return getCut(); }
}];

class Spmd_CutCollectiveOp<string mnemonic, string sum, string text>
    : Spmd_CollectiveOp<mnemonic, sum, text, (ins I64Attr:$dim, Spmd_CutAttr:$cut),
        " `dim` $dim $cut"> {
  let extraClassDeclaration = CutMethods;
}

def Spmd_AllGatherOp : Spmd_CutCollectiveOp<"all_gather",
    "Every rank of the group gets all blocks, one after the other.", [{
    `cut` is how `dim` is cut in the operand. Padding is left out of the copies;
    what the result holds past the last valid element is unspecified.

    ```
    rank 0: [a    ]  ->  [a b]
    rank 1: [    b]  ->  [a b]
    ```
    ```mlir
    %y = spmd.all_gather %x ["tp"] dim 1 <5 by ["tp"]> for "all_gather" : tensor<4x3xf32> to tensor<4x5xf32>
    ```
    Constraints:
    - The axes exist, are at least one, and are the minor-most of the cut.
    - Operand and result have the sizes that the cut gives in `dim`, with and
      without the axes; all other sizes are equal.
  }]>;
def Spmd_ReduceScatterOp : Spmd_CutCollectiveOp<"reduce_scatter",
    "Every rank of the group gets its block of the sum.", [{
    `cut` is how `dim` is cut in the result.

    ```
    rank 0: [a b]  ->  [a+c    ]
    rank 1: [c d]  ->  [    b+d]
    ```
    ```mlir
    %y = spmd.reduce_scatter %x ["tp"] dim 1 <5 by ["tp"]> for "reduce_scatter" : tensor<4x5xf32> to tensor<4x3xf32>
    ```
    Constraints:
    - The axes exist, are at least one, and are the minor-most of the cut.
    - Operand and result have the sizes that the cut gives in `dim`, without and
      with the axes; all other sizes are equal.
  }]>;

def Spmd_AllToAllOp : Spmd_CollectiveOp<"all_to_all",
    "Every rank sends a block to each other one: blocks of one dimension become blocks of another.", [{
    `cut` is how `dim`, which is put together, is cut in the operand, `split_cut`
    how `split_dim` is cut in the result.

    ```
    rank 0: [a0 b0]  ->  [a0]      rows by rank become
    rank 1: [a1 b1]  ->  [a1]      columns by rank
    ```
    ```mlir
    %y = spmd.all_to_all %x ["tp"] dim 0 <4 by ["tp"]> split 1 <6 by ["tp"]> for "all_to_all" : tensor<2x6xf32> to tensor<4x3xf32>
    ```
    Constraints:
    - The axes exist, are at least one, and are the minor-most of both cuts.
    - Operand and result have the sizes that the cuts give; all others are equal.
  }], (ins I64Attr:$dim, Spmd_CutAttr:$cut, I64Attr:$split_dim, Spmd_CutAttr:$split_cut),
    " `dim` $dim $cut `split` $split_dim $split_cut"> {
  let hasVerifier = 1;
  let extraClassDeclaration = CutMethods;
}

def Spmd_PermuteOp : Spmd_CollectiveOp<"permute",
    "Blocks move between the ranks of a group.", [{
    Rank i of the group (the last axis fastest) gets the block of rank
    `source_of[i]`.

    ```mlir
    %y = spmd.permute %x ["dp", "tp"] from [0, 2, 1, 3] for "permute" : tensor<2xf32> to tensor<2xf32>
    ```
    Constraints:
    - The axes exist, and there is at least one.
    - `source_of` is a permutation of the group.
    - The type stays.
  }], (ins DenseI64ArrayAttr:$source_of), " `from` $source_of"> {
  let hasVerifier = 1;
}

#endif // SPMD_COLLECTIVE_OPS_TD
