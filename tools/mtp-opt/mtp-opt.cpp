// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-opt.cpp - inspect modules and run passes -----------------------===//

#include "compiler/driver/Compilation.h"
#include "compiler/driver/Pipelines.h"
#include "passes/Passes.h"
#include "tools/mtp-opt/ModelInput.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

static constexpr char kTool[] = "mtp-opt: inspects modules (.mlir, .mlirbc) "
                                "and models (.onnx), runs passes\n";

static int fail(int exitCode, const llvm::Twine &message) {
  llvm::errs() << "mtp-opt: error: " << message << "\n";
  return exitCode;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  mtp::registerDialects(registry);
  registerAllPasses();
  mtp::registerMtpPasses();
  mtp::registerMtpPipelines();
  mtp::ModelInput::registerOptions();
  auto [inputName, outputName] =
      registerAndParseCLIOptions(argc, argv, kTool, registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldListPasses() || config.shouldShowDialects())
    return asMainReturnCode(MlirOptMain(
        llvm::outs(), llvm::MemoryBuffer::getMemBuffer(""), registry, config));
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> input =
      mtp::ModelInput::open(inputName, error);
  if (!input)
    return fail(mtp::kBadInput, error);
  std::error_code cannotOpen;
  llvm::ToolOutputFile output(outputName, cannotOpen, llvm::sys::fs::OF_None);
  if (cannotOpen)
    return fail(mtp::kBadInput, outputName + ": " + cannotOpen.message());
  if (failed(MlirOptMain(output.os(), std::move(input), registry, config)))
    return mtp::kBadInput;
  output.keep();
  return mtp::kOk;
}
