// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- AttentionCode.h - what attention and its gradient share ------------===//
//
// A warp has a few *rows*; its 32 lanes stand for the entries of a *tile* of
// the other side. The forward pass and the gradient of queries have queries as
// rows and keys as tiles, the gradient of keys and values the other way round:
//
//   for each tile:            all warps of the block load it, into shared
//   memory
//     score[row] = row . entry of the lane       each lane its own entry
//     softmax over lanes by shuffles
//     for each entry: sum[row][..] += weight from its lane * entry[..]
//                                                lanes go along the depth
//
// so that no score is ever stored. Numbers of 16 bits are f32 in registers and
// in shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_CUDA_ATTENTIONCODE_H
#define MTP_COMPILER_CODEGEN_CUDA_ATTENTIONCODE_H

#include "compiler/codegen/cuda/KernelCode.h"

#include <functional>

namespace mtp {

/// Vectors of one side of a product: rows of a block, or a tile of entries.
struct StagedRows {
  unsigned operand = 0; ///< of the op
  int64_t depth = 0;
  int64_t stride = 0; ///< elements between vectors in shared memory
  mlir::Value shared; ///< null: they are read where they lie
  double factor = 1;  ///< applied when loaded
};

class AttentionCode {
public:
  using Values = KernelCode::Values;
  static constexpr int64_t kLanes = 32, kWarps = 4;

  /// Reads the op's attributes and shapes. Fails after a diagnostic.
  explicit AttentionCode(LibraryKernelContext &context);

  /// Rows of a warp, so that `rowBytes` for each row of the block and the tiles
  /// fit into shared memory; 0 if not even one does.
  int64_t chooseRows(int64_t rowElements, int64_t sums) const;
  /// Starts the kernel: a block for `tiles` tiles of rows of each of `heads`.
  void begin(int64_t tiles, int64_t heads);
  void loadOffset(); ///< of causal; after begin

  StagedRows stageRows(unsigned operand, int64_t depth, int64_t count,
                       double factor);
  StagedRows stageTile(unsigned operand, int64_t depth, double factor);
  /// Loads vectors first, first + 1, ... of head (b, h); those from `limit` on
  /// are zero.
  void fill(const StagedRows &rows, int64_t count, mlir::Value b, mlir::Value h,
            mlir::Value first, int64_t limit);
  /// Element d of vector `number` of the block's (`first` + number if it is
  /// read where it lies).
  mlir::Value element(const StagedRows &rows, mlir::Value b, mlir::Value h,
                      mlir::Value first, mlir::Value number, mlir::Value d,
                      int64_t limit);

  /// An element of an operand or result of four dimensions.
  mlir::Value loadOperand(unsigned operand, llvm::ArrayRef<mlir::Value> at);
  void storeResult(unsigned result, llvm::ArrayRef<mlir::Value> at,
                   mlir::Value value);

  struct Score {
    mlir::Value score;  ///< -inf where the key is hidden
    mlir::Value capped; ///< before the mask; null without softcap
  };
  /// What query i of head (b, h) gives key j, from their scaled product.
  Score score(mlir::Value product, mlir::Value b, mlir::Value h, mlir::Value i,
              mlir::Value j);
  /// d score / d product of a capped score.
  mlir::Value capSlope(mlir::Value capped);
  /// The keys that queries up to `last` see end here.
  mlir::Value visibleEnd(mlir::Value last);

  struct Statistics {
    mlir::Value shift, factor; ///< weight = exp(score - shift) factor
    mlir::Value alike;         ///< no key is visible, and that isn't zero
    mlir::Value delta;         ///< sum of output * cotangent
  };
  /// Of query i, from the results of the forward pass; the gradient's operands.
  Statistics statistics(mlir::Value b, mlir::Value h, mlir::Value i,
                        mlir::Value delta);
  /// The sum of output * cotangent of query i.
  mlir::Value rowDelta(mlir::Value b, mlir::Value h, mlir::Value i);
  /// The weight of a score, and its cotangent from that of the weight; NaN or
  /// equal weights for a row without visible keys.
  std::pair<mlir::Value, mlir::Value>
  weightAndCotangent(const Statistics &row, mlir::Value score,
                     mlir::Value weightCotangent);

  /// The scaled product of query i and key j, read where they lie.
  mlir::Value product(mlir::Value b, mlir::Value h, mlir::Value i,
                      mlir::Value j);
  /// Element d of what a row of equal finite scores gives.
  mlir::Value meanOfValues(mlir::Value b, mlir::Value hk, mlir::Value d);
  mlir::Value laneMax(mlir::Value value);
  mlir::Value laneSum(mlir::Value value);
  mlir::Value keyHead(mlir::Value h) { return code.div(h, group); }
  /// What a product by matrix instructions keeps of an operand.
  mlir::Value round(mlir::Value operand) {
    return rounded ? rounded(operand) : operand;
  }

  LibraryKernelContext &context;
  KernelCode code;
  mlir::Type element_, real; ///< as stored, in registers
  Scalars s;                 ///< of `real`
  int64_t batch = 0, heads = 0, keyHeads = 0, group = 1, queries = 0, keys = 0,
          depth = 0, valueDepth = 0;
  double scale = 1, softcap = 0;
  bool causal = false, zeroRows = false, uniformRows = false;
  int64_t causalOffset = 0;
  int mask = -1, start = -1;                       ///< operands
  int output = -1, logsumexp = -1, cotangent = -1; ///< of the gradient
  int64_t rows = 4;                                ///< of a warp
  mlir::Value lane, warp, thread, block, offset;
  /// Rounds operands where matrix instructions do.
  std::function<mlir::Value(mlir::Value)> rounded;

private:
  int64_t bytes(int64_t elements) const;
  Values exactStatistics(mlir::Value b, mlir::Value h, mlir::Value i);
  llvm::SmallVector<int64_t> maskStrides() const;
  int64_t sharedBytes = 0;
};

/// True if matrix instructions compute the forward pass, or the gradients of
/// queries, keys and values (AttentionTile.h): in f16, from sm_80 in bf16 and
/// tf32, for heads of up to 128 elements (the gradient in tf32: 96), a multiple
/// of 8.
bool hasMatrixAttention(const AttentionCode &code, bool isGradient);
mlir::LogicalResult emitMatrixAttention(LibraryKernelContext &context);
mlir::LogicalResult emitMatrixAttentionGradient(LibraryKernelContext &context);

/// The kernels of `mtp.attention_gradient`.
llvm::SmallVector<KernelPart> attentionGradientParts(mlir::Operation *op);
mlir::LogicalResult emitAttentionGradient(LibraryKernelContext &context);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_CUDA_ATTENTIONCODE_H
