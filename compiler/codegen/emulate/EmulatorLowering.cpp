// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emulate/EmulatorLowering.h"
#include "compiler/codegen/ArtifactTypes.h"
#include "compiler/codegen/ObjectEmitter.h"
#include "compiler/codegen/emulate/KernelLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace mtp;

namespace {

/// Function `index`, which gives `text`.
void addDescription(ModuleOp module, int index, const std::string &text) {
  MLIRContext *context = module.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto i64 = IntegerType::get(context, 64);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = module.getLoc();
  std::string bytes = text + '\0';
  auto array =
      LLVM::LLVMArrayType::get(IntegerType::get(context, 8), bytes.size());
  LLVM::GlobalOp::create(builder, loc, array, /*isConstant=*/true,
                         LLVM::Linkage::Internal, "description",
                         builder.getStringAttr(bytes));
  auto function = func::FuncOp::create(
      builder, loc, kernelBodyName(index),
      builder.getFunctionType({pointer, pointer, i64, i64}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  Value address =
      LLVM::AddressOfOp::create(builder, loc, pointer, "description");
  LLVM::StoreOp::create(builder, loc, address, function.getArgument(1));
  func::ReturnOp::create(builder, loc);
}

/// Lines of the module's text, and the text itself.
struct Printed {
  explicit Printed(gpu::GPUModuleOp module) {
    AsmState state(module, OpPrintingFlags(), &lines);
    llvm::raw_string_ostream stream(text);
    module->print(stream, state);
  }
  std::string text;
  AsmState::LocationMap lines;
};

} // namespace

static FailureOr<OwningOpRef<ModuleOp>>
lowerAll(gpu::GPUModuleOp module, const Printed &printed, std::string &error) {
  MLIRContext *context = module.getContext();
  context->loadDialect<func::FuncDialect, LLVM::LLVMDialect>();
  OwningOpRef<ModuleOp> holder = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(holder->getBody());
  IRMapping mapping;
  auto copy = cast<gpu::GPUModuleOp>(builder.clone(*module, mapping));
  // What an operation of the copy was, and where.
  llvm::DenseMap<Operation *, Operation *> original;
  for (auto [from, to] : mapping.getOperationMap())
    original[to] = from;
  auto where = [&](Operation *op) {
    std::string text = op->getName().getStringRef().str();
    auto it = original.find(op);
    if (it == original.end())
      return text;
    auto line = printed.lines.find(it->second);
    if (line != printed.lines.end())
      text += " in line " + std::to_string(line->second.first);
    std::string node = nodeName(op->getLoc());
    return node.empty() ? text : text + " of node '" + node + "'";
  };
  OwningOpRef<ModuleOp> result = ModuleOp::create(module.getLoc());
  llvm::json::Array kernels;
  int index = 0;
  for (auto kernel : copy.getOps<gpu::GPUFuncOp>()) {
    KernelLowering lowering(kernel, *result, index++, where, error);
    if (failed(lowering.run()))
      return failure();
    kernels.push_back(lowering.description());
  }
  llvm::json::Object all;
  all["kernels"] = std::move(kernels);
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(all));
  addDescription(*result, index, text);
  if (failed(verify(*result))) {
    error = "the emulated kernels are not valid";
    return failure();
  }
  return result;
}

FailureOr<OwningOpRef<ModuleOp>> mtp::lowerToEmulator(gpu::GPUModuleOp module,
                                                      std::string &error) {
  return lowerAll(module, Printed(module), error);
}

FailureOr<KernelObject> mtp::emitEmulated(gpu::GPUModuleOp module,
                                          const KernelOptions &options,
                                          std::string &error) {
  Printed printed(module);
  if (!options.dumpDir.empty()) {
    std::error_code code;
    llvm::raw_fd_ostream stream(options.dumpDir + "/device.mlir", code);
    if (!code)
      stream << printed.text;
  }
  auto lowered = lowerAll(module, printed, error);
  if (failed(lowered))
    return failure();
  size_t count = llvm::range_size((*lowered)->getOps<func::FuncOp>());
  return emitObject(**lowered, count, options, error);
}
