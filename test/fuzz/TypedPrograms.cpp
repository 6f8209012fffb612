// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TypedPrograms.cpp - every op in every case of its rule -------------===//

#include "test/fuzz/TypedPrograms.h"

#include "test/fuzz/LayoutMaker.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <numeric>
#include <random>
#include <set>

using namespace mlir;
using namespace mtp;
using namespace mtp::fuzz;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Operation *fuzz::mainOp(func::FuncOp seed) {
  Operation *terminator = seed.getBody().front().getTerminator();
  return terminator->getNumOperands()
             ? terminator->getOperand(0).getDefiningOp()
             : nullptr;
}

int64_t fuzz::indexRange(func::FuncOp seed) {
  int64_t range = std::numeric_limits<int64_t>::max();
  for (Value operand : mainOp(seed)->getOperands().take_front(1))
    for (int64_t extent : typeOf(operand).getShape())
      range = std::min(range, extent);
  return range;
}

OwningOpRef<ModuleOp> fuzz::loadSeeds(const std::string &path,
                                      MLIRContext &context,
                                      bool doublePrecision) {
  context.loadDialect<MtpDialect, func::FuncDialect>();
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file) {
    llvm::errs() << "cannot read " << path << "\n";
    return nullptr;
  }
  std::string text = (*file)->getBuffer().str();
  for (size_t at = 0;
       doublePrecision && (at = text.find("xf32", at)) != std::string::npos;
       at += 4)
    text.replace(at, 4, "xf64");
  return parseSourceString<ModuleOp>(text, &context);
}

std::optional<ShardingRule> fuzz::ruleOf(Operation *op) {
  auto rule = cast<ShardingOpInterface>(op).getShardingRule();
  return failed(rule) ? std::nullopt
                      : std::optional<ShardingRule>(std::move(*rule));
}

namespace {
/// Picks combinations of cases in a random order, those that bring a case not
/// seen on any axis first.
class TrialPicker {
public:
  TrialPicker(Operation *op, const ShardingRule &rule, const MeshShape &mesh)
      : op(op), rule(rule), mesh(mesh), cases(enumerateCases(rule)) {
    size_t total = 1;
    for (int axis = 0; axis < mesh.size(); ++axis)
      total *= cases.size();
    order.resize(total);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(11));
  }

  std::vector<Trial> pick(size_t limit) {
    std::vector<size_t> rest;
    for (size_t index : order)
      if (!bringsNewRow(index) || !add(index))
        rest.push_back(index);
    for (size_t index : rest)
      if (trials.size() < limit)
        add(index);
    return std::move(trials);
  }

private:
  SmallVector<AxisCase> decode(size_t index) const {
    SmallVector<AxisCase> chosen;
    for (int axis = 0; axis < mesh.size(); ++axis, index /= cases.size())
      chosen.push_back(cases[index % cases.size()]);
    return chosen;
  }

  bool bringsNewRow(size_t index) const {
    return llvm::any_of(decode(index),
                        [&](AxisCase c) { return !seen.count(c.text(rule)); });
  }

  bool add(size_t index) {
    SmallVector<AxisCase> chosen = decode(index);
    auto strategy = combine(op, rule, chosen, mesh);
    if (!strategy)
      return false;
    Trial trial;
    trial.strategy = std::move(*strategy);
    for (auto [axis, c] : llvm::enumerate(chosen)) {
      trial.rows.push_back(c.text(rule));
      trial.text += (axis ? ", " : "") + mesh.axes[axis].name() + ": " +
                    trial.rows.back();
      seen.insert(trial.rows.back());
    }
    trials.push_back(std::move(trial));
    return true;
  }

  Operation *op;
  const ShardingRule &rule;
  const MeshShape &mesh;
  SmallVector<AxisCase, 8> cases;
  std::vector<size_t> order;
  std::set<std::string> seen;
  std::vector<Trial> trials;
};
} // namespace

std::vector<Trial> fuzz::enumerateTrials(Operation *op, const MeshShape &mesh,
                                         size_t limit) {
  auto rule = ruleOf(op);
  return rule ? TrialPicker(op, *rule, mesh).pick(limit) : std::vector<Trial>();
}

OwningOpRef<ModuleOp> fuzz::buildReference(func::FuncOp seed) {
  Program program(seed);
  IRMapping mapping;
  mapping.map(seed.getArguments(), program.main.getArguments());
  Block &body = seed.getBody().front();
  for (Operation &op : body.without_terminator())
    program.builder.clone(op, mapping);
  for (auto [index, value] :
       llvm::enumerate(body.getTerminator()->getOperands()))
    program.add(mapping.lookup(value), "reference." + std::to_string(index));
  return program.finish();
}

/// An operand in its layout; null if it cannot be made.
static Value makeOperand(Program &program, LayoutMaker &maker, Value operand,
                         const Layout &layout) {
  if (auto argument = dyn_cast<BlockArgument>(operand))
    return maker.make(program.main.getArgument(argument.getArgNumber()),
                      layout);
  // A source takes any state but partial.
  bool partial = llvm::any_of(
      layout.states, [](AxisState state) { return isPartial(state.kind); });
  auto plain = typeOf(operand);
  Operation *source = program.builder.clone(*operand.getDefiningOp());
  Layout whole(layout.states.size(), plain.getRank());
  source->getResult(0).setType(maker.type(
      plain.getShape(), plain.getElementType(), partial ? whole : layout));
  return partial ? maker.make(source->getResult(0), layout)
                 : source->getResult(0);
}

/// Runs one trial; false if an operand cannot be made.
static bool addTrial(Program &program, LayoutMaker &maker, func::FuncOp seed,
                     const Trial &trial, int number) {
  Operation *op = mainOp(seed);
  SmallVector<Value> operands;
  for (auto [operand, layout] :
       llvm::zip_equal(op->getOperands(), trial.strategy.operands)) {
    operands.push_back(makeOperand(program, maker, operand, layout));
    if (!operands.back())
      return false;
  }
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (auto [result, layout] :
       llvm::zip_equal(op->getResults(), trial.strategy.results))
    state.addTypes(maker.type(typeOf(result).getShape(),
                              typeOf(result).getElementType(), layout));
  Operation *typed = program.builder.create(state);
  for (auto [index, value] :
       llvm::enumerate(seed.getBody().front().getTerminator()->getOperands())) {
    unsigned result = cast<OpResult>(value).getResultNumber();
    program.add(
        maker.finish(typed->getResult(result), trial.strategy.results[result]),
        std::to_string(number) + "." + std::to_string(index));
  }
  return true;
}

OwningOpRef<ModuleOp> fuzz::buildTyped(func::FuncOp seed,
                                       ArrayRef<Trial> trials,
                                       const MeshShape &mesh,
                                       std::vector<std::string> &notMade) {
  Program program(seed, &mesh);
  LayoutMaker maker(program.builder, seed.getLoc(), mesh);
  for (auto [number, trial] : llvm::enumerate(trials)) {
    Block &body = program.main.getBody().front();
    Operation *before = body.empty() ? nullptr : &body.back();
    bool made = addTrial(program, maker, seed, trial, number);
    notMade.push_back(made ? "" : maker.reason);
    if (made)
      continue;
    while (!body.empty() &&
           &body.back() != before) // take back what was built for it
      body.back().erase();
    program.builder.setInsertionPointToEnd(&body);
  }
  return program.finish();
}
