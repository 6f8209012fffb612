// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/Epilogues.h"
#include "compiler/codegen/BufferPlan.h"

using namespace mlir;
using namespace mtp;

int64_t mtp::epilogueSize(Operation *op) {
  auto size = op->getAttrOfType<IntegerAttr>(kEpilogue);
  return size ? size.getInt() : 0;
}

namespace {

/// Rows of the pre-activation are read and written 16 bytes at a time.
constexpr int64_t kRowGranule = 8;

/// The op of a kernel that is one op on the kernel's operands, in their order.
template <typename Op> Op onlyOp(Operation *kernel) {
  auto fused = dyn_cast_or_null<spmd::FusedOp>(kernel);
  if (!fused || fused.getOutputs().size() != 1)
    return {};
  mlir::Block &body = fused.getBody().front();
  auto op = dyn_cast<Op>(body.front());
  if (!op || op->getNextNode() != body.getTerminator() ||
      op->getOperands() != ValueRange(body.getArguments()))
    return {};
  return op;
}

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// A product that cuBLASLt gives an epilogue: one matrix by another.
bool isPlainProduct(Operation *op) {
  if (auto product = dyn_cast<spmd::MatmulOp>(op))
    if (product.getActivation() != spmd::Activation::none)
      return false;
  if (!isa<MatMulOp, spmd::MatmulOp>(op) ||
      typeOf(op->getOperand(1)).getRank() != 2)
    return false;
  Type element = typeOf(op->getResult(0)).getElementType();
  return (element.isF32() || element.isF16() || element.isBF16()) &&
         typeOf(op->getOperand(0)).getElementType() == element &&
         typeOf(op->getResult(0)).getNumElements() > 0 &&
         typeOf(op->getOperand(0)).getNumElements() > 0;
}

bool hasBias(Operation *product) {
  auto matmul = dyn_cast<spmd::MatmulOp>(product);
  return matmul && matmul.getBias();
}

bool isGelu(Operation *kernel, Operation *product) {
  auto gelu = onlyOp<GeluOp>(kernel);
  return gelu && gelu.getTanh() &&
         kernel->getOperand(0) == product->getResult(0) &&
         typeOf(kernel->getResult(0)) == typeOf(product->getResult(0)) &&
         typeOf(product->getResult(0)).getShape().back() % kRowGranule == 0;
}

bool isGeluGradient(Operation *kernel, Operation *product) {
  auto gradient = onlyOp<GeluGradientOp>(kernel);
  Value result = product->getResult(0);
  return gradient && gradient.getTanh() && !hasBias(product) &&
         kernel->getOperand(1) == result && kernel->getOperand(0) != result &&
         result.hasOneUse() &&
         typeOf(kernel->getOperand(0)) == typeOf(result) &&
         typeOf(kernel->getResult(0)) == typeOf(result) &&
         typeOf(result).getShape().back() % kRowGranule == 0;
}

/// The value that is summed over all dimensions but the last; null if none is.
Value rowsSummedBy(Operation *kernel) {
  auto sum = onlyOp<ReduceSumOp>(kernel);
  if (!sum)
    return {};
  RankedTensorType from = typeOf(sum.getInput()), to = sum.getType();
  SmallVector<int64_t> leading;
  for (int64_t dim = 0; dim + 1 < from.getRank(); ++dim)
    leading.push_back(dim);
  bool fits = to.getRank() == 1 && from.getRank() > 1 &&
              ArrayRef<int64_t>(leading) == sum.getDims() &&
              to.getElementType() == from.getElementType();
  return fits ? kernel->getOperand(0) : Value();
}

Value rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    Value aliased = aliasedOperand(op);
    if (!aliased)
      break;
    value = aliased;
  }
  return value;
}

/// The operand (0 or 1) of `product` that is `summed`, with its rows
/// contracted: their sum is a bias gradient. -1 if there is none.
int summedOperand(Operation *product, Value summed) {
  bool transposes[] = {product->hasAttr("transpose_lhs"),
                       !product->hasAttr("transpose_rhs")};
  for (int side : {1, 0})
    if (typeOf(product->getOperand(0)).getRank() == 2 && transposes[side] &&
        rootOf(product->getOperand(side)) == rootOf(summed) &&
        typeOf(product->getOperand(side)).getShape().back() ==
            typeOf(summed).getShape().back())
      return side;
  return -1;
}

/// The first kernel behind `after` that reads `value` and fits.
Operation *readerOf(Value value, Operation *after,
                    llvm::function_ref<bool(Operation *)> fits) {
  Operation *first = nullptr;
  for (Operation *user : value.getUsers())
    if (user->getBlock() == after->getBlock() && after->isBeforeInBlock(user) &&
        fits(user) && (!first || user->isBeforeInBlock(first)))
      first = user;
  return first;
}

/// `value` and all that are the same bytes under another shape.
SmallVector<Value> aliasesOf(Value value) {
  SmallVector<Value> aliases{rootOf(value)};
  for (size_t i = 0; i < aliases.size(); ++i)
    for (Operation *user : aliases[i].getUsers())
      if (aliasedOperand(user))
        aliases.push_back(user->getResult(0));
  return aliases;
}

/// True if both stand in one block with no collective between them.
bool inOneStretch(Operation *a, Operation *b) {
  if (a->getBlock() != b->getBlock())
    return false;
  Operation *first = a->isBeforeInBlock(b) ? a : b, *last = first == a ? b : a;
  for (; first != last; first = first->getNextNode())
    if (isa<spmd::CollectiveOpInterface>(first))
      return false;
  return true;
}

/// The kernel that sums the rows of operand `side` of `product`, if it can
/// stand behind the product, or the product before it.
Operation *operandSum(Operation *product, int side) {
  for (Value alias : aliasesOf(product->getOperand(side)))
    for (Operation *user : alias.getUsers()) {
      Value summed = rowsSummedBy(user);
      if (!summed || summedOperand(product, summed) != side ||
          !inOneStretch(user, product))
        continue;
      if (product->isBeforeInBlock(user) ||
          llvm::all_of(product->getOperands(), [&](Value operand) {
            Operation *def = rootOf(operand).getDefiningOp();
            return !def || def->isBeforeInBlock(user);
          }))
        return user;
    }
  return nullptr;
}

/// True if what `op` reads stands before `product`, but for `among`.
bool isReadyAt(Operation *op, Operation *product, ArrayRef<Operation *> among) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    Operation *def = operand.getDefiningOp();
    return !def || def == product || llvm::is_contained(among, def) ||
           def->isBeforeInBlock(product);
  });
}

} // namespace

SmallVector<Operation *> mtp::findEpilogue(Operation *product) {
  SmallVector<Operation *> found;
  if (!isPlainProduct(product))
    return found;
  auto add = [&](Operation *op) {
    if (op && isReadyAt(op, product, found))
      found.push_back(op);
  };
  Value result = product->getResult(0);
  auto sums = [](Operation *user) { return bool(rowsSummedBy(user)); };
  add(readerOf(result, product,
               [&](Operation *user) { return isGelu(user, product); }));
  if (!found.empty())
    return found;
  add(readerOf(result, product,
               [&](Operation *user) { return isGeluGradient(user, product); }));
  if (!found.empty()) {
    add(readerOf(found[0]->getResult(0), found[0], sums));
    return found;
  }
  if (hasBias(product))
    return found;
  for (int side : {1, 0})
    if (Operation *sum = operandSum(product, side); sum && found.empty())
      add(sum);
  return found;
}

void mtp::gatherEpilogue(Operation *product, ArrayRef<Operation *> epilogue) {
  Operation *first = epilogue.front();
  if (first->isBeforeInBlock(product)) {
    for (Value operand : product->getOperands()) {
      SmallVector<Operation *> shapes;
      for (Operation *op = operand.getDefiningOp();
           op && aliasedOperand(op) && first->isBeforeInBlock(op);
           op = aliasedOperand(op).getDefiningOp())
        shapes.push_back(op);
      for (Operation *op : llvm::reverse(shapes))
        op->moveBefore(first);
    }
    product->moveBefore(first);
  }
  Operation *last = product;
  for (Operation *op : epilogue) {
    op->moveAfter(last);
    last = op;
  }
  product->setAttr(
      kEpilogue,
      Builder(product->getContext()).getI64IntegerAttr(epilogue.size()));
}

FailureOr<LibraryCall> mtp::callWithEpilogue(Operation *product) {
  FailureOr<LibraryCall> call = libraryCallOf(product);
  if (failed(call))
    return failure();
  nlohmann::json &attributes = call->attributes;
  Operation *op = product;
  for (int64_t i = 0, size = epilogueSize(product); i < size; ++i) {
    op = op->getNextNode();
    Value result = op->getResult(0);
    if (onlyOp<GeluOp>(op)) {
      bool isRead = !product->getResult(0).hasOneUse();
      attributes["activation"] = "gelu_tanh";
      call->results = {result};
      if (isRead) {
        attributes["aux"] = true;
        call->results.push_back(product->getResult(0));
      }
    } else if (onlyOp<GeluGradientOp>(op)) {
      attributes["activation"] = "gelu_tanh_gradient";
      call->inputs.push_back(op->getOperand(0));
      call->results = {result};
    } else {
      int side = i > 0 ? -1 : summedOperand(product, op->getOperand(0));
      attributes["biasGradient"] = side < 0 ? "result" : side ? "b" : "a";
      call->results.push_back(result);
    }
  }
  return call;
}
