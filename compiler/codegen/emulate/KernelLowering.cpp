// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emulate/KernelLowering.h"
#include "compiler/codegen/ObjectEmitter.h"
#include "compiler/codegen/emulate/EmulatorLowering.h"
#include "compiler/codegen/emulate/ThreadCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mtp;

static int64_t sizeOfType(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * sizeOfType(vector.getElementType());
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return array.getNumElements() * sizeOfType(array.getElementType());
  if (isa<LLVM::LLVMPointerType>(type))
    return 8;
  if (!type.isIntOrFloat())
    return 0;
  return std::max(1u, type.getIntOrFloatBitWidth() / 8);
}

LogicalResult KernelLowering::refuse(const Twine &reason) {
  error = "kernel " + kernel.getName().str() + " " + reason.str();
  return failure();
}

LogicalResult KernelLowering::refuse(Operation *op) {
  return refuse("has an operation that is not emulated: " + where(op));
}

/// Thread, parameters, and the two numbers that an MtpKernel takes.
void KernelLowering::addParameters() {
  MLIRContext *context = kernel.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto i64 = IntegerType::get(context, 64);
  size_t count = kernel.getNumArguments();
  parameters.resize(count);
  if (auto known = kernel->getAttrOfType<DenseI64ArrayAttr>(kParameterBytes))
    for (auto [parameter, bytes] : llvm::zip(parameters, known.asArrayRef()))
      parameter.bytes = bytes;
  for (size_t i = 0; i < count; ++i)
    if (auto align = kernel.getArgAttrOfType<IntegerAttr>(
            i, LLVM::LLVMDialect::getAlignAttrName()))
      parameters[i].align = align.getInt();
  SmallVector<Type> types(count + 1, pointer);
  types.append({i64, i64});
  OpBuilder builder = OpBuilder::atBlockEnd(target.getBody());
  function =
      func::FuncOp::create(builder, kernel.getLoc(), kernelBodyName(index),
                           builder.getFunctionType(types, {}));
  function.getBody().takeBody(kernel.getBody());
  mlir::Block &entry = function.getBody().front();
  entry.insertArgument(0u, pointer, kernel.getLoc());
  entry.addArguments({i64, i64}, {kernel.getLoc(), kernel.getLoc()});
  for (size_t i = 1; i <= count; ++i) {
    BlockArgument own = entry.getArgument(i);
    if (isa<LLVM::LLVMPointerType>(own.getType()))
      continue;
    // A number comes in the place of an address.
    Type type = own.getType();
    own.setType(pointer);
    builder.setInsertionPointToStart(&entry);
    auto number = LLVM::PtrToIntOp::create(builder, kernel.getLoc(), type, own);
    own.replaceAllUsesExcept(number, number);
  }
}

/// Places arrays of shared memory one behind the other.
LogicalResult KernelLowering::addArrays() {
  Operation *module = kernel->getParentOp();
  SmallVector<LLVM::AddressOfOp> uses;
  function.walk([&](LLVM::AddressOfOp op) { uses.push_back(op); });
  for (LLVM::AddressOfOp op : uses) {
    auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
        module, op.getGlobalNameAttr());
    if (!global)
      return refuse("has an address of " + op.getGlobalName() +
                    ", which is no array");
    if (global.getAddrSpace() != 3) {
      SymbolTable symbols(target);
      if (!symbols.lookup(global.getName())) {
        OpBuilder builder = OpBuilder::atBlockBegin(target.getBody());
        builder.clone(*global);
      }
      continue;
    }
    auto [it, isNew] =
        arrayIndex.try_emplace(global.getName(), int64_t(arrays.size()));
    if (isNew) {
      sharedBytes = (sharedBytes + 15) / 16 * 16;
      arrays.push_back({sharedBytes, sizeOfType(global.getGlobalType())});
      sharedBytes += arrays.back().bytes;
    }
  }
  return success();
}

/// The host has one address space.
void KernelLowering::flattenAddresses() {
  auto pointer = LLVM::LLVMPointerType::get(kernel.getContext());
  auto flatten = [&](Value value) {
    auto type = dyn_cast<LLVM::LLVMPointerType>(value.getType());
    if (type && type.getAddressSpace() != 0)
      value.setType(pointer);
  };
  function.walk([&](Operation *op) {
    for (Value result : op->getResults())
      flatten(result);
    for (Region &region : op->getRegions())
      for (mlir::Block &block : region)
        for (Value argument : block.getArguments())
          flatten(argument);
  });
  SmallVector<LLVM::AddrSpaceCastOp> casts;
  function.walk([&](LLVM::AddrSpaceCastOp op) { casts.push_back(op); });
  for (LLVM::AddrSpaceCastOp op : casts) {
    op.getResult().replaceAllUsesWith(op.getArg());
    op.erase();
  }
}

KernelLowering::Base KernelLowering::baseOf(Value address) {
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(address)) {
      if (argument.getOwner() != &function.getBody().front())
        return {Base::Unknown};
      return {Base::Parameter, int64_t(argument.getArgNumber()) - 1};
    }
    Operation *op = address.getDefiningOp();
    if (auto gep = dyn_cast<LLVM::GEPOp>(op)) {
      address = gep.getBase();
      continue;
    }
    if (auto symbol = dyn_cast<LLVM::AddressOfOp>(op)) {
      auto it = arrayIndex.find(symbol.getGlobalName());
      if (it == arrayIndex.end())
        return {Base::Constant};
      return {Base::Array, it->second};
    }
    if (isa<LLVM::AllocaOp>(op))
      return {Base::Local};
    return {isa<LLVM::LoadOp>(op) ? Base::Loaded : Base::Unknown};
  }
}

void KernelLowering::narrow(Base base, int64_t bytes) {
  auto limit = [&](int64_t &granule) { granule = std::min(granule, bytes); };
  if (base.kind == Base::Parameter)
    return limit(parameters[base.index].granule);
  if (base.kind == Base::Array)
    return limit(arrays[base.index].granule);
  if (base.kind != Base::Unknown)
    return;
  for (Parameter &parameter : parameters)
    limit(parameter.granule);
  for (Array &array : arrays)
    limit(array.granule);
}

int64_t KernelLowering::addSite(Operation *op, StringRef kind, Base base,
                                int64_t bytes, StringRef mode) {
  if (bytes > 0)
    narrow(base, bytes);
  if (kind == "store" || kind == "atomic") {
    if (base.kind == Base::Parameter)
      parameters[base.index].written = true;
    else if (base.kind == Base::Unknown)
      for (Parameter &parameter : parameters)
        parameter.written = true;
  }
  sites.push_back(
      llvm::json::Object{{"kind", kind},
                         {"memory", base.kind == Base::Parameter ? "parameter"
                                    : base.kind == Base::Array   ? "array"
                                                                 : "any"},
                         {"index", base.index},
                         {"bytes", bytes},
                         {"mode", mode.str()},
                         {"where", where(op)}});
  return int64_t(sites.size()) - 1;
}

LogicalResult KernelLowering::lowerAccess(Operation *op, Value address,
                                          Type type, StringRef kind) {
  Base base = baseOf(address);
  int64_t bytes = sizeOfType(type);
  if (bytes == 0)
    return refuse("accesses memory in a type that is not emulated, at " +
                  where(op));
  if (base.kind == Base::Local || base.kind == Base::Constant)
    return success();
  ThreadCode code(op, function);
  code.access(addSite(op, kind, base, bytes), address);
  return success();
}

/// The function of MtpMath that computes an operation, in double precision; -1
/// if the host has instructions for it or polynomials are used.
static int mathIndex(Operation *op) {
  if (op->getNumResults() != 1 || !op->getResult(0).getType().isFloat())
    return -1;
  static constexpr StringLiteral names[] = {
      "math.exp", "math.expm1", "math.log", "math.log1p", "math.sin",
      "math.cos", "math.tanh",  "math.erf", "math.powf",  "arith.remf"};
  StringRef name = op->getName().getStringRef();
  bool isPolynomial = op->getResult(0).getType().isF32() &&
                      (name == "math.exp" || name == "math.log" ||
                       name == "math.tanh" || name == "math.erf");
  for (auto [number, known] : llvm::enumerate(names))
    if (name == known && !isPolynomial)
      return int(number);
  return -1;
}

LogicalResult KernelLowering::lower(Operation *op) {
  auto dimension = [&](auto id, int64_t offset) {
    ThreadCode code(op, function);
    int64_t at = offset + 8 * int64_t(id.getDimension());
    id.getResult().replaceAllUsesWith(code.indexField(at));
    op->erase();
  };
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
    return dimension(id, offsetof(MtpEmulatedThread, thread)), success();
  if (auto id = dyn_cast<gpu::BlockIdOp>(op))
    return dimension(id, offsetof(MtpEmulatedThread, block)), success();
  if (auto id = dyn_cast<gpu::BlockDimOp>(op))
    return dimension(id, offsetof(MtpEmulatedThread, blockSize)), success();
  if (auto id = dyn_cast<gpu::GridDimOp>(op))
    return dimension(id, offsetof(MtpEmulatedThread, gridSize)), success();
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return lowerAccess(op, load.getAddr(), load.getType(),
                       load.getOrdering() == LLVM::AtomicOrdering::not_atomic
                           ? "load"
                           : "atomic");
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return lowerAccess(op, store.getAddr(), store.getValue().getType(),
                       store.getOrdering() == LLVM::AtomicOrdering::not_atomic
                           ? "store"
                           : "atomic");
  if (auto atomic = dyn_cast<LLVM::AtomicRMWOp>(op))
    return lowerAccess(op, atomic.getPtr(), atomic.getVal().getType(),
                       "atomic");
  if (auto symbol = dyn_cast<LLVM::AddressOfOp>(op)) {
    auto it = arrayIndex.find(symbol.getGlobalName());
    if (it == arrayIndex.end())
      return success();
    // Its accesses still find it by name.
    ThreadCode code(op, function);
    Value address = code.shared(arrays[it->second].begin);
    symbol.getRes().replaceAllUsesWith(address);
    op->erase();
    return success();
  }
  if (isa<gpu::ReturnOp>(op)) {
    OpBuilder builder(op);
    func::ReturnOp::create(builder, op->getLoc());
    op->erase();
    return success();
  }
  int math = mathIndex(op);
  if (math >= 0) {
    ThreadCode code(op, function);
    op->getResult(0).replaceAllUsesWith(
        code.callMath(math, op->getResult(0).getType(), op->getOperands()));
    op->erase();
    return success();
  }
  if (isa<LLVM::InlineAsmOp>(op))
    return refuse(op);
  StringRef dialect = op->getName().getDialectNamespace();
  if (llvm::is_contained({"arith", "math", "scf", "cf", "llvm", "func"},
                         dialect))
    return success();
  return lowerMeeting(op);
}

LogicalResult KernelLowering::run() {
  if (kernel.getNumWorkgroupAttributions() > 0 ||
      kernel.getNumPrivateAttributions() > 0)
    return refuse("has memory attributions, which are not emulated");
  addParameters();
  if (failed(addArrays()))
    return failure();
  flattenAddresses();
  SmallVector<Operation *> all, addresses;
  function.getBody().walk([&](Operation *op) {
    (isa<LLVM::AddressOfOp>(op) ? addresses : all).push_back(op);
  });
  for (Operation *op : all)
    if (failed(lower(op)))
      return failure();
  for (Operation *op : addresses)
    if (failed(lower(op)))
      return failure();
  return success();
}

llvm::json::Object KernelLowering::description() {
  llvm::json::Array parameterList, arrayList;
  for (const Parameter &p : parameters)
    parameterList.push_back(llvm::json::Object{{"bytes", p.bytes},
                                               {"written", p.written},
                                               {"granule", p.granule},
                                               {"align", p.align}});
  for (const Array &a : arrays)
    arrayList.push_back(llvm::json::Object{
        {"begin", a.begin}, {"bytes", a.bytes}, {"granule", a.granule}});
  return llvm::json::Object{{"symbol", kernel.getName()},
                            {"parameters", std::move(parameterList)},
                            {"arrays", std::move(arrayList)},
                            {"shared", sharedBytes},
                            {"sites", std::move(sites)}};
}
