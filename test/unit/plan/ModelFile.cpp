// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ModelFile.h"

#include "compiler/driver/Compilation.h"
#include "compiler/driver/Pipelines.h"
#include "compiler/frontend/onnx/import/OnnxImport.h"
#include "compiler/training/LossSpec.h"
#include "compiler/training/Training.h"

#include "mlir/Pass/PassManager.h"

#include <filesystem>
#include <fstream>

using namespace mlir;

namespace mtp::plan {

void loadDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
}

OwningOpRef<ModuleOp> readModel(const std::string &folder, MLIRContext &context,
                                bool training, std::string &error) {
  std::ifstream file(folder + "/meta.json");
  nlohmann::json meta = nlohmann::json::parse(file);
  onnx::ReadOptions options;
  options.keepDropout = training;
  nlohmann::json inputs = meta.value("inputs", nlohmann::json::object());
  for (const auto &[name, input] : inputs.items())
    options.inputs[name].shape = input.at("shape").get<std::vector<int64_t>>();
  nlohmann::json dynamic = meta.value("dynamic_dims", nlohmann::json::object());
  if (inputs.empty())
    for (const auto &dims : dynamic)
      for (const auto &dim : dims)
        options.dims[dim.at("name")] = dim.at("value");
  std::vector<std::string> warnings;
  onnx::OnnxError failure;
  auto module = onnx::importOnnx(folder + "/model.onnx", options, context,
                                 warnings, failure);
  if (!module) {
    error = failure.message;
    return nullptr;
  }
  TrainRequest train;
  PassManager passes(&context);
  if (training) {
    nlohmann::json loss = meta.at("loss");
    loss.erase("reduction");
    loss.erase("value64");
    if (!parseLoss(loss.dump(), train.loss, error))
      return nullptr;
    addLossPasses(passes, train, train.loss.json(), {});
  }
  addSimplifyPasses(passes);
  addRaisePasses(passes);
  if (training)
    addTrainablePasses(passes, train);
  if (failed(passes.run(*module)) ||
      (!training && failed(training::chooseTrainable(*module, {})))) {
    error = "the passes fail";
    return nullptr;
  }
  return module;
}

std::vector<std::string> modelNames(const std::string &models) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(models))
    if (std::filesystem::exists(entry.path() / "model.onnx"))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace mtp::plan
