// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- gradient-programs.cpp - the gradient of every op in every case -----===//
//
//   gradient-programs OPS.mlir --mesh tp=2 ... [--limit N] [--only NAME]
//                     [--types] [--dump]
//
// For each differentiable op: the gradients on one rank against central finite
// differences in float64 (1e-6 of the largest entry), then the gradients of
// every case of its rule on n ranks, with NaN in all padding, against those on
// one rank (1e-12). With --types programs are differentiated and verified only.
// Prints `N passed, N failed`; exit 1 on any failure.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/ConversionPrograms.h"
#include "test/fuzz/GradientPrograms.h"
#include "test/fuzz/ProgramRunner.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace mtp;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::Required,
                                      cl::desc("OPS.mlir"));
static cl::list<std::string> meshTexts("mesh", cl::desc("a mesh, repeatable"));
static cl::opt<unsigned>
    limit("limit", cl::init(64),
          cl::desc("trials an op and mesh, if cases are covered"));
static cl::opt<std::string> only("only", cl::desc("run this function only"));
static cl::opt<bool> types("types", cl::desc("verify, run nothing"));
static cl::opt<bool> dump("dump", cl::desc("print the programs"));

/// Why the gradient of a function is refused, "" if it has one.
static StringRef refusalOf(func::FuncOp seed) {
  StringRef name = seed.getName();
  if (!isa<DifferentiableOpInterface>(fuzz::mainOp(seed)))
    return "has no gradient, but the loss depends on parameters through it";
  if (name.contains("scatter") &&
      (name.ends_with("mul") || name.ends_with("max")))
    return "no gradient where it combines by";
  return "";
}

namespace {
int good = 0, bad = 0;

void report(bool ok, const Twine &what) {
  (ok ? good : bad)++;
  if (!ok)
    llvm::outs() << "FAIL " << what << "\n";
}

/// Values away from where functions break off: no float is near zero, those of
/// roots, logarithms and powers are positive, indices of a write are distinct.
TensorMap smoothInputs(func::FuncOp seed) {
  StringRef name = seed.getName(),
            op = fuzz::mainOp(seed)
                     ? fuzz::mainOp(seed)->getName().stripDialect()
                     : "";
  bool isIndex = op.contains("gather") || op.contains("scatter");
  TensorMap inputs =
      fuzz::randomInputs(seed, isIndex ? fuzz::indexRange(seed) : 0, 7);
  bool positive = name.contains("sqrt") || name.starts_with("log") ||
                  name.starts_with("pow");
  int64_t rows = 1;
  if (op.contains("scatter")) {
    auto dim = fuzz::mainOp(seed)->getAttrOfType<IntegerAttr>("dim");
    rows = cast<RankedTensorType>(seed.getArgumentTypes()[0])
               .getDimSize(dim ? dim.getInt() : 0);
  }
  for (auto &[key, tensor] : inputs) {
    if (tensor.type == DType::F64)
      for (double &x : std::span(tensor.as<double>(), tensor.elements())) {
        x += std::copysign(0.3, x);
        x = positive ? std::abs(x) : x;
      }
    // Where queries start: the first row sees no key, the last one several.
    if (tensor.type == DType::I64 && tensor.shape.empty())
      tensor.as<int64_t>()[0] = -1;
    if (tensor.type != DType::I64 || !op.contains("scatter"))
      continue;
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      int64_t sum = 2, range = rows, rest = i;
      for (size_t dim = tensor.shape.size(); dim-- > 0;) {
        sum += rest % tensor.shape[dim];
        rest /= tensor.shape[dim];
      }
      tensor.as<int64_t>()[i] = sum % range - (sum % 2 ? range : 0);
    }
  }
  return inputs;
}

class Checker {
public:
  explicit Checker(func::FuncOp seed)
      : seed(seed), inputs(smoothInputs(seed)) {}

  void whole() {
    MeshShape one = *fuzz::parseMesh("tp=1");
    std::vector<fuzz::Trial> trials =
        fuzz::enumerateTrials(fuzz::mainOp(seed), one, 64);
    llvm::erase_if(trials, [](const fuzz::Trial &trial) {
      return trial.rows[0] != "invariant";
    });
    auto program = fuzz::buildGradients(seed, trials, one);
    std::string name = seed.getName().str();
    if (StringRef refusal = refusalOf(seed); !refusal.empty()) {
      report(StringRef(program.error).contains(refusal),
             name + " should be refused: " + refusal);
      return;
    }
    differentiable = program.error.empty();
    if (!differentiable)
      return report(false, name + ", whole: " + program.error);
    if (dump)
      program.module->print(llvm::outs());
    if (types)
      return report(true, "");
    fuzz::RunOptions options;
    options.mesh = "tp=1";
    std::string error =
        fuzz::runProgram(*program.module, options, inputs, reference);
    differentiable = error.empty();
    if (!differentiable)
      return report(false, name + ", whole: " + error);
    finiteDifferences();
  }

  void on(const MeshShape &mesh, const std::string &text) {
    if (!differentiable)
      return;
    std::string name = seed.getName().str() + " on " + text;
    auto trials = fuzz::enumerateTrials(fuzz::mainOp(seed), mesh, limit);
    if (types) // one by one, so that a message belongs to a case
      return typesOnly(trials, mesh, name);
    auto program = fuzz::buildGradients(seed, trials, mesh);
    if (!program.error.empty())
      return report(false, name + ": " + program.error);
    if (dump)
      program.module->print(llvm::outs());
    fuzz::RunOptions options;
    options.mesh = fuzz::plainMesh(mesh);
    options.poison = true;
    TensorMap have;
    std::string error =
        fuzz::runProgram(*program.module, options, inputs, have);
    if (!error.empty())
      return report(false, name + ": " + error);
    for (auto [number, trial] : llvm::enumerate(trials))
      if (program.notMade[number].empty())
        compare(name + ", " + trial.text, std::to_string(number), have);
  }

private:
  /// A gradient that is zero up to rounding is compared with the others' size.
  double floor() const {
    double largest = 0;
    for (auto &[key, tensor] : reference)
      for (int64_t i = 0; key != "loss" && i < tensor.elements(); ++i)
        largest = std::max(largest, std::abs(tensor.valueAt(i)));
    return std::max(1e-3 * largest, 1e-300);
  }

  void typesOnly(ArrayRef<fuzz::Trial> trials, const MeshShape &mesh,
                 const std::string &name) {
    for (const fuzz::Trial &trial : trials) {
      auto program = fuzz::buildGradients(seed, trial, mesh);
      if (program.notMade[0].empty())
        report(program.error.empty(),
               name + ", " + trial.text + ": " + program.error);
    }
  }

  void compare(const std::string &what, const std::string &number,
               TensorMap &have) {
    double worst = 0;
    std::string which;
    for (auto &[key, want] : reference) {
      if (!StringRef(key).starts_with("0."))
        continue;
      double error =
          fuzz::difference(have[number + key.substr(1)], want, floor());
      if (!(error <= worst)) {
        worst = error;
        which = key.substr(2);
      }
    }
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.3g", worst);
    report(worst <= 1e-12,
           what + ": gradient of argument " + which + ", error " + text);
  }

  /// Every entry of every gradient against (f(x + h) - f(x - h)) / 2h.
  void finiteDifferences() {
    fuzz::RunOptions options;
    std::string error, name = seed.getName().str();
    fuzz::CompiledProgram loss(*fuzz::buildLoss(seed), options, error);
    for (auto &[key, want] : reference) {
      if (!error.empty() || !StringRef(key).starts_with("0."))
        continue;
      HostTensor &input = inputs.at("arg" + key.substr(2));
      HostTensor slope(DType::F64, input.shape);
      for (int64_t i = 0; i < input.elements() && error.empty(); ++i) {
        double &x = input.as<double>()[i], at = x, step = 1e-5;
        double value[2];
        for (int side : {0, 1}) {
          x = at + (side ? -step : step);
          TensorMap outputs;
          error = loss.run(inputs, outputs);
          if (error.empty())
            value[side] = outputs.at("loss").valueAt(0);
        }
        x = at;
        slope.as<double>()[i] = (value[0] - value[1]) / (2 * step);
      }
      double off = fuzz::difference(want, slope, floor());
      std::string text;
      llvm::raw_string_ostream(text) << llvm::format("%.3g", off);
      report(off <= 1e-6, name + ": gradient of argument " + key.substr(2) +
                              " differs from finite differences by " + text);
    }
    if (!error.empty())
      report(false, name + ", loss: " + error);
  }

  func::FuncOp seed;
  TensorMap inputs, reference;
  bool differentiable = false;
};
} // namespace

/// The conjugate of every conversion: whatever the way, the value is the same
/// again, and its gradient are the weights of the loss.
static void checkConversions(func::FuncOp values, const MeshShape &mesh,
                             const std::string &text) {
  std::vector<fuzz::ConversionTrial> trials;
  auto program = fuzz::buildConversionGradients(values, mesh, trials);
  if (!program.error.empty())
    return report(false, "conversions on " + text + ": " + program.error);
  if (dump)
    program.module->print(llvm::outs());
  if (types)
    return report(true, "");
  fuzz::RunOptions options;
  options.mesh = fuzz::plainMesh(mesh);
  options.poison = true;
  TensorMap have, inputs = fuzz::randomInputs(values, 0, 7);
  std::string error = fuzz::runProgram(*program.module, options, inputs, have);
  if (!error.empty())
    return report(false, "conversions on " + text + ": " + error);
  for (auto [number, trial] : llvm::enumerate(trials)) {
    HostTensor weights = inputs.at("arg" + std::to_string(trial.argument));
    for (int64_t i = 0; i < weights.elements(); ++i)
      weights.as<double>()[i] = std::sin(0.7 * i + 0.3);
    double off = fuzz::difference(have[std::to_string(number) + ".0"], weights);
    report(off <= 1e-12, trial.text + " on " + text + ": its conjugate");
  }
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "checks the gradient of every op\n");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  auto seeds = fuzz::loadSeeds(inputFile, context, true);
  if (!seeds)
    return 1;
  for (auto seed : seeds->getOps<func::FuncOp>()) {
    bool conversions = !fuzz::mainOp(seed);
    if ((!only.empty() && seed.getName() != only) ||
        (!conversions && !fuzz::hasGradient(seed)))
      continue;
    Checker checker(seed);
    if (!conversions)
      checker.whole();
    for (const std::string &text : meshTexts) {
      auto mesh = fuzz::parseMesh(text);
      if (!mesh) {
        llvm::errs() << "not a mesh: " << text << "\n";
        return 2;
      }
      conversions ? checkConversions(seed, *mesh, text)
                  : checker.on(*mesh, text);
    }
  }
  llvm::outs() << good << " passed, " << bad << " failed\n";
  return bad != 0;
}
