// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Shuffle.h"

using namespace mlir;

namespace mtp::plan {

void shuffle(ModuleOp module, std::mt19937_64 &random) {
  Block &block = mainFunction(module).getBody().front();
  Operation *end = block.getTerminator();
  DenseMap<Operation *, size_t> missing; ///< operands that are not placed
  std::vector<Operation *> ready;
  for (Operation &op : block.without_terminator()) {
    size_t count = llvm::count_if(op.getOperands(),
                                  [](Value v) { return v.getDefiningOp(); });
    missing[&op] = count;
    if (!count)
      ready.push_back(&op);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    Operation *op = ready.back();
    ready.pop_back();
    op->moveBefore(end);
    for (OpOperand &use : op->getUses())
      if (use.getOwner() != end && --missing[use.getOwner()] == 0)
        ready.push_back(use.getOwner());
  }
}

void rename(ModuleOp module, std::mt19937_64 &random) {
  MLIRContext *context = module.getContext();
  llvm::StringMap<std::string> names;
  for (auto initializer : module.getOps<InitializerOp>()) {
    std::string name = "w" + std::to_string(random());
    names[initializer.getSymName()] = name;
    initializer.setSymName(name);
  }
  for (Operation &op : mainFunction(module).getBody().front()) {
    op.setLoc(
        NameLoc::get(StringAttr::get(context, "n" + std::to_string(random()))));
    if (auto parameter = dyn_cast<ParameterOp>(op))
      parameter.setSource(names[parameter.getSource()]);
  }
}

ChoicesByOp choicesByOp(ModuleOp module, const Plan &plan) {
  ChoicesByOp result;
  for (auto [op, planned] : llvm::zip_equal(
           mainFunction(module).getBody().front().without_terminator(),
           plan.ops))
    result[&op] = planned;
  return result;
}

std::string differingChoice(const ChoicesByOp &expected,
                            const ChoicesByOp &found) {
  for (auto &[op, planned] : found) {
    const PlannedOp &before = expected.at(op);
    if (planned.operands != before.operands ||
        planned.results != before.results || planned.copies != before.copies)
      return before.name;
  }
  return "";
}

} // namespace mtp::plan
