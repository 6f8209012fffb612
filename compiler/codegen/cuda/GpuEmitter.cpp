// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cuda/GpuEmitter.h"
#include "compiler/codegen/cuda/LibraryKernels.h"
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/Nest.h"
#include "compiler/codegen/emit/RowOps.h"
#include "compiler/codegen/emulate/EmulatorLowering.h"
#include "runtime/abi/Abi.h"
#include "runtime/abi/GpuAbi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstddef>

using namespace mlir;
using namespace mtp;

/// Threads of a block of elements.
static constexpr int64_t kThreads = 256;
/// Most threads of a row. More would leave each fewer than 128 registers.
static constexpr int64_t kRowThreads = 512;
/// Positions of a block of columns, and threads that share one.
static constexpr int64_t kColumns = 32, kColumnThreads = 8;
/// Sweeps of fewer iterations are not worth sharing.
static constexpr int64_t kLeastShared = 16;
/// Bytes of shared memory that rows may be kept in, of 48 KiB; exchanges of
/// values and tiles take the rest.
static constexpr int64_t kMaxShared = 32 << 10;
static constexpr int64_t kWarp = 32;
static constexpr int64_t kMaxGrid = (int64_t(1) << 31) - 1;
/// Addresses that a kernel may be given: 32764 bytes of parameters.
static constexpr size_t kMaxBuffers = 4000;

static Type pointerType(OpBuilder &builder, unsigned space = 0) {
  return LLVM::LLVMPointerType::get(builder.getContext(), space);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

gpu::GPUFuncOp GpuEmitter::makeKernel(StringRef name, ArrayRef<Type> types,
                                      const LaunchShape &launch) {
  shape = launch;
  builder.setInsertionPointToEnd(&target);
  auto made = gpu::GPUFuncOp::create(builder, loc, name,
                                     builder.getFunctionType(types, {}));
  made->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                builder.getUnitAttr());
  SmallVector<int32_t> threads(launch.block.begin(), launch.block.end());
  made.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr(threads));
  // One block suffices: registers are worth more than a second one, for which
  // ptxas would spill.
  made->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                builder.getI32IntegerAttr(1));
  builder.setInsertionPointToEnd(&made.getBody().front());
  builder.setInsertionPoint(gpu::ReturnOp::create(builder, loc));
  return made;
}

/// Bytes from a tensor's first element to the end of its last one. Without
/// `strides` it is row-major.
static int64_t extentOf(Value tensor, ArrayRef<int64_t> strides) {
  ArrayRef<int64_t> shape = shapeOf(tensor);
  SmallVector<int64_t> known(strides);
  if (known.empty())
    known = rowMajorStrides(shape);
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(shape, known)) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  Type storage = RegionEmitter::storageType(elementTypeOf(tensor));
  return (last + 1) * std::max(1u, storage.getIntOrFloatBitWidth() / 8);
}

/// Of the rank, the operands, the results.
static SmallVector<int64_t> bufferBytes(func::FuncOp region) {
  SmallVector<int64_t> bytes{sizeof(MtpGpuRank)};
  SmallVector<Value> buffers(region.getArguments());
  llvm::append_range(buffers,
                     region.getBody().front().getTerminator()->getOperands());
  auto strides = region->getAttrOfType<ArrayAttr>(kStrides);
  for (auto [number, value] : llvm::enumerate(buffers)) {
    SmallVector<int64_t> own;
    if (strides)
      own.assign(cast<DenseI64ArrayAttr>(strides[number]).asArrayRef());
    bytes.push_back(extentOf(value, own));
  }
  return bytes;
}

void GpuEmitter::beginKernel(StringRef name, const LaunchShape &launch) {
  guard = Value();
  auto results = region.getBody().front().getTerminator()->getNumOperands();
  size_t count = region.getNumArguments() + results;
  if (count > kMaxBuffers)
    refuse(&region.getBody().front().front(),
           "is part of a kernel of " + Twine(count) +
               " tensors; a kernel on cuda takes " + Twine(kMaxBuffers) +
               " at most");
  auto made = makeKernel(
      name, SmallVector<Type>(count + 1, pointerType(builder)), launch);
  auto aligned = region->getAttrOfType<DenseBoolArrayAttr>(kAligned);
  for (unsigned i = 1; i <= count; ++i) {
    made.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                    builder.getUnitAttr());
    if (aligned && aligned[i - 1])
      made.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(16));
  }
  made->setAttr(kParameterBytes,
                builder.getDenseI64ArrayAttr(bufferBytes(region)));
  openFunction(made);
}

Value GpuEmitter::threadId(gpu::Dimension dim) {
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                    gpu::ThreadIdOp::create(builder, loc, dim));
}

Value GpuEmitter::blockId(gpu::Dimension dim) {
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                    gpu::BlockIdOp::create(builder, loc, dim));
}

void GpuEmitter::barrier() { gpu::BarrierOp::create(builder, loc); }

Value GpuEmitter::sharedArray(Type type, int64_t elements) {
  Type storage = storageType(type);
  scratchBytes += elements * std::max(1u, storage.getIntOrFloatBitWidth() / 8);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&target);
  std::string name =
      (function.getName() + "_shared" + Twine(globals.size())).str();
  auto array =
      LLVM::LLVMArrayType::get(storage, std::max<int64_t>(elements, 1));
  auto global = LLVM::GlobalOp::create(
      builder, loc, array, /*isConstant=*/false, LLVM::Linkage::Internal, name,
      Attribute(), /*alignment=*/16, /*addrSpace=*/3);
  globals.push_back(global);
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  return LLVM::AddressOfOp::create(builder, loc, global);
}

int64_t GpuEmitter::faultOffset() const { return offsetof(MtpGpuRank, fault); }

//===----------------------------------------------------------------------===//
// Math
//===----------------------------------------------------------------------===//

template <typename Op>
static Value makeUnary(OpBuilder &builder, Location loc, ValueRange x) {
  return Op::create(builder, loc, x[0]);
}
template <typename Op>
static Value makeBinary(OpBuilder &builder, Location loc, ValueRange x) {
  return Op::create(builder, loc, x[0], x[1]);
}

Value GpuEmitter::callMath(unsigned index, Type, ValueRange operands) {
  // In the order of MtpMath, double precision, then single.
  using Make = Value (*)(OpBuilder &, Location, ValueRange);
  static constexpr Make table[] = {
      makeUnary<math::ExpOp>,   makeUnary<math::ExpM1Op>,
      makeUnary<math::LogOp>,   makeUnary<math::Log1pOp>,
      makeUnary<math::SinOp>,   makeUnary<math::CosOp>,
      makeUnary<math::TanhOp>,  makeUnary<math::ErfOp>,
      makeBinary<math::PowFOp>, makeBinary<arith::RemFOp>};
  constexpr unsigned count = std::size(table);
  static_assert(offsetof(MtpMath, expf) == count * sizeof(void *) &&
                sizeof(MtpMath) == 2 * count * sizeof(void *));
  return table[index % count](builder, loc, operands);
}

//===----------------------------------------------------------------------===//
// Who computes what
//===----------------------------------------------------------------------===//

/// Elements of the longest row that an op of the region sweeps; 0: none does.
int64_t GpuEmitter::rowLength() {
  int64_t longest = 0;
  for (Operation &op : region.getBody().front())
    if (auto swept = sweptDims(&op)) {
      int64_t length = 1;
      for (unsigned dim : *swept)
        length *= shapeOf(op.getOperand(0))[dim];
      longest = std::max(longest, length);
    }
  return longest;
}

GpuEmitter::Mode GpuEmitter::chooseMode() {
  if (rowMode)
    return Mode::Rows;
  return rowLength() >= kLeastShared ? Mode::Columns : Mode::Elements;
}

/// How many neighbours a thread computes: 16 bytes of the widest tensor that is
/// read or written position by position.
int64_t GpuEmitter::chooseVector() {
  auto results = region.getBody().front().getTerminator()->getOperands();
  auto aligned = region->getAttrOfType<DenseBoolArrayAttr>(kAligned);
  ArrayRef<int64_t> positions = shapeOf(results[0]);
  if (rowLength() > 0 || positions.empty() || !aligned)
    return 1;
  int64_t bytes = 1;
  SmallVector<Value> buffers(region.getArguments());
  llvm::append_range(buffers, results);
  for (auto [number, value] : llvm::enumerate(buffers)) {
    if (shapeOf(value) != positions)
      continue;
    if (!aligned[number])
      return 1;
    Type storage = storageType(elementTypeOf(value));
    bytes = std::max<int64_t>(bytes, storage.getIntOrFloatBitWidth() / 8);
  }
  int64_t width = std::min<int64_t>(16 / bytes, 8);
  while (width > 1 && positions.back() % width != 0)
    width /= 2;
  return width;
}

void GpuEmitter::chooseShape() {
  shape = LaunchShape();
  if (mode == Mode::Rows) {
    int64_t threads = kWarp;
    while (threads < kRowThreads && threads * 4 < rowLength())
      threads *= 2;
    shape.block = {threads, 1, 1};
  } else if (mode == Mode::Columns) {
    shape.block = {kColumns, kColumnThreads, 1};
  } else {
    shape.block = {kThreads, 1, 1};
  }
}

void GpuEmitter::beginFunction(StringRef name) {
  planRows();
  columnReduction = nullptr;
  mode = chooseMode();
  vectorWidth = mode == Mode::Elements ? chooseVector() : 1;
  auto results = region.getBody().front().getTerminator()->getOperands();
  if (vectorWidth > 1)
    plans[{nullptr, 0}].cut(shapeOf(results[0]).size() - 1, vectorWidth);
  chooseShape();
  beginKernel(name, shape);
  int64_t positions = 1;
  if (mode == Mode::Rows)
    for (unsigned dim : rowDims[0])
      positions *= shapeOf(results[0])[dim];
  else
    positions = cast<RankedTensorType>(results[0].getType()).getNumElements() /
                vectorWidth;
  int64_t perBlock = mode == Mode::Rows ? 1 : shape.block[0];
  shape.grid[0] = std::max<int64_t>(1, (positions + perBlock - 1) / perBlock);
  if (shape.grid[0] > kMaxGrid)
    refuse(&region.getBody().front().front(),
           "needs more than 2^31 blocks on a GPU");
  Value block = blockId();
  if (mode == Mode::Rows) {
    begin = block;
    end = arith::AddIOp::create(builder, loc, begin, constant(1));
    if (positions == 0)
      end = begin;
    return;
  }
  Value all = constant(positions), first = constant(perBlock);
  first = arith::MulIOp::create(builder, loc, block, first);
  begin = arith::AddIOp::create(builder, loc, first, threadId());
  if (mode == Mode::Columns) {
    // Threads past the end work along, for the barriers, and store nothing.
    Value inside = arith::CmpIOp::create(builder, loc,
                                         arith::CmpIPredicate::ult, begin, all);
    Value isFirst =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                              threadId(gpu::Dimension::y), constant(0));
    guard = arith::AndIOp::create(builder, loc, inside, isFirst);
    begin = arith::SelectOp::create(builder, loc, inside, begin, constant(0));
    end = arith::AddIOp::create(builder, loc, begin,
                                constant(positions > 0 ? 1 : 0));
    return;
  }
  end = arith::AddIOp::create(builder, loc, begin, constant(1));
  end = arith::MinSIOp::create(builder, loc, end, all);
}

void GpuEmitter::emitResults() {
  if (mode == Mode::Rows)
    emitRows();
  else
    emitElements();
}

//===----------------------------------------------------------------------===//
// Sharing a sweep
//===----------------------------------------------------------------------===//

bool GpuEmitter::hasRoom(Type type, int64_t elements) const {
  int64_t bytes = storageType(type).getIntOrFloatBitWidth() / 8 * elements;
  return mode == Mode::Rows && current == rowLevel &&
         scratchBytes + bytes <= kMaxShared;
}

Value GpuEmitter::scratch(Type type, int64_t elements) {
  return sharedArray(type, elements);
}

bool GpuEmitter::isShared(const Level &parent) const {
  return mode != Mode::Elements && &parent == rowLevel;
}

void GpuEmitter::storeInResult(size_t number, const IndexExpr &position,
                               Value value) {
  if (!guard)
    return RegionEmitter::storeInResult(number, position, value);
  materialize(position);
  moveTo(*current);
  auto branch = scf::IfOp::create(builder, loc, guard);
  OpBuilder::InsertionGuard inside(builder);
  builder.setInsertionPoint(branch.thenYield());
  RegionEmitter::storeInResult(number, position, value);
}

/// The op by which an iteration adds to what it carries; null if it is none
/// whose order doesn't matter.
static Operation *combinerOf(Value yielded, Value carried) {
  Operation *op = yielded.getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::MulFOp, arith::MaximumFOp,
                       arith::MinimumFOp, arith::AddIOp, arith::MulIOp,
                       arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp,
                       arith::MinUIOp, arith::AndIOp, arith::OrIOp>(op) ||
      !llvm::is_contained(op->getOperands(), carried))
    return nullptr;
  return op;
}

static Value combineBy(OpBuilder &builder, Operation *combiner, Value a,
                       Value b) {
  IRMapping mapping;
  Operation *copy = builder.clone(*combiner, mapping);
  copy->setOperands({a, b});
  return copy->getResult(0);
}

Value GpuEmitter::shuffle(Value value, Value offset,
                          gpu::ShuffleMode shuffleMode) {
  Type type = value.getType(), i32 = builder.getI32Type();
  bool narrow = isa<IntegerType>(type) && type.getIntOrFloatBitWidth() < 32;
  if (narrow)
    value = arith::ExtUIOp::create(builder, loc, i32, value);
  Value width = arith::ConstantIntOp::create(builder, loc, i32, kWarp);
  Value other =
      gpu::ShuffleOp::create(builder, loc, value, offset, width, shuffleMode)
          .getShuffleResult();
  return narrow ? Value(arith::TruncIOp::create(builder, loc, type, other))
                : other;
}

Value GpuEmitter::shuffleXor(Value value, int64_t mask) {
  Value offset =
      arith::ConstantIntOp::create(builder, loc, builder.getI32Type(), mask);
  return shuffle(value, offset, gpu::ShuffleMode::XOR);
}

Value GpuEmitter::shuffleFrom(Value value, Value lane) {
  Value offset =
      arith::TruncIOp::create(builder, loc, builder.getI32Type(), lane);
  return shuffle(value, offset, gpu::ShuffleMode::IDX);
}

/// Shared memory in which the threads that `writes` holds for have put `value`.
Value GpuEmitter::exchange(Value value, Value slot, Value writes,
                           int64_t slots) {
  // An array of its own: no thread may still read an earlier exchange.
  Value array = sharedArray(value.getType(), slots);
  exchanged = true;
  auto branch = scf::IfOp::create(builder, loc, writes);
  {
    OpBuilder::InsertionGuard inside(builder);
    builder.setInsertionPoint(branch.thenYield());
    storeElement(array, value.getType(), slot, value);
  }
  barrier();
  return array;
}

/// Of all threads that share a sweep: first of a warp, by shuffles, then of the
/// warps, whose values every warp combines in the same way.
Value GpuEmitter::combineRow(Operation *combiner, Value value) {
  auto among = [&](int64_t lanes) {
    for (int64_t mask = lanes / 2; mask > 0; mask /= 2)
      value = combineBy(builder, combiner, value, shuffleXor(value, mask));
  };
  among(kWarp);
  int64_t warps = shape.block[0] / kWarp;
  if (warps == 1)
    return value;
  Value thread = threadId();
  Value lane = arith::RemUIOp::create(builder, loc, thread, constant(kWarp));
  Value warp = arith::DivUIOp::create(builder, loc, thread, constant(kWarp));
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        lane, constant(0));
  Value array = exchange(value, warp, isFirst, warps);
  Value at = arith::RemUIOp::create(builder, loc, lane, constant(warps));
  value = loadElement(array, value.getType(), at);
  among(warps);
  return value;
}

Value GpuEmitter::combineColumn(Operation *combiner, Value value) {
  Type type = value.getType();
  Value x = threadId(), y = threadId(gpu::Dimension::y);
  Value slot = arith::MulIOp::create(builder, loc, y, constant(kColumns));
  slot = arith::AddIOp::create(builder, loc, slot, x);
  Value all =
      arith::ConstantIntOp::create(builder, loc, builder.getI1Type(), 1);
  Value array = exchange(value, slot, all, kColumns * kColumnThreads);
  Value result = loadElement(array, type, x);
  for (int64_t i = 1; i < kColumnThreads; ++i) {
    Value at = arith::AddIOp::create(builder, loc, x, constant(i * kColumns));
    result = combineBy(builder, combiner, result, loadElement(array, type, at));
  }
  return result;
}

SmallVector<Value> GpuEmitter::emitShared(Nest &nest, Level &parent,
                                          ValueRange initial) {
  At here(builder, current, parent);
  moveTo(parent);
  int64_t total = 1;
  for (size_t group = 0; group < nest.groups.size(); ++group)
    total *= nest.trips(group);
  bool columns = mode == Mode::Columns;
  Value from = threadId(columns ? gpu::Dimension::y : gpu::Dimension::x);
  auto loop =
      scf::ForOp::create(builder, loc, from, constant(total),
                         constant(shape.block[columns ? 1 : 0]), initial);
  Operation *savedAnchor = parent.anchor;
  parent.anchor = loop;
  Level &level = newLevel(parent, loop.getBody());
  Value rest = loop.getInductionVar();
  for (size_t number = nest.groups.size(); number-- > 0;) {
    moveTo(level);
    Value counter = rest;
    if (number > 0) {
      Value trips = constant(nest.trips(number));
      counter = arith::RemUIOp::create(builder, loc, rest, trips);
      rest = arith::DivUIOp::create(builder, loc, rest, trips);
    }
    addGroup(nest, number, level, counter, 0, nest.trips(number) - 1);
  }
  auto inner =
      emitGroups(nest, level, nest.groups.size(), loop.getRegionIterArgs());
  if (!initial.empty()) {
    builder.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(builder, loc, inner);
  }
  closeLevel(level);
  parent.anchor = savedAnchor;
  moveTo(parent);
  SmallVector<Value> result;
  exchanged = false;
  for (auto [yielded, carried, start, value] : llvm::zip_equal(
           inner, loop.getRegionIterArgs(), initial, loop.getResults())) {
    if (yielded == carried) {
      result.push_back(start);
      continue;
    }
    Operation *combiner = combinerOf(yielded, carried);
    if (!combiner) {
      refuse(&region.getBody().front().front(),
             "sweeps in an order that a GPU does not keep");
      return SmallVector<Value>(initial);
    }
    result.push_back(columns ? combineColumn(combiner, value)
                             : combineRow(combiner, value));
  }
  // What the loop kept in shared memory is there for all.
  if (!exchanged && nest.instance->key.first)
    barrier();
  return result;
}
