// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- typed-programs.cpp - run every op in every case of its rule ---------===//
//
//   typed-programs OPS.mlir --mesh tp=2 --mesh tp=3 ... [--limit N] [--only NAME]
//
// Each typed program runs on n ranks with NaN and infinity in all padding and is
// compared with the whole program on one rank, in float64. Prints a table of ops
// and rows of the rule, and `N passed, N failed`. Exit 1 on any difference.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/CompilerApi.h"
#include "runtime/session/Session.h"
#include "test/fuzz/TypedPrograms.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

using namespace mlir;
using namespace mtp;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::Required, cl::desc("OPS.mlir"));
static cl::list<std::string> meshTexts("mesh", cl::desc("a mesh, repeatable"));
static cl::opt<unsigned> limit("limit", cl::init(64), cl::desc("most trials an op and mesh"));
static cl::opt<std::string> only("only", cl::desc("run this function only"));
static cl::opt<bool> dump("dump", cl::desc("print the typed programs"));

/// `dp=2,tp=3`.
static std::optional<MeshShape> parseMesh(StringRef text) {
  MeshShape mesh;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, size] = part.split('=');
    MeshShape::Axis axis;
    axis.parent = name.str();
    if (size.getAsInteger(10, axis.size))
      return std::nullopt;
    mesh.axes.push_back(axis);
  }
  return mesh;
}

static DType typeOf(Type element) {
  if (element.isF64())
    return DType::F64;
  if (element.isF32())
    return DType::F32;
  return element.isInteger(1) ? DType::Bool : DType::I64;
}

/// Values of mixed signs; integers that index every dimension of the seeds.
static HostTensor randomTensor(RankedTensorType type, bool isIndex, std::mt19937_64 &random) {
  HostTensor tensor(typeOf(type.getElementType()), std::vector<int64_t>(type.getShape()));
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    switch (tensor.type) {
    case DType::F64: tensor.as<double>()[i] = normal(random) * 2; break;
    case DType::F32: tensor.as<float>()[i] = float(normal(random) * 2); break;
    case DType::Bool: tensor.as<uint8_t>()[i] = random() & 1; break;
    default: tensor.as<int64_t>()[i] = int64_t(random() % (isIndex ? 10 : 41)) - (isIndex ? 5 : 20);
    }
  return tensor;
}

namespace {
/// Compiles a module and runs it.
class Runner {
public:
  bool run(ModuleOp module, const std::string &mesh, const TensorMap &inputs, TensorMap &outputs, bool poison) {
    SmallString<128> path;
    int descriptor;
    if (llvm::sys::fs::createTemporaryFile("typed", "mlir", descriptor, path))
      return fail("no temporary file");
    {
      llvm::raw_fd_ostream file(descriptor, true);
      module.print(file);
    }
    CompileRequest request;
    request.model = path.str().str();
    request.mesh = mesh;
    request.noCache = true;
    request.noRaise = true;
    CompileResult result;
    mtpCompile(&request, &result);
    llvm::sys::fs::remove(path);
    if (result.exitCode)
      return fail("compile: " + result.message);
    SessionOptions options;
    options.poison = poison;
    options.threadsPerRank = 1;
    options.collectiveTimeout = 20;
    Error error;
    auto session = Session::create(std::move(result.artifact), options, error);
    if (!session || !session->run(inputs, outputs, error))
      return fail("run: " + error.message);
    return true;
  }
  std::string message;

private:
  bool fail(const std::string &why) {
    message = why;
    return false;
  }
};

/// Largest difference over the largest value; NaN equals NaN, infinities by sign.
double difference(const HostTensor &have, const HostTensor &want) {
  if (have.shape != want.shape || have.type != want.type)
    return INFINITY;
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    double a = have.valueAt(i), b = want.valueAt(i);
    if (std::isfinite(b))
      largest = std::max(largest, std::abs(b));
    if (std::isnan(a) && std::isnan(b))
      continue;
    if (a == b)
      continue;
    if (!std::isfinite(a) || !std::isfinite(b))
      return INFINITY;
    worst = std::max(worst, std::abs(a - b));
  }
  return worst == 0 ? 0 : worst / std::max(largest, 1e-300);
}

struct Table {
  std::map<std::string, std::map<std::string, int>> cells; ///< op, row of the rule
  int passed = 0, failed = 0;

  void print() const {
    llvm::outs() << "\nop and row of its rule: programs run\n";
    for (auto &[op, rows] : cells) {
      llvm::outs() << "  " << op << ":";
      for (auto &[row, count] : rows)
        llvm::outs() << "  " << row << " " << count;
      llvm::outs() << "\n";
    }
  }
};
} // namespace

/// Float64 everywhere but where a conversion changes the width.
static std::string inDouble(std::string text) {
  for (size_t at = 0; (at = text.find("f32", at)) != std::string::npos; at += 3)
    text.replace(at, 3, "f64");
  return text;
}

static void runSeed(func::FuncOp seed, const MeshShape &mesh, const std::string &meshText, Table &table) {
  Operation *op = fuzz::mainOp(seed);
  std::string name = op->getName().getStringRef().str();
  std::vector<fuzz::Trial> trials = fuzz::enumerateTrials(op, mesh, limit);
  std::vector<int> made;
  auto typed = fuzz::buildTyped(seed, trials, mesh, made);
  if (dump)
    typed->print(llvm::outs());
  auto complain = [&](const std::string &what) {
    llvm::outs() << "FAIL " << seed.getName() << " on " << meshText << ": " << what << "\n";
    table.failed += std::max<int>(1, made.size());
  };
  if (failed(verify(*typed)))
    return complain("the typed program is refused");
  std::mt19937_64 random(7);
  TensorMap inputs;
  for (auto [index, argument] : llvm::enumerate(seed.getArguments())) {
    auto type = cast<RankedTensorType>(argument.getType());
    inputs["arg" + std::to_string(index)] = randomTensor(type, name.find("gather") != std::string::npos || name.find("scatter") != std::string::npos, random);
  }
  Runner runner;
  TensorMap want, have;
  auto reference = fuzz::buildReference(seed);
  if (!runner.run(*reference, "tp=1", inputs, want, false))
    return complain("reference: " + runner.message);
  if (!runner.run(*typed, meshText, inputs, have, true))
    return complain(runner.message);
  for (int number : made) {
    double worst = 0;
    for (auto &[key, tensor] : want)
      worst = std::max(worst, difference(have[std::to_string(number) + key.substr(key.find('.'))], tensor));
    bool ok = worst <= 1e-12;
    (ok ? table.passed : table.failed)++;
    if (!ok)
      llvm::outs() << "FAIL " << seed.getName() << " on " << meshText << ", " << trials[number].text << ": error "
                   << llvm::format("%.3g", worst) << "\n";
    for (const std::string &row : trials[number].rows)
      table.cells[name][row]++;
  }
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "runs every op in every case of its rule\n");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<MtpDialect, func::FuncDialect>();
  auto file = llvm::MemoryBuffer::getFile(inputFile);
  if (!file) {
    llvm::errs() << "cannot read " << inputFile << "\n";
    return 1;
  }
  auto seeds = parseSourceString<ModuleOp>(inDouble((*file)->getBuffer().str()), &context);
  if (!seeds)
    return 1;
  Table table;
  for (const std::string &text : meshTexts) {
    auto mesh = parseMesh(text);
    if (!mesh) {
      llvm::errs() << "not a mesh: " << text << "\n";
      return 2;
    }
    for (auto seed : seeds->getOps<func::FuncOp>())
      if (only.empty() || seed.getName() == only)
        runSeed(seed, *mesh, text, table);
  }
  table.print();
  llvm::outs() << table.passed << " passed, " << table.failed << " failed\n";
  return table.failed != 0;
}
