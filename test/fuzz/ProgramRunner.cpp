// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/ProgramRunner.h"

#include "compiler/driver/CompilerApi.h"
#include "runtime/session/Session.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace mtp;

fuzz::CompiledProgram::CompiledProgram(ModuleOp module,
                                       const RunOptions &options,
                                       std::string &error) {
  SmallString<128> path;
  int descriptor;
  if (llvm::sys::fs::createTemporaryFile("program", "mlir", descriptor, path)) {
    error = "no temporary file";
    return;
  }
  {
    llvm::raw_fd_ostream file(descriptor, true);
    module.print(file);
  }
  CompileRequest request;
  request.model = path.str().str();
  request.mesh = options.mesh;
  request.plan = options.plan;
  request.precision = options.doublePrecision ? "f64" : "f32";
  request.noCache = true;
  request.noRaise = true;
  CompileResult result;
  mtpCompile(&request, &result);
  llvm::sys::fs::remove(path);
  if (result.exitCode) {
    error = "compile: " + result.message;
    return;
  }
  SessionOptions running;
  running.poison = options.poison;
  running.threadsPerRank = 1;
  running.collectiveTimeout = 20;
  Error failure;
  session = Session::create(std::move(result.artifact), running, failure);
  error = session ? "" : "load: " + failure.message;
}

fuzz::CompiledProgram::~CompiledProgram() = default;

std::string fuzz::CompiledProgram::run(const TensorMap &inputs,
                                       TensorMap &outputs) {
  Error error;
  return session->run(inputs, outputs, error) ? "" : "run: " + error.message;
}

std::string fuzz::runProgram(ModuleOp module, const RunOptions &options,
                             const TensorMap &inputs, TensorMap &outputs) {
  std::string error;
  CompiledProgram program(module, options, error);
  return error.empty() ? program.run(inputs, outputs) : error;
}

double fuzz::difference(const HostTensor &have, const HostTensor &want,
                        double floor) {
  if (have.shape != want.shape || have.type != want.type)
    return INFINITY;
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    double a = have.valueAt(i), b = want.valueAt(i);
    if (std::isfinite(b))
      largest = std::max(largest, std::abs(b));
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    if (!std::isfinite(a) || !std::isfinite(b))
      return INFINITY;
    worst = std::max(worst, std::abs(a - b));
  }
  return worst == 0 ? 0 : worst / std::max(largest, floor);
}

static DType typeOf(Type element) {
  if (element.isF64())
    return DType::F64;
  if (element.isF32())
    return DType::F32;
  return element.isInteger(1) ? DType::Bool : DType::I64;
}

TensorMap fuzz::randomInputs(func::FuncOp function, int64_t indexRange,
                             uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  TensorMap inputs;
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto type = cast<RankedTensorType>(function.getArgument(index).getType());
    HostTensor tensor(typeOf(type.getElementType()),
                      std::vector<int64_t>(type.getShape()));
    for (int64_t i = 0; i < tensor.elements(); ++i)
      switch (tensor.type) {
      case DType::F64:
        tensor.as<double>()[i] = normal(random) * 2;
        break;
      case DType::F32:
        tensor.as<float>()[i] = float(normal(random) * 2);
        break;
      case DType::Bool:
        tensor.as<uint8_t>()[i] = random() & 1;
        break;
      default:
        tensor.as<int64_t>()[i] =
            indexRange ? int64_t(random() % (2 * indexRange)) - indexRange
                       : int64_t(random() % 41) - 20;
      }
    auto name = function.getArgAttrOfType<StringAttr>(index, "mtp.name");
    inputs[name ? name.str() : "arg" + std::to_string(index)] =
        std::move(tensor);
  }
  return inputs;
}

std::optional<MeshShape> fuzz::parseMesh(StringRef text) {
  MeshShape mesh;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, sizes] = part.split('=');
    SmallVector<StringRef> factors;
    sizes.split(factors, 'x');
    for (auto [index, factor] : llvm::enumerate(factors)) {
      MeshShape::Axis axis;
      axis.parent = name.str();
      axis.part = factors.size() > 1 ? static_cast<int>(index) : -1;
      if (factor.getAsInteger(10, axis.size) || axis.size < 1)
        return std::nullopt;
      mesh.axes.push_back(axis);
    }
  }
  return mesh;
}

std::string fuzz::plainMesh(const MeshShape &mesh) {
  std::string text;
  for (int axis = 0; axis < mesh.size();) {
    std::string parent = mesh.axes[axis].parent;
    int64_t size = 1;
    for (; axis < mesh.size() && mesh.axes[axis].parent == parent; ++axis)
      size *= mesh.axes[axis].size;
    text += (text.empty() ? "" : ",") + parent + "=" + std::to_string(size);
  }
  return text;
}
