// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/Kernels.h"
#include "compiler/codegen/InPlace.h"
#include "compiler/codegen/ObjectEmitter.h"
#include "compiler/codegen/emit/EmitterTable.h"

#include "dialects/spmd/SpmdDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace mtp;

/// Raised when the same region gives other code.
static constexpr const char *kCodegenVersion = "3";

/// Ends a message of a kernel that several nodes share.
static constexpr const char *kShared = " or one of the same form";

bool mtp::isFusible(Operation *op) { return emitterOf(op) != nullptr; }

KernelModule::KernelModule(MLIRContext *context) {
  context->loadDialect<MtpDialect, spmd::SpmdDialect, func::FuncDialect,
                       arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                       cf::ControlFlowDialect, LLVM::LLVMDialect>();
  Location loc = UnknownLoc::get(context);
  regionModule = ModuleOp::create(loc);
  loopModule = ModuleOp::create(loc);
}

KernelModule::~KernelModule() = default;

bool KernelModule::isAccepted(Operation *op) const { return isFusible(op); }

Operation *KernelModule::regionOf(Operation *op) {
  OpBuilder builder = OpBuilder::atBlockEnd(regionModule->getBody());
  auto type =
      builder.getFunctionType(op->getOperandTypes(), op->getResultTypes());
  auto func = func::FuncOp::create(builder, op->getLoc(), "kernel", type);
  func.setPrivate();
  Block *block = func.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  IRMapping mapping;
  SmallVector<Value> results;
  if (auto fused = dyn_cast<spmd::FusedOp>(op)) {
    if (Attribute pairs = op->getAttr(kInPlace))
      func->setAttr(kInPlace, pairs);
    Block &body = fused.getBody().front();
    mapping.map(body.getArguments(), block->getArguments());
    for (Operation &inner : body.without_terminator())
      builder.clone(inner, mapping);
    for (Value value : body.getTerminator()->getOperands())
      results.push_back(mapping.lookupOrDefault(value));
  } else {
    Operation *copy = builder.clone(*op);
    copy->setOperands(block->getArguments());
    results.assign(copy->result_begin(), copy->result_end());
  }
  func::ReturnOp::create(builder, op->getLoc(), results);
  return func;
}

/// What people read in traces: the op that stands for the region.
static std::string nameOf(func::FuncOp region) {
  StringRef name = "copy";
  unsigned best = 0;
  for (Operation &op : region.getBody().front()) {
    const OpEmitter *emitter = emitterOf(&op);
    if (!emitter && !isa<func::ReturnOp>(op))
      name = op.getName().stripDialect();
    if (!emitter)
      continue;
    unsigned weight = emitter->cost;
    if (emitter->kind == FusionKind::Row)
      weight += 2000;
    else if (emitter->kind == FusionKind::Reduce)
      weight += 1000;
    if (weight >= best) {
      best = weight;
      name = op.getName().stripDialect();
    }
  }
  return name.str();
}

FailureOr<int> KernelModule::add(Operation *fused, KernelInfo &info) {
  return addRegion(regionOf(fused), fused->getLoc(), info);
}

FailureOr<SmallVector<KernelLaunch>> KernelModule::launches(Operation *op,
                                                            PlaceOf) {
  SmallVector<KernelLaunch> result;
  if (!isa<spmd::FusedOp>(op) && !isFusible(op))
    return result;
  KernelLaunch launch;
  auto index = add(op, launch.info);
  if (failed(index))
    return failure();
  launch.index = *index;
  llvm::append_range(launch.buffers, op->getOperands());
  llvm::append_range(launch.buffers, op->getResults());
  result.push_back(std::move(launch));
  return result;
}

FailureOr<int> KernelModule::addFunction(Operation *func, KernelInfo &info) {
  Operation *copy = func->clone();
  cast<func::FuncOp>(copy).setSymName("kernel");
  cast<func::FuncOp>(copy).setPrivate();
  regionModule->push_back(copy);
  return addRegion(copy, func->getLoc(), info);
}

FailureOr<int> KernelModule::addRegion(Operation *op, Location loc,
                                       KernelInfo &info) {
  auto func = cast<func::FuncOp>(op);
  for (Operation &inner : func.getBody().front().without_terminator())
    if (!isAccepted(&inner)) {
      emitError(inner.getLoc())
          << "'" << inner.getName() << "' cannot be part of a kernel";
      func.erase();
      return failure();
    }
  for (Type type : llvm::concat<const Type>(func.getArgumentTypes(),
                                            func.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || tensor.getEncoding()) {
      emitError(loc) << "a kernel needs plain tensors of static shape, not "
                     << type;
      func.erase();
      return failure();
    }
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  func->print(stream, OpPrintingFlags().useLocalScope().elideLargeElementsAttrs(
                          int64_t(1) << 40));
  int index = infos.size();
  if (auto [known, isNew] = indexOfText.try_emplace(text, index); !isNew) {
    func.erase();
    info = infos[known->second];
    // A message names the node that the kernel was made for.
    for (size_t fault : faultsOf[known->second])
      if (!StringRef(faultMessages[fault]).ends_with(kShared))
        faultMessages[fault] += kShared;
    return known->second;
  }
  std::string name = nameOf(func) + "_" + std::to_string(index);
  // A kernel is emitted in several passes: a message keeps its number.
  std::vector<size_t> faults;
  auto number = [&](const std::string &message) -> int64_t {
    for (size_t fault : faults)
      if (faultMessages[fault] == message)
        return fault + 1;
    faults.push_back(faultMessages.size());
    faultMessages.push_back(message);
    return faultMessages.size();
  };
  auto emitted = emitRegion(func, index, name, number);
  if (failed(emitted)) {
    indexOfText.erase(text);
    func.erase();
    return failure();
  }
  func.setSymName(name);
  info = {name, emitted->count, emitted->grain};
  infos.push_back(info);
  texts.push_back(std::move(text));
  faultsOf.push_back(std::move(faults));
  return index;
}

FailureOr<KernelInfo> KernelModule::emitRegion(
    Operation *func, int index, StringRef,
    llvm::function_ref<int64_t(const std::string &)> faultNumber) {
  auto emitted = RegionEmitter(cast<func::FuncOp>(func), *loopModule->getBody(),
                               faultNumber)
                     .emit(kernelBodyName(index));
  if (failed(emitted))
    return failure();
  return KernelInfo{"", emitted->count, emitted->grain};
}

std::string KernelModule::cacheKey() const {
  llvm::SHA256 hash;
  auto add = [&](StringRef part) {
    std::string size = std::to_string(part.size()) + ":";
    hash.update(size);
    hash.update(part);
  };
  add(kCodegenVersion);
  add(LLVM_VERSION_STRING);
  add(targetText());
  for (const std::string &text : texts)
    add(text);
  for (const std::string &message :
       faultMessages) // their numbers are in the code
    add(message);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

std::vector<std::string> KernelModule::hostFeatures() {
  return usedCpuFeatures();
}

FailureOr<KernelObject> KernelModule::emitObject(const KernelOptions &options,
                                                 std::string &error) {
  return mtp::emitObject(*loopModule, infos.size(), options, error);
}
