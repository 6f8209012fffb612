// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Roles.h"

#include <deque>

using namespace mlir;

namespace mtp::plan {
namespace {

uint8_t allRoles(const Pieces &pieces) {
  uint8_t roles = 0;
  for (const Piece &piece : pieces)
    roles |= piece.roles;
  return roles;
}

/// Deals the pieces of a dimension to its factors by size. Where the sizes do
/// not line up, every factor has all roles of the dimension.
std::vector<Pieces> deal(const Pieces &pieces, ArrayRef<int> factors,
                         const ShardingRule &rule) {
  std::vector<Pieces> result(factors.size());
  std::deque<Piece> left(pieces.begin(), pieces.end());
  for (auto [index, factor] : llvm::enumerate(factors)) {
    int64_t need = rule.factors[factor].size;
    while (need > 1 && !left.empty()) {
      Piece piece = left.front();
      left.pop_front();
      if (piece.size == 1)
        continue;
      if (piece.size > need && piece.size % need == 0) {
        left.push_front({piece.size / need, piece.roles});
        piece.size = need;
      }
      if (need % piece.size != 0) {
        for (auto [i, f] : llvm::enumerate(factors))
          result[i] = {{rule.factors[f].size, allRoles(pieces)}};
        return result;
      }
      need /= piece.size;
      result[index].push_back(piece);
    }
  }
  return result;
}

/// Joins what two tensors say of one factor; the finer division is kept.
void join(Pieces &known, const Pieces &more) {
  if (known.empty()) {
    known = more;
    return;
  }
  auto sameSizes = [&] {
    return llvm::equal(known, more, [](const Piece &a, const Piece &b) {
      return a.size == b.size;
    });
  };
  if (known.size() == more.size() && sameSizes()) {
    for (auto [piece, other] : llvm::zip_equal(known, more))
      piece.roles |= other.roles;
    return;
  }
  const Pieces &fine = known.size() >= more.size() ? known : more;
  uint8_t roles = allRoles(&fine == &known ? more : known);
  Pieces joined = fine;
  for (Piece &piece : joined)
    piece.roles |= roles;
  known = std::move(joined);
}

} // namespace

Roles::Roles(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    addInput(argument, function.getArgAttrOfType<ArrayAttr>(
                           argument.getArgNumber(), kDimNames));
  for (Operation &op : function.getBody().front())
    if (isa<ShardingOpInterface>(op))
      addResults(&op);
}

void Roles::addInput(BlockArgument argument, ArrayAttr dimNames) {
  auto type = cast<RankedTensorType>(argument.getType());
  bool isFloat = isa<FloatType>(type.getElementType());
  std::vector<Pieces> &mine = dims[argument];
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    bool dynamic = dimNames && dim < dimNames.size() &&
                   !cast<StringAttr>(dimNames[dim]).getValue().empty();
    uint8_t role = dim == 0 ? kBatch : !isFloat || dynamic ? kToken : 0;
    mine.push_back({{extent, role}});
  }
}

std::vector<Pieces> Roles::factorPieces(Operation *op,
                                        const ShardingRule &rule) const {
  std::vector<Pieces> factors(rule.factors.size());
  for (auto [operand, tensor] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    auto it = dims.find(operand);
    if (it == dims.end())
      continue;
    for (auto [pieces, dimFactors] : llvm::zip_equal(it->second, tensor)) {
      std::vector<Pieces> dealt = deal(pieces, dimFactors, rule);
      for (auto [factor, part] : llvm::zip_equal(dimFactors, dealt))
        join(factors[factor], part);
    }
  }
  return factors;
}

void Roles::addResults(Operation *op) {
  auto rule = cast<ShardingOpInterface>(op).getShardingRule();
  if (failed(rule))
    return;
  std::vector<Pieces> factors = factorPieces(op, *rule);
  for (auto [result, tensor] :
       llvm::zip_equal(op->getResults(), rule->results)) {
    std::vector<Pieces> mine;
    for (auto [dim, dimFactors] : llvm::enumerate(tensor)) {
      Pieces pieces;
      for (int factor : dimFactors) {
        if (!factors[factor].empty()) {
          pieces.append(factors[factor]);
          continue;
        }
        // Only the result has this factor: copies, if the op has operands. A
        // whole dimension that stands where operand 0 has a whole one is cut
        // from it.
        Piece piece{rule->factors[factor].size, 0};
        bool whole = rule->factors[factor].kind == FactorKind::Whole;
        if (op->getNumOperands() && !whole && piece.size > 1)
          piece.roles = kRepeat;
        if (op->getNumOperands() && whole &&
            rule->operands[0].size() == tensor.size())
          piece.roles = of(op->getOperand(0), dim);
        pieces.push_back(piece);
      }
      mine.push_back(std::move(pieces));
    }
    dims[result] = std::move(mine);
  }
}

SmallVector<uint8_t, 6> Roles::ofFactors(Operation *op,
                                         const ShardingRule &rule) const {
  SmallVector<uint8_t, 6> roles;
  for (const Pieces &pieces : factorPieces(op, rule))
    roles.push_back(allRoles(pieces));
  // What only results have.
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), rule.results))
    for (auto [dim, dimFactors] : llvm::enumerate(tensor))
      if (dimFactors.size() == 1)
        roles[dimFactors[0]] |= of(result, dim);
  return roles;
}

uint8_t Roles::of(Value value, int64_t dim) const {
  auto it = dims.find(value);
  return it == dims.end() || dim >= int64_t(it->second.size())
             ? 0
             : allRoles(it->second[dim]);
}

} // namespace mtp::plan
