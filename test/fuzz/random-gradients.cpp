// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- random-gradients.cpp - gradients of random graphs under random plans
//===//
//
//   random-gradients OPS.mlir --mesh tp=2 ... [--from N] [--count N] [--ops N]
//                    [--seconds S] [--dump]
//
// Program N of random-programs gets a loss (the sum of its float results times
// fixed weights) and is differentiated with respect to every float input and
// parameter. On one rank the gradient is compared with a finite difference in a
// random direction (1e-5); planned with `random:N` on each mesh and run with
// NaN in all padding, with and without recomputation, with the one rank (1e-9).
// Prints `N passed, N failed`.
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Differentiate.h"
#include "compiler/autodiff/Recompute.h"
#include "compiler/plan/Plan.h"
#include "test/fuzz/GradientPrograms.h"
#include "test/fuzz/ProgramRunner.h"
#include "test/fuzz/RandomPrograms.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cmath>

using namespace mlir;
using namespace mtp;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::Required,
                                      cl::desc("OPS.mlir"));
static cl::list<std::string> meshTexts("mesh", cl::desc("a mesh, repeatable"));
static cl::opt<uint64_t> from("from", cl::init(1),
                              cl::desc("number of the first program"));
static cl::opt<uint64_t> count("count", cl::init(20), cl::desc("programs"));
static cl::opt<unsigned> ops("ops", cl::init(12),
                             cl::desc("functions a program is composed of"));
static cl::opt<unsigned>
    seconds("seconds", cl::init(0),
            cl::desc("go on with further programs so long"));
static cl::opt<bool> dump("dump", cl::desc("print the programs"));

static bool isFloat(Type type) {
  return isa<FloatType>(cast<RankedTensorType>(type).getElementType());
}

/// Replaces the results by a loss of the float ones, "loss", and its terms.
static void addLoss(func::FuncOp main) {
  Operation *terminator = main.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  Location loc = main.getLoc();
  auto type = [](ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  };
  fuzz::LossMaker losses(builder, loc, type);
  Value total;
  SmallVector<Value> parts;
  for (Value value : terminator->getOperands()) {
    if (!isFloat(value.getType()))
      continue;
    parts.push_back(losses.make(value));
    total = losses.add(total, parts.back());
  }
  if (!total)
    total = ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(type({}, builder.getF64Type()), 0.0));
  SmallVector<Value> results{total};
  results.append(parts);
  terminator->setOperands(results);
  main.setFunctionType(builder.getFunctionType(main.getArgumentTypes(),
                                               ValueRange(results).getTypes()));
  SmallVector<DictionaryAttr> attrs;
  for (unsigned index = 0; index < results.size(); ++index) {
    std::string name = index ? "part" + std::to_string(index) : "loss";
    attrs.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("mtp.name", builder.getStringAttr(name))}));
  }
  main.setAllResultAttrs(attrs);
}

/// Marks the loss and what is differentiated.
static void mark(func::FuncOp main) {
  OpBuilder builder(main.getContext());
  main.setResultAttr(0, autodiff::names::loss, builder.getUnitAttr());
  for (BlockArgument argument : main.getArguments())
    if (isFloat(argument.getType()))
      main.setArgAttr(argument.getArgNumber(), autodiff::names::wantsGradient,
                      builder.getUnitAttr());
  int64_t number = 0;
  for (auto parameter : main.getOps<ParameterOp>())
    parameter->setDiscardableAttr(autodiff::names::trainable,
                                  builder.getI64IntegerAttr(number++));
}

/// Plans, types and differentiates. The reason if it fails.
static std::string differentiate(ModuleOp module, const std::string &meshText,
                                 uint64_t number, bool recompute) {
  std::string text;
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          text += (text.empty() ? "" : "; ") + diagnostic.str();
      });
  std::vector<std::pair<std::string, int64_t>> axes;
  if (!plan::parseMesh(meshText, axes, text))
    return text;
  auto main = module.lookupSymbol<func::FuncOp>("main");
  mark(main);
  auto plan = plan::randomPlan(module, axes, number);
  if (mlir::failed(plan) || mlir::failed(plan::applyPlan(module, *plan)) ||
      mlir::failed(verify(module)))
    return "plan: " + text;
  if (mlir::failed(autodiff::differentiate(main)) ||
      mlir::failed(verify(module)))
    return "differentiate: " + text;
  if (recompute)
    autodiff::recomputeLayers(main);
  if (mlir::failed(verify(module)))
    return "recompute: " + text;
  for (unsigned index = 1; index < main.getNumResults(); ++index) {
    Attribute of = main.getResultAttr(index, autodiff::names::gradientOf);
    if (!of)
      continue;
    auto name = dyn_cast<StringAttr>(of);
    if (!name)
      name = StringAttr::get(
          main.getContext(),
          "weight" + std::to_string(cast<IntegerAttr>(of).getInt()));
    main.setResultAttr(index, "mtp.name", name);
  }
  return "";
}

/// Infinities as NaN: the terms of a partial sum may be infinite with both
/// signs where the sum is not.
static HostTensor numbersOnly(HostTensor tensor) {
  if (tensor.type == DType::F64)
    for (double &x : std::span(tensor.as<double>(), tensor.elements()))
      x = std::isfinite(x) ? x : NAN;
  return tensor;
}

namespace {
class ProgramCheck {
public:
  ProgramCheck(ModuleOp program, uint64_t number)
      : program(program), number(number) {
    auto main = program.lookupSymbol<func::FuncOp>("main");
    inputs = fuzz::randomInputs(main, 2, number);
    addLoss(main);
  }

  /// One rank, and a finite difference. False: nothing more to compare.
  bool whole() {
    std::string error = gradients("tp=1", false, false, reference);
    // What has no gradient is refused, with its name.
    if (StringRef(error).contains("has no gradient")) {
      if (dump)
        llvm::outs() << "program " << number << ": " << error << "\n";
      return false;
    }
    report(error, "whole");
    if (!error.empty())
      return false;
    report(finiteDifference(), "finite difference");
    return true;
  }

  void on(const std::string &mesh, bool recompute) {
    TensorMap have;
    std::string error = gradients(mesh, recompute, true, have), off;
    for (auto &[name, want] : reference)
      if (double distance = fuzz::difference(numbersOnly(have[name]),
                                             numbersOnly(want), floor());
          error.empty() && !(distance <= 1e-9))
        off += llvm::formatv("{0} off by {1:e2} ", name, distance).str();
    error += off;
    report(error, mesh + (recompute ? ", recomputed" : ""));
  }

  static inline int passed = 0, failed = 0;

private:
  void report(const std::string &error, const std::string &what) {
    (error.empty() ? passed : failed)++;
    if (!error.empty())
      llvm::outs() << "FAIL program " << number << ", " << what << ": " << error
                   << "\n";
  }

  std::string gradients(const std::string &mesh, bool recompute, bool poison,
                        TensorMap &outputs) {
    OwningOpRef<ModuleOp> module(program.clone());
    std::string error = differentiate(*module, mesh, number, recompute);
    if (dump)
      module->print(llvm::outs());
    fuzz::RunOptions options;
    options.mesh = mesh;
    options.poison = poison;
    return error.empty() ? fuzz::runProgram(*module, options, inputs, outputs)
                         : error;
  }

  double floor() const {
    double largest = 0;
    for (auto &[name, tensor] : reference)
      for (int64_t i = 0; i < tensor.elements(); ++i)
        if (std::isfinite(tensor.valueAt(i)))
          largest = std::max(largest, std::abs(tensor.valueAt(i)));
    return std::max(1e-6 * largest, 1e-300);
  }

  std::string finiteDifference() {
    std::string error;
    fuzz::CompiledProgram loss(program, {}, error);
    if (!error.empty())
      return error;
    std::mt19937_64 random(number);
    std::normal_distribution<double> normal;
    double want = 0, size = 0;
    TensorMap direction;
    for (auto &[name, gradient] : reference) {
      if (!inputs.count(name))
        continue;
      HostTensor along(DType::F64, gradient.shape);
      for (int64_t i = 0; i < along.elements(); ++i) {
        double slope = gradient.valueAt(i), step = normal(random);
        bool usable = std::abs(slope) < 1e4;
        along.as<double>()[i] = usable ? step : 0;
        want += usable ? step * slope : 0;
        size += usable ? std::abs(step * slope) : 0;
      }
      direction[name] = std::move(along);
    }
    double value[2], step = 1e-6;
    for (int side : {0, 1}) {
      TensorMap moved = inputs, outputs;
      for (auto &[name, along] : direction)
        for (int64_t i = 0; i < along.elements(); ++i)
          moved[name].as<double>()[i] +=
              (side ? -step : step) * along.valueAt(i);
      error = loss.run(moved, outputs);
      if (!error.empty())
        return error;
      value[side] = outputs.at("loss").valueAt(0);
    }
    double slope = (value[0] - value[1]) / (2 * step);
    // Rounding of the loss, and the step's error.
    double bound = 1e-5 * size + 1e-8 * std::abs(value[0]);
    return std::abs(slope - want) <= bound
               ? ""
               : llvm::formatv("{0} instead of {1}", want, slope).str();
  }

  ModuleOp program;
  uint64_t number;
  TensorMap inputs, reference;
};
} // namespace

/// True for what the comparisons would trip over. Writes by index that don't
/// add have a gradient only where no element is written twice, which random
/// indices do; rows of attention without any key have an infinite logarithm,
/// and infinity times a term of zero is no number; a stopped gradient is not
/// the function's; remainders jump.
static bool isLeftOut(Operation *op) {
  if (auto combine = op->getAttrOfType<CombineAttr>("combine"))
    return combine.getValue() != Combine::add;
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    Value mask = attention.getMask();
    return attention.getQueryStart() || (mask && !isFloat(mask.getType()));
  }
  return isa<StopGradientOp, ModOp, FmodOp>(op);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "differentiates random programs\n");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  auto seeds = fuzz::loadSeeds(inputFile, context, true);
  if (!seeds)
    return 1;
  for (auto seed : llvm::make_early_inc_range(seeds->getOps<func::FuncOp>()))
    if (fuzz::mainOp(seed) && isLeftOut(fuzz::mainOp(seed)))
      seed.erase();
  int refused = 0;
  auto start = std::chrono::steady_clock::now();
  auto goesOn = [&](uint64_t number) {
    return number < from + count || std::chrono::steady_clock::now() - start <
                                        std::chrono::seconds(seconds);
  };
  for (uint64_t number = from; goesOn(number); ++number) {
    auto program = fuzz::buildRandomProgram(*seeds, number, ops);
    ProgramCheck check(*program, number);
    if (!check.whole()) {
      ++refused;
      continue;
    }
    for (const std::string &mesh : meshTexts)
      check.on(mesh, false);
    if (!meshTexts.empty())
      check.on(meshTexts.front(), true);
  }
  llvm::outs() << refused << " programs without a gradient\n"
               << ProgramCheck::passed << " passed, " << ProgramCheck::failed
               << " failed\n";
  return ProgramCheck::failed != 0;
}
