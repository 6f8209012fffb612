// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/program/ProgramRunner.h"
#include "compiler/codegen/ProgramEmitter.h"
#include "passes/Passes.h"
#include "runtime/session/Session.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

using namespace mlir;
using namespace mtp;
using namespace mtp::test;

std::vector<TypedProgram> mtp::test::readPrograms(const std::string &path) {
  std::ifstream file(path);
  std::stringstream all;
  all << file.rdbuf();
  std::string text = all.str();
  std::vector<TypedProgram> programs;
  StringRef rest = text;
  while (!rest.empty()) {
    auto [part, more] = rest.split("// -----");
    StringRef name = part.split("\nfunc.func @").second.take_until([](char c) {
      return c == '(';
    });
    programs.push_back({name.str(), part.str()});
    rest = more;
  }
  return programs;
}

/// In [-1, 1).
static double randomValue(std::mt19937_64 &random) {
  return static_cast<double>(random() >> 11) * 0x1p-52 - 1;
}

/// Weights in files become weights in the module.
static void embedWeights(ModuleOp module) {
  for (auto initializer : module.getOps<InitializerOp>()) {
    auto type = cast<RankedTensorType>(initializer.getType());
    if (initializer.getValue() || !isa<FloatType>(type.getElementType()))
      continue;
    std::mt19937_64 random = std::mt19937_64(initializer.getSymName().size());
    SmallVector<Attribute> values;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      values.push_back(
          FloatAttr::get(type.getElementType(), randomValue(random)));
    initializer.setValueAttr(DenseElementsAttr::get(type, values));
    initializer.removeFileAttr();
    initializer.removeOffsetAttr();
    initializer.removeBytesAttr();
  }
}

/// One rank an axis. Units make no difference there and must not be written.
static void makeWhole(ModuleOp module) {
  for (auto mesh : module.getOps<MeshOp>()) {
    SmallVector<Attribute> factors;
    for (Attribute sizes : mesh.getAxisFactors())
      factors.push_back(DenseI64ArrayAttr::get(
          module.getContext(),
          SmallVector<int64_t>(cast<DenseI64ArrayAttr>(sizes).size(), 1)));
    mesh.setAxisFactorsAttr(ArrayAttr::get(module.getContext(), factors));
  }
  AttrTypeReplacer replacer;
  replacer.addReplacement([](LayoutAttr layout) -> Attribute {
    SmallVector<LayoutEntry> entries(layout.getEntries());
    for (LayoutEntry &entry : entries)
      entry.unit = 1;
    return LayoutAttr::get(layout.getContext(), layout.getMesh(), entries);
  });
  replacer.recursivelyReplaceElementsIn(module, true, false, true);
}

static TensorMap inputsOf(const Entry &entry) {
  TensorMap inputs;
  for (const Input &input : entry.inputs) {
    HostTensor tensor(input.layout.type, input.layout.shape);
    std::mt19937_64 random(input.name.size() * 31 +
                           static_cast<unsigned char>(input.name.back()));
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      double value = randomValue(random);
      int64_t integer = static_cast<int64_t>((value + 1) * 2.5);
      switch (input.layout.type) {
      case DType::F64:
        tensor.as<double>()[i] = value;
        break;
      case DType::F32:
        tensor.as<float>()[i] = static_cast<float>(value);
        break;
      case DType::I64:
        tensor.as<int64_t>()[i] = integer;
        break;
      case DType::I32:
        tensor.as<int32_t>()[i] = static_cast<int32_t>(integer);
        break;
      case DType::Bool:
        tensor.as<uint8_t>()[i] = integer % 2;
        break;
      default:
        break;
      }
    }
    inputs.emplace(input.name, std::move(tensor));
  }
  return inputs;
}

static bool lower(ModuleOp module, Form form) {
  PassManager passes(module.getContext());
  passes.addPass(createMtpPartition());
  if (form != Form::Single) {
    passes.addPass(createSpmdFoldEpilogues());
    passes.addPass(createSpmdFuse());
    passes.addPass(createSpmdBucketCollectives());
  }
  if (form == Form::Overlapped) {
    SpmdChunkProductsOptions chunks;
    chunks.parts = 2;
    passes.addPass(createSpmdChunkProducts(chunks));
    passes.addPass(createSpmdOverlapCollectives());
  }
  passes.addPass(createSpmdVerify());
  return succeeded(passes.run(module));
}

RunResult mtp::test::runProgram(MLIRContext *context,
                                const TypedProgram &program, bool whole,
                                Form form, int steps) {
  RunResult result;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    result.error += diagnostic.str() + "\n";
  });
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(program.text, ParserConfig(context, false));
  if (!module)
    return result;
  if (!module->lookupSymbol("main"))
    for (auto func : module->getOps<func::FuncOp>())
      func.setName("main");
  embedWeights(*module);
  if (whole)
    makeWhole(*module);
  KernelModule kernels(context);
  Artifact artifact;
  artifact.precision = "f64";
  if (!lower(*module, form) || failed(emitProgram(*module, kernels, artifact)))
    return result;
  auto object = kernels.emitObject({}, result.error);
  if (failed(object))
    return result;
  artifact.object = object->bytes;
  artifact.cpuFeatures = object->cpuFeatures;
  if (!artifact.verify(result.error))
    return result;
  result.kernelLaunches =
      llvm::count_if(artifact.entries[0].program, [](const Instruction &step) {
        return step.kind == Instruction::Kind::Kernel;
      });
  int64_t underWay = 0;
  for (const Instruction &step : artifact.entries[0].program) {
    underWay += step.kind == Instruction::Kind::Start;
    underWay -= step.kind == Instruction::Kind::Done;
    result.meanwhile +=
        underWay > 0 && (step.kind == Instruction::Kind::Kernel ||
                         step.kind == Instruction::Kind::Library);
  }
  SessionOptions options;
  options.poison = true;
  options.collectiveTimeout = 20;
  options.threadsPerRank = 1;
  Error error;
  auto session = Session::create(std::move(artifact), options, error);
  if (!session) {
    result.error = error.message;
    return result;
  }
  for (int step = 0; step < steps; ++step)
    for (const Entry &entry : session->artifact().entries) {
      TensorMap outputs;
      if (!session->run(entry.name, inputsOf(entry), outputs, error)) {
        result.error = error.message;
        return result;
      }
      for (auto &[name, tensor] : outputs)
        result.outputs[name] = std::move(tensor);
    }
  if (!session->readParameters(result.parameters, error) ||
      !session->readStates(result.states, error))
    result.error = error.message;
  result.arenaBytes = session->arenaBytesPerRank();
  result.collectives = session->counters();
  return result;
}

double mtp::test::distance(const HostTensor &a, const HostTensor &b) {
  if (a.shape != b.shape)
    return INFINITY;
  double most = 0, difference = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    double x = a.valueAt(i), y = b.valueAt(i);
    if (std::isnan(x) != std::isnan(y))
      return INFINITY;
    if (std::isnan(x) || x == y)
      continue;
    most = std::max(most, std::abs(y));
    difference = std::max(difference, std::abs(x - y));
  }
  return difference == 0 ? 0 : difference / std::max(most, 1e-300);
}
