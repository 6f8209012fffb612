// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/ObjectEmitter.h"
#include "compiler/codegen/LowerLoops.h"

#include "runtime/abi/Abi.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/IPO/MergeFunctions.h"

#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

using namespace mtp;

using Clock = std::chrono::steady_clock;
static double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

std::string mtp::kernelBodyName(int index) {
  return "body_" + std::to_string(index);
}
static std::string kernelName(size_t index) {
  return "kernel_" + std::to_string(index);
}

//===----------------------------------------------------------------------===//
// Target
//===----------------------------------------------------------------------===//

/// What kernels gain from. Others are left off, so that the list of what the
/// object needs is short and exact.
std::vector<std::string> mtp::usedCpuFeatures() {
  static const char *useful[] = {
      "sse4.1",   "sse4.2",   "popcnt",   "avx",   "avx2",    "fma",
      "f16c",     "bmi",      "bmi2",     "lzcnt", "avx512f", "avx512cd",
      "avx512bw", "avx512dq", "avx512vl", "neon",  "fullfp16"};
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  std::vector<std::string> result;
  for (const char *feature : useful)
    if (host.lookup(feature))
      result.push_back(feature);
  return result;
}

static bool hasFeature(llvm::StringRef feature) {
  return llvm::is_contained(usedCpuFeatures(), feature.str());
}

static std::string featureString() {
  std::string text;
  for (const std::string &feature : usedCpuFeatures())
    text += (text.empty() ? "+" : ",+") + feature;
  return text;
}

std::string mtp::targetText() {
  return llvm::sys::getDefaultTargetTriple() + " " +
         llvm::sys::getHostCPUName().str() + " " + featureString();
}

static std::unique_ptr<llvm::TargetMachine> makeTarget(std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  std::string base = triple.isX86() ? "x86-64" : "generic";
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, base, featureString(), llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Default));
}

//===----------------------------------------------------------------------===//
// LLVM IR
//===----------------------------------------------------------------------===//

namespace {
/// One LLVM module of kernels. Each has its own context, so that they compile
/// at the same time.
struct Unit {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  std::vector<size_t> kernels;
  std::string object, error;
  double optimizeMs = 0, codegenMs = 0;
};
} // namespace

/// kernel_N(rank, buffers, begin, end): loads the addresses and calls body_N.
static void addEntry(llvm::Module &module, size_t index) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Function *body = module.getFunction(kernelBodyName(index));
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *i64 = llvm::Type::getInt64Ty(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointer, pointer, i64, i64}, false);
  auto *entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                       kernelName(index), module);
  entry->setVisibility(llvm::GlobalValue::HiddenVisibility);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", entry));
  llvm::SmallVector<llvm::Value *> arguments{entry->getArg(0)};
  for (unsigned i = 0; i + 3 < body->arg_size(); ++i) {
    llvm::Value *slot =
        builder.CreateConstInBoundsGEP1_64(pointer, entry->getArg(1), i);
    arguments.push_back(builder.CreateLoad(pointer, slot));
  }
  arguments.push_back(entry->getArg(2));
  arguments.push_back(entry->getArg(3));
  builder.CreateCall(body, arguments);
  builder.CreateRetVoid();
  body->setLinkage(llvm::GlobalValue::InternalLinkage);
  body->addFnAttr(
      llvm::Attribute::NoInline); // keeps bodies equal where they are
}

/// const MtpKernelTable *mtp_kernels(void)
static void addTable(llvm::Module &module, size_t count) {
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *i64 = llvm::Type::getInt64Ty(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointer, pointer, i64, i64}, false);
  llvm::SmallVector<llvm::Constant *> kernels;
  for (size_t i = 0; i < count; ++i) {
    auto *kernel = llvm::cast<llvm::Function>(
        module.getOrInsertFunction(kernelName(i), type).getCallee());
    kernel->setVisibility(llvm::GlobalValue::HiddenVisibility);
    kernels.push_back(kernel);
  }
  auto *listType = llvm::ArrayType::get(pointer, count);
  auto *list = new llvm::GlobalVariable(
      module, listType, true, llvm::GlobalValue::InternalLinkage,
      llvm::ConstantArray::get(listType, kernels), "kernels");
  auto *tableType = llvm::StructType::get(context, {i64, i64, pointer});
  auto *value = llvm::ConstantStruct::get(
      tableType, {llvm::ConstantInt::get(i64, MTP_ABI_VERSION),
                  llvm::ConstantInt::get(i64, count), list});
  auto *table = new llvm::GlobalVariable(module, tableType, true,
                                         llvm::GlobalValue::InternalLinkage,
                                         value, "table");
  auto *entry = llvm::Function::Create(llvm::FunctionType::get(pointer, false),
                                       llvm::GlobalValue::ExternalLinkage,
                                       MTP_KERNELS_SYMBOL, module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", entry));
  builder.CreateRet(table);
}

static void setAttributes(llvm::Module &module, llvm::TargetMachine &target) {
  bool wide = hasFeature("avx512f");
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.getTargetCPU());
    function.addFnAttr("tune-cpu", llvm::sys::getHostCPUName());
    function.addFnAttr("target-features", target.getTargetFeatureString());
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (target.getTargetTriple().isX86())
      function.addFnAttr("prefer-vector-width", wide ? "512" : "256");
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &target) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&target);
  // No function of the C library exists where the object runs.
  llvm::TargetLibraryInfoImpl library(target.getTargetTriple());
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::MergeFunctionsPass());
  passes.addPass(
      builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2));
  passes.run(module, modules);
}

static void compileUnit(Unit &unit) {
  auto target = makeTarget(unit.error);
  if (!target)
    return;
  unit.module->setDataLayout(target->createDataLayout());
  unit.module->setTargetTriple(target->getTargetTriple());
  setAttributes(*unit.module, *target);
  auto start = Clock::now();
  optimize(*unit.module, *target);
  unit.optimizeMs = millisecondsSince(start);
  start = Clock::now();
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (target->addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile)) {
    unit.error = "this machine's LLVM target writes no objects";
    return;
  }
  passes.run(*unit.module);
  unit.object.assign(bytes.begin(), bytes.end());
  unit.codegenMs = millisecondsSince(start);
}

//===----------------------------------------------------------------------===//
// Object
//===----------------------------------------------------------------------===//

static void dump(const std::string &directory, const std::string &file,
                 llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (directory.empty())
    return;
  std::error_code code;
  llvm::raw_fd_ostream stream(directory + "/" + file, code);
  if (!code)
    print(stream);
}

/// Kernels in as many units as there are threads, dealt by size.
static std::vector<std::vector<size_t>> deal(mlir::ModuleOp loops, size_t count,
                                             unsigned threads) {
  std::vector<std::pair<size_t, size_t>> sizes; // size, kernel
  mlir::SymbolTable symbols(loops);
  for (size_t i = 0; i < count; ++i) {
    size_t size = 0;
    symbols.lookup(kernelBodyName(i))->walk([&](mlir::Operation *) { ++size; });
    sizes.push_back({size, i});
  }
  llvm::sort(sizes, [](auto &a, auto &b) {
    return std::pair(b.first, a.second) < std::pair(a.first, b.second);
  });
  threads = std::max(1u, std::min<unsigned>(threads, count));
  std::vector<std::vector<size_t>> units(threads);
  std::vector<size_t> filled(threads, 0);
  for (auto [size, kernel] : sizes) {
    size_t least = llvm::min_element(filled) - filled.begin();
    units[least].push_back(kernel);
    filled[least] += size;
  }
  return units;
}

mlir::FailureOr<KernelObject> mtp::emitObject(mlir::ModuleOp loops,
                                              size_t count,
                                              const KernelOptions &options,
                                              std::string &error) {
  mlir::MLIRContext *context = loops.getContext();
  mlir::registerBuiltinDialectTranslation(*context);
  mlir::registerLLVMDialectTranslation(*context);
  KernelObject result;
  result.cpuFeatures = usedCpuFeatures();
  auto start = Clock::now();
  dump(options.dumpDir, "kernels.mlir",
       [&](llvm::raw_ostream &os) { loops.print(os); });
  std::deque<Unit> units;
  for (auto &kernels : deal(loops, count, options.threads)) {
    units.emplace_back();
    Unit &unit = units.back();
    unit.kernels = kernels;
    auto lowered =
        lowerLoops(loops, kernels,
                   !llvm::Triple(llvm::sys::getDefaultTargetTriple()).isX86() ||
                       hasFeature("fma"));
    if (failed(lowered)) {
      error = "the loops of a kernel could not be lowered";
      return mlir::failure();
    }
    unit.module = mlir::translateModuleToLLVMIR(**lowered, unit.context, "mtp");
    if (!unit.module) {
      error = "a kernel could not be translated to LLVM IR";
      return mlir::failure();
    }
    for (size_t kernel : kernels)
      addEntry(*unit.module, kernel);
    if (units.size() == 1)
      addTable(*unit.module, count);
    std::string message;
    llvm::raw_string_ostream stream(message);
    if (llvm::verifyModule(*unit.module, &stream)) {
      error = "a kernel is not valid LLVM IR: " + message;
      return mlir::failure();
    }
  }
  result.stageMs.push_back({"lower", millisecondsSince(start)});
  start = Clock::now();
  std::vector<std::thread> threads;
  for (size_t i = 1; i < units.size(); ++i)
    threads.emplace_back([&unit = units[i]] { compileUnit(unit); });
  if (!units.empty())
    compileUnit(units[0]);
  for (std::thread &thread : threads)
    thread.join();
  result.stageMs.push_back({"optimize and generate", millisecondsSince(start)});
  std::vector<std::string> objects;
  for (auto [i, unit] : llvm::enumerate(units)) {
    if (!unit.error.empty()) {
      error = unit.error;
      return mlir::failure();
    }
    objects.push_back(std::move(unit.object));
    dump(options.dumpDir, "kernels" + std::to_string(i) + ".ll",
         [&](llvm::raw_ostream &os) { unit.module->print(os, nullptr); });
  }
  start = Clock::now();
  auto linked = linkShared(objects, options.linker, error);
  if (failed(linked))
    return mlir::failure();
  result.bytes = std::move(*linked);
  result.stageMs.push_back({"link", millisecondsSince(start)});
  return result;
}
