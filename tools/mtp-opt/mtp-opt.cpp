// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-opt.cpp - inspect modules and run passes -----------------------===//

#include "compiler/driver/Compilation.h"
#include "compiler/driver/Diagnostics.h"
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

/// The operation behind an error, which is the whole module where a pass
/// refuses that, is printed only if the flag asks for it.
static std::vector<char *> withShortErrors(int argc, char **argv) {
  static std::string flag = "--mlir-print-op-on-diagnostic=false";
  llvm::StringRef name = llvm::StringRef(flag).drop_front(2).split('=').first;
  std::vector<char *> arguments(argv, argv + argc);
  if (llvm::none_of(arguments, [&](llvm::StringRef text) {
        return text.ltrim('-').split('=').first == name;
      }))
    arguments.insert(arguments.begin() + 1, flag.data());
  return arguments;
}

/// Errors at nodes of a model, or nowhere, which have no line that could be
/// shown: as the other tools print them.
static LogicalResult printAtNode(Diagnostic &diagnostic) {
  bool hasLine = false;
  diagnostic.getLocation()->walk([&](Location part) {
    hasLine |= isa<FileLineColLoc>(part);
    return hasLine ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (hasLine)
    return failure();
  std::string place = mtp::placeText(diagnostic.getLocation());
  const char *kind =
      diagnostic.getSeverity() == DiagnosticSeverity::Error     ? "error: "
      : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? "warning: "
                                                                : "";
  llvm::errs() << "mtp-opt: " << kind << place << (place.empty() ? "" : ": ")
               << diagnostic.str() << "\n";
  for (Diagnostic &note : diagnostic.getNotes())
    llvm::errs() << "  " << note.str() << "\n";
  return success();
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
  std::vector<char *> arguments = withShortErrors(argc, argv);
  auto [inputName, outputName] = registerAndParseCLIOptions(
      int(arguments.size()), arguments.data(), kTool, registry);
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
  if (!config.shouldVerifyDiagnostics())
    config.setPassPipelineSetupFn([given = config](PassManager &passes) {
      // Asked before the handler of MlirOptMain, which prints lines of files.
      passes.getContext()->getDiagEngine().registerHandler(printAtNode);
      return given.setupPassPipeline(passes);
    });
  if (failed(MlirOptMain(output.os(), std::move(input), registry, config)))
    return mtp::kBadInput;
  output.keep();
  return mtp::kOk;
}
