// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mtp-opt/ModelInput.h"

#include "compiler/driver/Compilation.h"
#include "compiler/frontend/onnx/import/OnnxImport.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/ManagedStatic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mtp;

namespace {
struct Flags {
  llvm::cl::list<std::string> dims{
      "dim",
      llvm::cl::desc(
          "Of an .onnx file: size of a dynamic dimension (repeatable); "
          "without it batch is 1, all others 16"),
      llvm::cl::value_desc("NAME=N")};
  llvm::cl::opt<bool> doublePrecision{
      "double", llvm::cl::desc("Of an .onnx file: every float is double")};
};
llvm::ManagedStatic<Flags> flags;
} // namespace

void ModelInput::registerOptions() { *flags; }

static bool readDims(onnx::ReadOptions &options, std::string &error) {
  for (llvm::StringRef text : flags->dims) {
    auto [name, number] = text.rsplit('=');
    int64_t size = 0;
    if (name.empty() || number.getAsInteger(10, size) || size < 0) {
      error = "--dim '" + text.str() + "' is not of the form NAME=N";
      return false;
    }
    options.dims[name.str()] = size;
  }
  return true;
}

static std::unique_ptr<llvm::MemoryBuffer> importModel(const std::string &path,
                                                       std::string &error) {
  onnx::ReadOptions options;
  options.defaultDims = true;
  options.keepDropout = true;
  options.doublePrecision = flags->doublePrecision;
  if (!readDims(options, error))
    return nullptr;
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::vector<std::string> warnings;
  onnx::OnnxError problem;
  OwningOpRef<ModuleOp> module =
      onnx::importOnnx(path, options, context, warnings, problem);
  for (const std::string &warning : warnings)
    llvm::errs() << "mtp-opt: warning: " << warning << "\n";
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  if (!module || failed(writeBytecodeToFile(*module, stream))) {
    error = problem ? problem.message : path + " could not be imported";
    return nullptr;
  }
  return llvm::MemoryBuffer::getMemBufferCopy(bytes, path);
}

std::unique_ptr<llvm::MemoryBuffer> ModelInput::open(const std::string &name,
                                                     std::string &error) {
  if (llvm::StringRef(name).ends_with(".onnx"))
    return importModel(name, error);
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(name, /*IsText=*/true);
  if (file)
    return std::move(*file);
  error = "cannot open " + name + ": " + file.getError().message();
  return nullptr;
}
