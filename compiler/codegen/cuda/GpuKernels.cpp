// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cuda/GpuKernels.h"
#include "compiler/codegen/ArtifactTypes.h"
#include "compiler/codegen/LibraryCalls.h"
#include "compiler/codegen/cuda/GpuLowering.h"
#include "compiler/codegen/cuda/KernelCode.h"
#include "compiler/codegen/cuda/LibraryKernels.h"
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/RowOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <set>

using namespace mlir;
using namespace mtp;

/// Threads of a block of mtp_reduce_*.
static constexpr int64_t kReductionThreads = 256;

GpuKernelModule::GpuKernelModule(MLIRContext *context, std::string arch,
                                 std::string precision)
    : KernelModule(context), arch(std::move(arch)),
      precision(std::move(precision)) {
  context->loadDialect<gpu::GPUDialect, NVVM::NVVMDialect>();
  module = ModuleOp::create(UnknownLoc::get(context));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  gpu::GPUModuleOp::create(builder, module->getLoc(), "kernels");
}

gpu::GPUModuleOp GpuKernelModule::code() {
  return cast<gpu::GPUModuleOp>(module->getBody()->front());
}

bool GpuKernelModule::isAccepted(Operation *op) const {
  return isFusible(op) || libraryKernelOf(op);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<KernelLaunch>>
GpuKernelModule::regionLaunch(Operation *op, PlaceOf placeOf) {
  KernelLaunch launch;
  llvm::append_range(launch.buffers, op->getOperands());
  llvm::append_range(launch.buffers, op->getResults());
  SmallVector<bool> aligned;
  for (Value value : launch.buffers)
    aligned.push_back(placeOf(value).alignment % 16 == 0);
  Operation *region = regionOf(op);
  region->setAttr(kAligned, DenseBoolArrayAttr::get(op->getContext(), aligned));
  auto index = addRegion(region, op->getLoc(), launch.info);
  if (failed(index))
    return failure();
  launch.index = *index;
  return SmallVector<KernelLaunch>{launch};
}

/// Products are left to the runtime's library, in types that the device has
/// instructions for.
LogicalResult GpuKernelModule::checkProduct(Operation *op) const {
  auto call = libraryCallOf(op);
  if (failed(call))
    return failure();
  if (call->kind != "matmul")
    return op->emitOpError() << "has no kernel on cuda";
  if (gpuCapability(arch) >= 80)
    return success();
  for (Value value : call->inputs)
    if (elementTypeOf(value).isBF16())
      return op->emitOpError()
             << "multiplies bf16 matrices, for which " << arch
             << " has no instructions: use --precision f16 or f32, or "
                "--gpu-arch sm_80 or later";
  if (precision == "tf32")
    return op->emitOpError()
           << "is to be computed in tf32, for which " << arch
           << " has no instructions: use --precision f32, or --gpu-arch sm_80 "
              "or later";
  return success();
}

/// A region of one op that returns the results of a part.
static Operation *partRegion(Operation *region, const KernelPart &part,
                             ArrayRef<Attribute> strides) {
  auto func = cast<func::FuncOp>(region);
  mlir::Block &block = func.getBody().front();
  Operation *op = &block.front();
  SmallVector<Value> results;
  for (unsigned number : part.results)
    results.push_back(op->getResult(number));
  block.getTerminator()->setOperands(results);
  OpBuilder builder(func.getContext());
  func.setFunctionType(builder.getFunctionType(func.getArgumentTypes(),
                                               TypeRange(ValueRange(results))));
  func->setAttr(kPart, builder.getStringAttr(part.name));
  func->setAttr(kStrides, builder.getArrayAttr(strides));
  return func;
}

FailureOr<SmallVector<KernelLaunch>>
GpuKernelModule::launches(Operation *op, PlaceOf placeOf) {
  if (isa<spmd::FusedOp>(op) || isFusible(op))
    return regionLaunch(op, placeOf);
  const LibraryKernelEmitter *emitter = libraryKernelOf(op);
  SmallVector<KernelPart> parts;
  if (emitter)
    parts = emitter->parts(op);
  if (parts.empty()) {
    if (failed(checkProduct(op)))
      return failure();
    return SmallVector<KernelLaunch>();
  }
  Builder builder(op->getContext());
  SmallVector<KernelLaunch> result;
  for (const KernelPart &part : parts) {
    KernelLaunch launch;
    llvm::append_range(launch.buffers, op->getOperands());
    for (unsigned number : part.results)
      launch.buffers.push_back(op->getResult(number));
    SmallVector<Attribute> strides;
    SmallVector<bool> aligned;
    for (Value value : launch.buffers) {
      ValuePlace place = placeOf(value);
      strides.push_back(builder.getDenseI64ArrayAttr(place.strides));
      aligned.push_back(place.alignment % 16 == 0);
    }
    Operation *region = partRegion(regionOf(op), part, strides);
    region->setAttr(kAligned, builder.getDenseBoolArrayAttr(aligned));
    auto index = addRegion(region, op->getLoc(), launch.info);
    if (failed(index))
      return failure();
    launch.index = *index;
    result.push_back(std::move(launch));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

FailureOr<KernelInfo> GpuKernelModule::emitRegion(
    Operation *region, int, StringRef name,
    llvm::function_ref<int64_t(const std::string &)> faultNumber) {
  auto func = cast<func::FuncOp>(region);
  GpuEmitter emitter(func, *code().getBody(), faultNumber);
  KernelInfo info;
  if (auto part = func->getAttrOfType<StringAttr>(kPart)) {
    Operation *op = &func.getBody().front().front();
    LibraryKernelContext context(emitter, op, name, part.getValue());
    context.capability = gpuCapability(arch);
    context.precision = precision;
    llvm::append_range(
        context.aligned,
        func->getAttrOfType<DenseBoolArrayAttr>(kAligned).asArrayRef());
    for (Attribute strides : func->getAttrOfType<ArrayAttr>(kStrides))
      context.strides.emplace_back(
          cast<DenseI64ArrayAttr>(strides).asArrayRef());
    for (Value value : func.getBody().front().getTerminator()->getOperands())
      context.results.push_back(cast<OpResult>(value).getResultNumber());
    for (auto [value, strides] : llvm::zip(
             llvm::concat<const Value>(
                 SmallVector<Value>(func.getArguments()),
                 SmallVector<Value>(
                     func.getBody().front().getTerminator()->getOperands())),
             context.strides))
      if (strides.empty())
        strides = rowMajorStrides(shapeOf(value));
    if (failed(libraryKernelOf(op)->emit(context)))
      return failure();
  } else {
    auto emitted = emitter.emit(name);
    if (failed(emitted))
      return failure();
    info.count = emitted->count;
  }
  GpuKernel kernel;
  kernel.symbol = name.str();
  kernel.grid = emitter.launch().grid;
  kernel.block = emitter.launch().block;
  launchTable.push_back(std::move(kernel));
  return info;
}

static Type elementOf(MLIRContext *context, DType type) {
  Builder builder(context);
  auto integer = [&](unsigned width, bool isUnsigned = false) -> Type {
    return isUnsigned ? IntegerType::get(context, width, IntegerType::Unsigned)
                      : builder.getIntegerType(width);
  };
  switch (type) {
  case DType::F64:
    return builder.getF64Type();
  case DType::F32:
    return builder.getF32Type();
  case DType::F16:
    return builder.getF16Type();
  case DType::BF16:
    return builder.getBF16Type();
  case DType::I64:
    return integer(64);
  case DType::I32:
    return integer(32);
  case DType::I16:
    return integer(16);
  case DType::I8:
    return integer(8);
  case DType::U64:
    return integer(64, true);
  case DType::U32:
    return integer(32, true);
  case DType::U16:
    return integer(16, true);
  case DType::U8:
    return integer(8, true);
  case DType::Bool:
    return integer(1);
  }
  llvm_unreachable("all types are listed");
}

/// out[i] = out[i] op in[i]; the threads of the grid stride over the elements.
static void emitReduction(GpuEmitter &emit, CollectiveSite::Reduction reduction,
                          Type element, StringRef name) {
  OpBuilder &builder = emit.builder;
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  LaunchShape launch;
  launch.block[0] = kReductionThreads;
  auto kernel =
      emit.makeKernel(name, {pointer, pointer, builder.getI64Type()}, launch);
  for (unsigned i : {0, 1})
    kernel.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                      builder.getUnitAttr());
  Value out = kernel.getArgument(0), in = kernel.getArgument(1);
  KernelCode code(emit);
  Value blocks = arith::IndexCastOp::create(
      builder, emit.loc, builder.getI64Type(),
      gpu::GridDimOp::create(builder, emit.loc, gpu::Dimension::x));
  Value first =
      code.add(code.mul(emit.blockId(), kReductionThreads), emit.threadId());
  auto loop =
      scf::ForOp::create(builder, emit.loc, first, kernel.getArgument(2),
                         code.mul(blocks, kReductionThreads));
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  Scalars s(emit, element);
  Value at = loop.getInductionVar(), a = code.load(out, element, at),
        b = code.load(in, element, at);
  code.store(out, element, at,
             reduction == CollectiveSite::Reduction::Sum   ? s.add(a, b)
             : reduction == CollectiveSite::Reduction::Max ? s.max(a, b)
                                                           : s.min(a, b));
}

void GpuKernelModule::addReductions(const std::vector<CollectiveSite> &sites) {
  MLIRContext *context = module->getContext();
  // An emitter needs a region; this one has nothing in it.
  OwningOpRef<ModuleOp> holder = ModuleOp::create(UnknownLoc::get(context));
  OpBuilder builder = OpBuilder::atBlockEnd(holder->getBody());
  auto region = func::FuncOp::create(builder, holder->getLoc(), "none",
                                     builder.getFunctionType({}, {}));
  static const char *const names[] = {"sum", "max", "min"};
  std::set<std::string> made;
  for (const CollectiveSite &site : sites) {
    if (site.kind != CollectiveSite::Kind::AllReduce &&
        site.kind != CollectiveSite::Kind::ReduceScatter)
      continue;
    std::string symbol = std::string("mtp_reduce_") +
                         names[static_cast<int>(site.reduction)] + "_" +
                         mtp::name(site.type);
    if (!made.insert(symbol).second)
      continue;
    GpuEmitter emit(region, *code().getBody(),
                    [](const std::string &) { return int64_t(0); });
    emitReduction(emit, site.reduction, elementOf(context, site.type), symbol);
  }
}

LogicalResult
GpuKernelModule::finish(const std::vector<CollectiveSite> &sites) {
  addReductions(sites);
  PassManager passes(module->getContext(),
                     gpu::GPUModuleOp::getOperationName());
  passes.addPass(createCSEPass());
  passes.addPass(createCanonicalizerPass());
  return passes.run(code());
}

FailureOr<std::string> GpuKernelModule::emitPtx(std::string &error) {
  if (failed(lowerToNvvm(code()))) {
    error = "the loops of a kernel could not be lowered";
    return failure();
  }
  return mtp::emitPtx(code(), arch, error);
}
