// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cuda/GpuLowering.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"

#include <mutex>

using namespace mlir;
using namespace mtp;

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

const std::vector<std::string> &mtp::gpuArchitectures() {
  static const std::vector<std::string> all = {
      "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};
  return all;
}

int mtp::gpuCapability(const std::string &arch) {
  if (!llvm::is_contained(gpuArchitectures(), arch))
    return 0;
  return std::stoi(arch.substr(3));
}

//===----------------------------------------------------------------------===//
// To nvvm
//===----------------------------------------------------------------------===//

static LogicalResult expandMath(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  RewritePatternSet patterns(context);
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return name == "math.exp" || name == "math.tanh" || name == "math.erf" ||
           name == "math.log";
  });
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  return applyPatternsGreedily(module, std::move(patterns));
}

template <typename Op>
static Value makeIntrinsic(OpBuilder &builder, LLVM::CallOp call) {
  return Op::create(builder, call.getLoc(), call.getResult().getType(),
                    call.getArgOperands());
}

/// Functions of libdevice that are instructions: the conversion makes calls of
/// all, so that kernels would need libdevice for a square root.
static void useInstructions(gpu::GPUModuleOp module) {
  using Make = Value (*)(OpBuilder &, LLVM::CallOp);
  static const std::pair<StringRef, Make> table[] = {
      {"floor", makeIntrinsic<LLVM::FFloorOp>},
      {"ceil", makeIntrinsic<LLVM::FCeilOp>},
      {"rint", makeIntrinsic<LLVM::RoundEvenOp>},
      {"sqrt", makeIntrinsic<LLVM::SqrtOp>},
      {"fabs", makeIntrinsic<LLVM::FAbsOp>},
      {"fma", makeIntrinsic<LLVM::FMAOp>},
      {"copysign", makeIntrinsic<LLVM::CopySignOp>}};
  SmallVector<LLVM::CallOp> calls;
  module.walk([&](LLVM::CallOp call) {
    if (call.getCallee() && call.getCallee()->starts_with("__nv_"))
      calls.push_back(call);
  });
  for (LLVM::CallOp call : calls) {
    StringRef name = call.getCallee()->drop_front(5);
    if (call.getResult().getType().isF32())
      name.consume_back("f");
    for (auto [function, make] : table) {
      if (name != function)
        continue;
      OpBuilder builder(call);
      call.getResult().replaceAllUsesWith(make(builder, call));
      call.erase();
      break;
    }
  }
  // Declarations that nothing calls any more.
  for (auto function :
       llvm::make_early_inc_range(module.getOps<LLVM::LLVMFuncOp>()))
    if (function.isExternal() &&
        SymbolTable::symbolKnownUseEmpty(function.getNameAttr(), module))
      function.erase();
}

LogicalResult mtp::lowerToNvvm(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertNVVMToLLVMInterface(registry);
  context->appendDialectRegistry(registry);
  if (failed(expandMath(module)))
    return failure();
  PassManager passes(context, gpu::GPUModuleOp::getOperationName());
  passes.addPass(createCSEPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertGpuOpsToNVVMOps());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(module)))
    return failure();
  useInstructions(module);
  PassManager tidy(context, gpu::GPUModuleOp::getOperationName());
  tidy.addPass(createCanonicalizerPass());
  tidy.addPass(createCSEPass());
  return tidy.run(module);
}

//===----------------------------------------------------------------------===//
// To PTX
//===----------------------------------------------------------------------===//

static std::unique_ptr<llvm::TargetMachine> makeTarget(const std::string &arch,
                                                       std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  // PTX 8.1, which drivers of CUDA 12.1 read, has kernels of more than 500
  // buffers; later devices need a later one, which LLVM takes by itself.
  const char *version = gpuCapability(arch) < 100 ? "+ptx81" : "";
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, arch, version, llvm::TargetOptions(), std::nullopt, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

/// Where a toolkit has libdevice: that of the user, that of the build, the
/// usual place.
static std::string findLibdevice() {
  std::vector<std::string> roots;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (auto value = llvm::sys::Process::GetEnv(variable))
      roots.push_back(*value);
  roots.push_back(MTP_CUDA_ROOT);
  roots.push_back("/usr/local/cuda");
  for (const std::string &root : roots) {
    std::string path = root + "/nvvm/libdevice/libdevice.10.bc";
    if (!root.empty() && llvm::sys::fs::exists(path))
      return path;
  }
  return "";
}

static bool linkLibdevice(llvm::Module &module, std::string &error) {
  std::string needed;
  for (llvm::Function &function : module)
    if (function.isDeclaration() && function.getName().starts_with("__nv_"))
      needed += (needed.empty() ? "" : ", ") + function.getName().str();
  if (needed.empty())
    return true;
  std::string path = findLibdevice();
  if (path.empty()) {
    error = "kernels need " + needed +
            " of libdevice.10.bc, which is not in the folders CUDA_HOME and "
            "CUDA_PATH name nor in /usr/local/cuda: install the CUDA toolkit "
            "(its nvvm folder suffices) or set CUDA_HOME";
    return false;
  }
  llvm::SMDiagnostic diagnostic;
  auto library = llvm::parseIRFile(path, diagnostic, module.getContext());
  if (!library) {
    error = path + ": " + diagnostic.getMessage().str();
    return false;
  }
  library->setDataLayout(module.getDataLayout());
  library->setTargetTriple(module.getTargetTriple());
  if (llvm::Linker::linkModules(module, std::move(library),
                                llvm::Linker::LinkOnlyNeeded)) {
    error = path + " cannot be linked";
    return false;
  }
  return true;
}

static void optimize(llvm::Module &module, llvm::TargetMachine &target) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&target);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes =
      builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
  passes.run(module, modules);
}

FailureOr<std::string> mtp::emitPtx(gpu::GPUModuleOp module,
                                    const std::string &arch,
                                    std::string &error) {
  MLIRContext *context = module.getContext();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  registerGPUDialectTranslation(*context);
  registerNVVMDialectTranslation(*context);
  auto target = makeTarget(arch, error);
  if (!target)
    return failure();
  llvm::LLVMContext llvmContext;
  auto code = translateModuleToLLVMIR(module, llvmContext, "mtp");
  if (!code) {
    error = "the kernels could not be translated to LLVM IR";
    return failure();
  }
  code->setDataLayout(target->createDataLayout());
  code->setTargetTriple(target->getTargetTriple());
  // No flushing of subnormal numbers, as on the CPU.
  code->addModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", 0u);
  if (!linkLibdevice(*code, error))
    return failure();
  llvm::internalizeModule(*code, [](const llvm::GlobalValue &value) {
    auto *function = llvm::dyn_cast<llvm::Function>(&value);
    return function &&
           function->getCallingConv() == llvm::CallingConv::PTX_Kernel;
  });
  optimize(*code, *target);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (target->addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::AssemblyFile)) {
    error = "this LLVM has no code generator for " + arch;
    return failure();
  }
  passes.run(*code);
  return std::string(bytes.begin(), bytes.end());
}
