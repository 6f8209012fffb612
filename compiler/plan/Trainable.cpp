// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Trainable.cpp - which stored tensors are parameters ----------------===//

#include "compiler/plan/Trainable.h"
#include "dialects/mtp/MtpDialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::plan;

static bool isFloat(Value value) {
  return isa<FloatType>(
      cast<RankedTensorType>(value.getType()).getElementType());
}

/// True if `value` is concat(-x[h:], x[:h]) of some x.
static Value rotatedOf(Value value) {
  auto concat = value.getDefiningOp<ConcatOp>();
  if (!concat || concat.getInputs().size() != 2)
    return {};
  auto neg = concat.getInputs()[0].getDefiningOp<NegOp>();
  auto high =
      neg ? neg.getInput().getDefiningOp<StridedSliceOp>() : StridedSliceOp();
  auto low = concat.getInputs()[1].getDefiningOp<StridedSliceOp>();
  return high && low && high.getInput() == low.getInput() ? low.getInput()
                                                          : Value();
}

/// True if the product `mul` is a half of a rotary embedding written out:
/// x · cos + rotate(x) · sin, and `table` is cos or sin in it.
static bool isRotaryTable(MulOp mul, Value table) {
  Value other = mul.getLhs() == table ? mul.getRhs() : mul.getLhs();
  if (rotatedOf(other))
    return true;
  return llvm::any_of(mul->getUsers(), [&](Operation *user) {
    auto add = dyn_cast<AddOp>(user);
    if (!add)
      return false;
    Value rest = add.getLhs() == mul.getResult() ? add.getRhs() : add.getLhs();
    auto product = rest.getDefiningOp<MulOp>();
    return product && (rotatedOf(product.getLhs()) == other ||
                       rotatedOf(product.getRhs()) == other);
  });
}

/// True if `value` is a stored tensor that was at most moved about.
static bool isStored(Value value, int depth = 6) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  return isa<ParameterOp>(op) ||
         (isa<TransposeOp, ReshapeOp, ConvertOp, StridedSliceOp>(op) &&
          isStored(op->getOperand(0), depth - 1));
}

/// True if a product of two activations is reached through elementwise steps.
static bool leadsToScores(Value value, int depth = 12) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (isa<MatMulOp>(op))
    return !isStored(op->getOperand(0)) && !isStored(op->getOperand(1));
  return isa<MulOp, DivOp, AddOp, SubOp, TanhOp, SelectOp, ConvertOp>(op) &&
         llvm::any_of(op->getOperands(),
                      [&](Value v) { return leadsToScores(v, depth - 1); });
}

/// True if `value` goes into a softmax through additions.
static bool feedsSoftmax(Value value, int depth = 6) {
  return depth > 0 && llvm::any_of(value.getUsers(), [&](Operation *user) {
           return isa<SoftmaxOp>(user) ||
                  (isa<AddOp, SelectOp, ConvertOp>(user) &&
                   feedsSoftmax(user->getResult(0), depth - 1));
         });
}

/// True if `value` is the angle of a rotary embedding: both its cosine and its
/// sine are taken, and positions alone decide it, which are integers.
static bool isRotaryAngle(Value value) {
  if (llvm::none_of(value.getUsers(), llvm::IsaPred<CosOp>) ||
      llvm::none_of(value.getUsers(), llvm::IsaPred<SinOp>))
    return false;
  llvm::DenseSet<Value> seen{value};
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op && isFloat(next))
      return false;
    if (!op)
      continue;
    for (Value operand : op->getOperands())
      if (seen.insert(operand).second)
        open.push_back(operand);
  }
  return true;
}

namespace {
/// Follows a value to the results.
class Tracer {
public:
  /// Empty if a result is reached; else why not, of the first way tried.
  std::string trace(Value value, bool indexed) {
    auto [known, isNew] =
        memo.try_emplace({value, unsigned(indexed)}, "no use");
    if (!isNew)
      return known->second;
    std::string reason = "no result depends on it";
    for (OpOperand &use : value.getUses()) {
      std::string way = follow(use, indexed);
      if (way.empty())
        return memo[{value, unsigned(indexed)}] = "";
      reason = way;
    }
    return memo[{value, unsigned(indexed)}] = reason;
  }

private:
  std::string follow(OpOperand &use, bool indexed) {
    Operation *user = use.getOwner();
    unsigned operand = use.getOperandNumber();
    if (isa<func::ReturnOp>(user))
      return "";
    std::string name = user->getName().stripDialect().str();
    if (isa<CompareOp, IsNanOp, IsInfOp, ArgMaxOp, ArgMinOp>(user) ||
        user->hasTrait<NoCotangentTrait>())
      return "reaches the result only through " + name;
    if (isa<SelectOp>(user) && operand == 0)
      return "reaches the result only as the condition of a select";
    if (isa<RoundOp, FloorOp, CeilOp, SignOp>(user))
      return "reaches the result only through " + name +
             ", which is constant piece by piece";
    if ((isa<CosOp, SinOp>(user) && isRotaryAngle(use.get())) ||
        (isa<RotaryOp>(user) && operand > 0))
      return "reaches the result only as a table of a rotary embedding (" +
             name + ")";
    if (auto mul = dyn_cast<MulOp>(user); mul && isRotaryTable(mul, use.get()))
      return "reaches the result only as a table of a rotary embedding (" +
             name + ")";
    if (!indexed && isScoreAddend(user, operand, use.get()))
      return "reaches the result only as an addend of attention scores (" +
             name + ")";
    bool nowIndexed =
        indexed ||
        (isa<GatherOp, GatherNdOp, GatherElementsOp>(user) && operand == 0);
    std::string reason =
        "reaches the result only through integers (" + name + ")";
    for (Value result : user->getResults()) {
      if (!isFloat(result))
        continue;
      reason = trace(result, nowIndexed);
      if (reason.empty())
        return "";
    }
    return reason;
  }

  static bool isScoreAddend(Operation *user, unsigned operand, Value value) {
    if (auto attention = dyn_cast<AttentionOp>(user))
      return attention.getMask() && operand == 3;
    auto add = dyn_cast<AddOp>(user);
    if (!add || !feedsSoftmax(add.getResult()))
      return false;
    Value other = add.getLhs() == value ? add.getRhs() : add.getLhs();
    return leadsToScores(other) && !leadsToScores(value);
  }

  llvm::DenseMap<std::pair<Value, unsigned>, std::string> memo;
};
} // namespace

llvm::StringMap<Trainability> plan::findTrainable(func::FuncOp function) {
  llvm::StringMap<Trainability> all;
  Tracer tracer;
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  for (auto parameter : function.getOps<ParameterOp>()) {
    auto initializer = symbols.lookup<InitializerOp>(parameter.getSource());
    Trainability &entry = all[parameter.getSource()];
    if (entry.trainable || !initializer)
      continue;
    auto type = cast<RankedTensorType>(initializer.getType());
    if (!isa<FloatType>(type.getElementType())) {
      entry.reason = "is not a float";
      continue;
    }
    if (type.getRank() == 0) {
      entry.reason = "is a scalar";
      continue;
    }
    entry.reason = tracer.trace(parameter.getResult(), false);
    entry.trainable = entry.reason.empty();
    if (entry.trainable)
      entry.reason = "reaches the result through differentiable operations";
  }
  return all;
}
