// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- spmd-chunk-products.cpp - row-parallel products in parts -----------===//
//
// Nothing of the program can run beside the sum over ranks that follows a
// row-parallel product, so that the product is given in parts: rows are summed
// while the next ones are multiplied. Parts are dense in memory: slicing the
// operand and joining the sums moves nothing (compiler/codegen/BufferPlan.h).
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Overlap.h"
#include "compiler/cost/Gpu.h"
#include "dialects/spmd/SpmdDialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mtp;

namespace mtp {
#define GEN_PASS_DEF_SPMDCHUNKPRODUCTS
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {

constexpr int64_t kMostParts = 4;
/// Parts begin at multiples of what cuBLASLt can use.
constexpr int64_t kAlignment = 256;

int64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

/// A product whose rows can be computed and summed in parts.
struct RowParallel {
  spmd::AllReduceOp sum;
  Operation *product; ///< mtp.matmul or spmd.matmul
  unsigned dim;       ///< of the result and of the left operand, the outermost

  RankedTensorType result() const {
    return cast<RankedTensorType>(product->getResult(0).getType());
  }
  RankedTensorType left() const {
    return cast<RankedTensorType>(product->getOperand(0).getType());
  }
  int64_t rows() const { return result().getDimSize(dim); }
};

/// Sums of the forward pass: behind those of the backward pass run products
/// of the weights' gradients (spmd-overlap-collectives).
std::optional<RowParallel> rowParallel(spmd::AllReduceOp sum) {
  Operation *product = sum.getInput().getDefiningOp();
  if (!product || !isa<MatMulOp, spmd::MatmulOp>(product) ||
      product->hasAttr("transpose_lhs") || !product->hasOneUse() ||
      sum.getPhase() != "forward" ||
      sum.getReduction() != spmd::Reduction::sum ||
      !isa<FloatType>(sum.getType().getElementType()) || sum->use_empty())
    return std::nullopt;
  auto left = cast<RankedTensorType>(product->getOperand(0).getType());
  auto right = cast<RankedTensorType>(product->getOperand(1).getType());
  RankedTensorType result = sum.getType();
  if (right.getRank() != 2 || left.getRank() != result.getRank())
    return std::nullopt;
  unsigned dim = 0;
  while (dim + 1 < result.getRank() && result.getDimSize(dim) == 1)
    ++dim;
  if (dim + 1 >= result.getRank())
    return std::nullopt;
  return RowParallel{sum, product, dim};
}

class Chunking {
public:
  Chunking(MeshShape mesh, int capability, int64_t wanted)
      : mesh(std::move(mesh)), wanted(wanted) {
    std::vector<std::pair<std::string, int64_t>> axes;
    for (const auto &axis : this->mesh.axes)
      axes.push_back({axis.name(), axis.size});
    machine = plan::gpuMachine(capability, axes);
  }

  void run(mlir::Block &block) {
    for (auto sum : llvm::to_vector(block.getOps<spmd::AllReduceOp>()))
      if (auto chain = rowParallel(sum))
        if (int64_t parts = partsOf(*chain); parts > 1)
          split(*chain, parts);
  }

private:
  int64_t partsOf(const RowParallel &chain) const {
    int64_t rows = chain.rows(), best = wanted;
    if (best == 0)
      best = plan::bestParts(machine, summedProduct(chain),
                             std::min(rows, kMostParts));
    auto isAligned = [&](RankedTensorType type, int64_t parts) {
      return bytesOf(type) / parts % kAlignment == 0;
    };
    bool fits = best >= 1 && rows % best == 0 &&
                isAligned(chain.result(), best) &&
                isAligned(chain.left(), best);
    return fits ? best : 1;
  }

  plan::SummedProduct summedProduct(const RowParallel &chain) const {
    plan::SummedProduct product;
    RankedTensorType result = chain.result(), left = chain.left();
    product.n = result.getShape().back();
    product.m = result.getNumElements() / std::max<int64_t>(product.n, 1);
    product.k = left.getShape().back();
    product.bytes = bytesOf(result);
    Type element = result.getElementType();
    product.kind = element.isF64()   ? plan::FlopKind::F64
                   : element.isF32() ? plan::FlopKind::F32
                                     : plan::FlopKind::Half;
    spmd::AllReduceOp sum = chain.sum;
    auto axes = spmd::findAxes(sum.getAxes(), mesh);
    product.axes.assign(axes.begin(), axes.end());
    return product;
  }

  /// `type` with `size` in dimension `dim`.
  static RankedTensorType resized(RankedTensorType type, unsigned dim,
                                  int64_t size) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = size;
    return RankedTensorType::get(shape, type.getElementType());
  }

  static void split(const RowParallel &chain, int64_t parts) {
    spmd::AllReduceOp sum = chain.sum;
    OpBuilder builder(sum);
    int64_t size = chain.rows() / parts;
    SmallVector<Value> sums;
    for (int64_t part = 0; part < parts; ++part) {
      Location loc = chain.product->getLoc();
      Value rows = StridedSliceOp::create(
          builder, loc, resized(chain.left(), chain.dim, size),
          chain.product->getOperand(0), chain.dim, part * size, 1);
      IRMapping mapping;
      mapping.map(chain.product->getOperand(0), rows);
      Operation *product = builder.clone(*chain.product, mapping);
      RankedTensorType type = resized(chain.result(), chain.dim, size);
      product->getResult(0).setType(type);
      mapping.map(sum.getInput(), product->getResult(0));
      Operation *partial = builder.clone(*sum, mapping);
      partial->getResult(0).setType(type);
      describe(partial, part, parts);
      sums.push_back(partial->getResult(0));
    }
    Value joined =
        ConcatOp::create(builder, sum.getLoc(), sum.getType(), chain.dim, sums);
    sum.getResult().replaceAllUsesWith(joined);
    sum.erase();
    chain.product->erase();
  }

  /// What was predicted stands at the first part.
  static void describe(Operation *sum, int64_t part, int64_t parts) {
    Builder builder(sum->getContext());
    sum->setAttr(kCollectivePart, builder.getI64IntegerAttr(part));
    if (part == 0)
      return;
    sum->setAttr(spmd::names::predictedCount, builder.getI64IntegerAttr(0));
    sum->setAttr(spmd::names::predictedBytes, builder.getI64IntegerAttr(0));
    auto node = sum->getAttrOfType<StringAttr>(spmd::names::node);
    sum->setAttr(spmd::names::node,
                 builder.getStringAttr((node ? node.getValue() : "") +
                                       ", part " + std::to_string(part + 1) +
                                       " of " + std::to_string(parts)));
  }

  MeshShape mesh;
  int64_t wanted;
  plan::Machine machine;
};

struct SpmdChunkProducts : mtp::impl::SpmdChunkProductsBase<SpmdChunkProducts> {
  using SpmdChunkProductsBase::SpmdChunkProductsBase;

  void runOnOperation() override {
    MeshOp mesh = spmd::findMesh(getOperation());
    if (!mesh)
      return signalPassFailure();
    Chunking chunking(mesh.getShape(), capability, parts);
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isDeclaration() && func.getBody().hasOneBlock())
        chunking.run(func.getBody().front());
  }
};
} // namespace
