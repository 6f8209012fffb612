// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- spmd-bucket-collectives.cpp - many small sums become a large one ---===//
//
// Sums of gradients over the same ranks that are not read before the update are
// collected, in the order of the program, until the bucket is full. They are
// taken together where the last one stood: all operands are there. A few cheap
// ops that read a sum on its way to the update (rows of a table, scattered into
// it) are put behind the last one, so that the sum can wait as well. Every rank
// runs the same pass on the same program, so that the order of collectives
// stays the same everywhere.
//
//===----------------------------------------------------------------------===//

#include "dialects/spmd/SpmdDialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mtp;

namespace mtp {
#define GEN_PASS_DEF_SPMDBUCKETCOLLECTIVES
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {

/// What the members of a bucket have in common.
using Key = std::tuple<Attribute, Attribute, Attribute, Type>;

int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

class Bucketing {
public:
  Bucketing(mlir::Block &block, int64_t limit) : block(block), limit(limit) {}

  void run() {
    number();
    for (auto sum : block.getOps<spmd::AllReduceOp>()) {
      last[keyOf(sum)] = sum;
      sums.push_back(sum);
    }
    for (spmd::AllReduceOp sum : sums)
      delayReaders(sum);
    for (Operation &op : llvm::make_early_inc_range(block))
      if (auto sum = dyn_cast<spmd::AllReduceOp>(op))
        if (isMember(sum))
          add(sum);
    for (auto &[key, bucket] : buckets)
      merge(bucket);
  }

private:
  struct Bucket {
    SmallVector<spmd::AllReduceOp> members;
    int64_t bytes = 0;
  };

  void number() {
    int64_t position = 0;
    for (Operation &op : block)
      positions[&op] = position++;
  }

  /// Puts the readers of `sum` that stand before the last sum of its kind, and
  /// what reads them, behind that one, if they are few and have no effect.
  void delayReaders(spmd::AllReduceOp sum) {
    Operation *end = last[keyOf(sum)];
    constexpr size_t kFew = 4;
    llvm::SetVector<Operation *> readers;
    readers.insert(sum);
    for (size_t i = 0; i < readers.size() && readers.size() <= kFew + 1; ++i)
      for (Operation *user : readers[i]->getUsers())
        if (positions.lookup(user) <= positions.lookup(end))
          readers.insert(user);
    readers.remove(sum);
    if (sum.getPhase() == "forward" || readers.empty() ||
        readers.size() > kFew ||
        !llvm::all_of(readers, mlir::isMemoryEffectFree) ||
        llvm::any_of(readers, [&](Operation *op) {
          return isa<spmd::AllReduceOp>(op) || op->getBlock() != &block;
        }))
      return;
    SmallVector<Operation *> ordered = readers.takeVector();
    llvm::sort(ordered, [&](Operation *a, Operation *b) {
      return positions.lookup(a) < positions.lookup(b);
    });
    for (Operation *op : ordered) {
      op->moveAfter(end);
      end = op;
    }
    number();
  }

  static Key keyOf(spmd::AllReduceOp op) {
    return {op.getAxes(), op.getMtpOpAttr(), op.getPhaseAttr(),
            op.getType().getElementType()};
  }

  /// Gradients that an op has computed (one that lies in an accumulator would
  /// have to be copied) and that nothing reads before the last of their kind:
  /// what the backward pass waits for is not made to wait.
  bool isMember(spmd::AllReduceOp op) {
    int64_t end = positions.lookup(last[keyOf(op)]);
    return op.getPhase() != "forward" &&
           op.getReduction() == spmd::Reduction::sum &&
           isa<FloatType>(op.getType().getElementType()) &&
           bytesOf(op.getInput()) < limit &&
           !op.getInput().getDefiningOp<spmd::ParameterOp>() &&
           llvm::all_of(
               op->getUsers(),
               [&](Operation *user) { return positions.lookup(user) > end; });
  }

  void add(spmd::AllReduceOp op) {
    Bucket &bucket = buckets[keyOf(op)];
    int64_t bytes = bytesOf(op.getInput());
    if (bucket.bytes + bytes > limit) {
      merge(bucket);
      bucket = Bucket();
    }
    bucket.members.push_back(op);
    bucket.bytes += bytes;
  }

  static int64_t numberOf(Operation *op, StringRef name, int64_t otherwise) {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : otherwise;
  }

  /// Nodes, reasons and predictions of all members in one.
  static void describe(ArrayRef<spmd::AllReduceOp> members, Operation *merged) {
    Builder builder(merged->getContext());
    int64_t count = 0, bytes = 0;
    for (spmd::AllReduceOp op : members) {
      count += numberOf(op, spmd::names::predictedCount, 1);
      bytes += numberOf(op, spmd::names::predictedBytes, 0);
    }
    auto node = members[0]->getAttrOfType<StringAttr>(spmd::names::node);
    std::string more = " and " + std::to_string(members.size() - 1) + " more";
    merged->setAttr(
        spmd::names::node,
        builder.getStringAttr(
            (node ? node.getValue() : StringRef("gradients")) + more));
    merged->setAttr(spmd::names::reason,
                    builder.getStringAttr(
                        "sums of " + std::to_string(members.size()) +
                        " gradients over the same ranks, taken together"));
    merged->setAttr(spmd::names::predictedCount,
                    builder.getI64IntegerAttr(count));
    merged->setAttr(spmd::names::predictedBytes,
                    builder.getI64IntegerAttr(bytes));
  }

  void merge(const Bucket &bucket) {
    SmallVector<spmd::AllReduceOp> members(bucket.members);
    if (members.size() < 2)
      return;
    spmd::AllReduceOp last = members.back();
    OpBuilder builder(last);
    SmallVector<Location> locations;
    SmallVector<Value> flat;
    Type element = last.getType().getElementType();
    int64_t total = 0;
    for (spmd::AllReduceOp op : members) {
      int64_t size = op.getType().getNumElements();
      auto line = RankedTensorType::get({size}, element);
      Value input = op.getInput();
      if (input.getType() != line)
        input = ReshapeOp::create(builder, op.getLoc(), line, input);
      flat.push_back(input);
      locations.push_back(op.getLoc());
      total += size;
    }
    Location loc = builder.getFusedLoc(locations);
    auto type = RankedTensorType::get({total}, element);
    Value joined = ConcatOp::create(builder, loc, type, 0, flat);
    auto merged = spmd::AllReduceOp::create(
        builder, loc, type, joined, last.getAxes(), last.getMtpOpAttr(),
        last.getPhaseAttr(), last.getReductionAttr());
    describe(members, merged);
    int64_t start = 0;
    for (auto [op, input] : llvm::zip_equal(members, flat)) {
      Value part = StridedSliceOp::create(builder, op.getLoc(), input.getType(),
                                          merged.getResult(), 0, start, 1);
      start += cast<RankedTensorType>(input.getType()).getDimSize(0);
      if (part.getType() != op.getType())
        part = ReshapeOp::create(builder, op.getLoc(), op.getType(), part);
      op.getResult().replaceAllUsesWith(part);
    }
    for (spmd::AllReduceOp op : members)
      op.erase();
  }

  mlir::Block &block;
  int64_t limit;
  SmallVector<spmd::AllReduceOp> sums;
  llvm::MapVector<Key, Bucket> buckets;
  llvm::DenseMap<Operation *, int64_t> positions;
  llvm::DenseMap<Key, Operation *> last; ///< collective of its kind
};

struct SpmdBucketCollectives
    : mtp::impl::SpmdBucketCollectivesBase<SpmdBucketCollectives> {
  using SpmdBucketCollectivesBase::SpmdBucketCollectivesBase;

  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isDeclaration() && func.getBody().hasOneBlock())
        Bucketing(func.getBody().front(), limit).run();
  }
};
} // namespace
