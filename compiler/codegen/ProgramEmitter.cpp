// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/ProgramEmitter.h"
#include "compiler/codegen/ArtifactTypes.h"
#include "compiler/codegen/BufferPlan.h"
#include "compiler/codegen/Epilogues.h"
#include "compiler/codegen/LibraryCalls.h"
#include "compiler/codegen/SiteTables.h"

using namespace mlir;
using namespace mtp;

namespace {
/// One function as an entry.
class ProgramEmitter {
public:
  ProgramEmitter(func::FuncOp func, SiteTables &tables, KernelModule &kernels,
                 Artifact &artifact)
      : func(func), plan(func), tables(tables), kernels(kernels),
        artifact(artifact) {}

  LogicalResult run() {
    entry.name = func.getSymName().str();
    if (failed(addInputs()) || failed(addOutputs()))
      return failure();
    // Parameters first: values may be written right into their blocks.
    for (Operation &op : func.getBody().front())
      if (isSource(&op) && !op.use_empty() && failed(emitSource(&op)))
        return failure();
    int64_t step = 0;
    for (Operation &op : func.getBody().front()) {
      emitDone(step++);
      if (failed(emit(&op)))
        return failure();
    }
    entry.arenaBytes = plan.arenaBytes();
    artifact.entries.push_back(std::move(entry));
    return success();
  }

private:
  //===--------------------------------------------------------------------===//
  // Inputs and outputs
  //===--------------------------------------------------------------------===//

  static std::string textOf(DictionaryAttr attrs, StringRef name,
                            const std::string &otherwise) {
    auto text = attrs.getAs<StringAttr>(name);
    return text ? text.getValue().str() : otherwise;
  }

  FailureOr<TensorLayout> borderLayout(DictionaryAttr attrs,
                                       const Twine &what) {
    auto layout = attrs.getAs<LayoutAttr>(spmd::names::layout);
    auto global = attrs.getAs<TypeAttr>(spmd::names::globalType);
    if (!layout || !global)
      return func.emitOpError() << what << " has no layout and global type";
    return tensorLayoutOf(func, cast<RankedTensorType>(global.getValue()),
                          layout, tables.meshShape());
  }

  LogicalResult addInputs() {
    for (BlockArgument argument : func.getArguments()) {
      unsigned index = argument.getArgNumber();
      DictionaryAttr attrs = func.getArgAttrDict(index);
      if (!attrs)
        attrs = DictionaryAttr::get(func.getContext());
      auto layout = borderLayout(attrs, "argument " + Twine(index));
      if (failed(layout))
        return failure();
      Input input;
      input.name =
          textOf(attrs, spmd::names::name, "arg" + std::to_string(index));
      input.layout = std::move(*layout);
      if (auto dims = attrs.getAs<ArrayAttr>(spmd::names::dimNames))
        for (auto dim : dims.getAsRange<StringAttr>())
          input.dimNames.push_back(dim.getValue().str());
      if (auto range = attrs.getAs<DenseI64ArrayAttr>(spmd::names::range);
          range && range.size() == 2) {
        input.lo = range[0];
        input.hi = range[1];
      }
      input.rangeReason = textOf(attrs, spmd::names::rangeReason, "");
      input.random = textOf(attrs, spmd::names::random, input.random);
      entry.inputs.push_back(std::move(input));
      refs[argument] = {BufferRef::Space::Input, index, 0,
                        bytesOf(argument.getType())};
    }
    return success();
  }

  LogicalResult addOutputs() {
    for (unsigned index = 0; index < func.getNumResults(); ++index) {
      DictionaryAttr attrs = func.getResultAttrDict(index);
      if (!attrs)
        attrs = DictionaryAttr::get(func.getContext());
      auto layout = borderLayout(attrs, "result " + Twine(index));
      if (failed(layout))
        return failure();
      entry.outputs.push_back(
          {textOf(attrs, spmd::names::name, "result" + std::to_string(index)),
           std::move(*layout)});
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Ops
  //===--------------------------------------------------------------------===//

  LogicalResult emit(Operation *op) {
    if (isa<func::ReturnOp>(op) || plan.isFolded(op) || isSource(op))
      return success();
    if (auto store = dyn_cast<spmd::StoreOp>(op))
      return noteStore(store);
    if (auto collective = dyn_cast<spmd::CollectiveOpInterface>(op))
      return emitCollective(collective);
    auto launches =
        kernels.launches(op, [&](Value value) { return placeOf(value); });
    if (failed(launches))
      return failure();
    if (launches->empty())
      return failure(failed(emitEpilogue(op)) ||
                     failed(emitLibrary(op, libraryCallOf(op))));
    for (const KernelLaunch &launch : *launches)
      emitKernel(op, launch);
    return success();
  }

  static bool isSource(Operation *op) {
    return isa<spmd::ParameterOp, spmd::RankValueOp, ConstantOp>(op);
  }

  /// Nothing is left to do: the value lies there.
  LogicalResult noteStore(spmd::StoreOp store) {
    BufferRef ref = refs.lookup(plan.home(store.getStored()));
    if (!storedTo.insert(ref.index).second)
      return store.emitOpError() << "writes a block that is written already";
    tables.markUpdated(store, ref.index);
    return success();
  }

  LogicalResult emitSource(Operation *op) {
    Value result = op->getResult(0);
    BufferRef ref{BufferRef::Space::Parameter, 0, 0, bytesOf(result.getType())};
    FailureOr<int64_t> index = failure();
    if (auto value = dyn_cast<spmd::RankValueOp>(op)) {
      ref.space = BufferRef::Space::RankValue;
      index = tables.add(value);
    } else if (auto constant = dyn_cast<ConstantOp>(op)) {
      index = tables.add(constant);
    } else {
      index = tables.add(cast<spmd::ParameterOp>(op));
    }
    if (failed(index))
      return failure();
    ref.index = *index;
    refs[result] = ref;
    return success();
  }

  /// Where the bytes of a value lie. All sources of the value are emitted.
  BufferRef refOf(Value value) {
    Value home = plan.home(value);
    BufferRef ref;
    if (auto place = plan.place(home))
      ref = *place;
    else if (Value parameter = plan.parameterOf(home))
      ref = refs.lookup(parameter);
    else
      ref = refs.lookup(home);
    // A part of its home.
    ref.offset += plan.offset(value);
    ref.bytes = bytesOf(value.getType());
    return ref;
  }

  ValuePlace placeOf(Value value) {
    ValuePlace place;
    place.strides.assign(plan.strides(value).begin(),
                         plan.strides(value).end());
    // Blocks of memory begin at multiples of 64, rank values lie side by side.
    BufferRef ref = refOf(value);
    int64_t least =
        ref.space == BufferRef::Space::RankValue ? sizeof(int64_t) : 64;
    place.alignment = ref.offset ? ref.offset & -ref.offset : least;
    return place;
  }

  void addRefs(ValueRange values, Instruction &step) {
    for (Value value : values)
      step.buffers.push_back(refOf(value));
  }

  static std::string nameOf(Operation *op, const std::string &otherwise) {
    std::string name = nodeName(op->getLoc());
    return name.empty() ? otherwise : name;
  }

  static Instruction instruction(Instruction::Kind kind, int64_t index,
                                 const std::string &name) {
    Instruction step{};
    step.kind = kind;
    step.index = index;
    step.name = name;
    return step;
  }

  void emitKernel(Operation *op, const KernelLaunch &launch) {
    Instruction step =
        instruction(Instruction::Kind::Kernel, launch.index, launch.info.name);
    addRefs(launch.buffers, step);
    step.results = llvm::count_if(launch.buffers, [&](Value value) {
      return value.getDefiningOp() == op;
    });
    step.count = launch.info.count;
    step.grain = launch.info.grain;
    entry.program.push_back(std::move(step));
  }

  LogicalResult emitCollective(spmd::CollectiveOpInterface op) {
    auto index = tables.add(op);
    if (failed(index))
      return failure();
    std::string name = nameOf(op, op.getMtpOp().str());
    Instruction start = instruction(Instruction::Kind::Start, *index, name);
    addRefs(op->getOperands(), start);
    addRefs(op->getResults(), start);
    entry.program.push_back(std::move(start));
    underWay.emplace_back(plan.doneStep(op),
                          instruction(Instruction::Kind::Done, *index, name));
    return success();
  }

  /// Ends the collectives that have to be done before `step`.
  void emitDone(int64_t step) {
    llvm::erase_if(underWay, [&](auto &pending) {
      if (pending.first > step)
        return false;
      entry.program.push_back(std::move(pending.second));
      return true;
    });
  }

  FailureOr<TensorDesc> describe(Operation *op, Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    auto dtype = dtypeOf(type.getElementType());
    if (!dtype)
      return op->emitOpError() << "has elements of type "
                               << type.getElementType() << ", which do not run";
    return TensorDesc{*dtype, vectorOf(type.getShape()),
                      vectorOf(plan.strides(value))};
  }

  /// The call that computes a product with its epilogue, unless something of
  /// it is kept from step to step.
  LogicalResult emitEpilogue(Operation *op) {
    int64_t size = epilogueSize(op);
    if (size == 0)
      return success();
    Operation *other = op;
    for (int64_t i = 0; i <= size; ++i, other = other->getNextNode())
      for (Value result : other->getResults())
        if (refOf(result).space == BufferRef::Space::Parameter)
          return success();
    if (failed(emitLibrary(op, callWithEpilogue(op))))
      return failure();
    entry.program.back().otherwise = 1 + size;
    return success();
  }

  LogicalResult emitLibrary(Operation *op, FailureOr<LibraryCall> call) {
    if (failed(call))
      return failure();
    LibrarySite site;
    site.kind = call->kind;
    site.attributes = std::move(call->attributes);
    site.results = call->results.size();
    Instruction step =
        instruction(Instruction::Kind::Library, 0, nameOf(op, call->kind));
    for (Value value : llvm::concat<Value>(call->inputs, call->results)) {
      auto desc = describe(op, value);
      if (failed(desc))
        return failure();
      site.operands.push_back(std::move(*desc));
      step.buffers.push_back(refOf(value));
    }
    step.index = tables.add(std::move(site));
    entry.program.push_back(std::move(step));
    return success();
  }

  func::FuncOp func;
  BufferPlan plan;
  SiteTables &tables;
  KernelModule &kernels;
  Artifact &artifact;
  Entry entry;
  llvm::DenseMap<Value, BufferRef> refs; ///< of homes that no op writes
  llvm::DenseSet<int64_t> storedTo;      ///< parameters
  /// Collectives, with the step before which they are done.
  std::vector<std::pair<int64_t, Instruction>> underWay;
};
} // namespace

/// The functions of the module, @main first, prepared; none after a diagnostic.
static SmallVector<func::FuncOp> preparedFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isDeclaration())
      continue;
    if (!func.getBody().hasOneBlock()) {
      func.emitError() << "has more than one block";
      return {};
    }
    bool isMain = func.getSymName() == "main";
    functions.insert(isMain ? functions.begin() : functions.end(), func);
  }
  if (functions.empty() || functions.front().getSymName() != "main") {
    module.emitError() << "there is no func.func @main with one block";
    return {};
  }
  llvm::for_each(functions, BufferPlan::prepare);
  return functions;
}

LogicalResult mtp::emitProgram(ModuleOp module, KernelModule &kernels,
                               Artifact &artifact) {
  MeshOp mesh = spmd::findMesh(module);
  if (!mesh)
    return failure();
  auto functions = preparedFunctions(module);
  SiteTables tables(artifact, mesh.getShape());
  for (func::FuncOp func : functions)
    if (failed(ProgramEmitter(func, tables, kernels, artifact).run()))
      return failure();
  if (functions.empty() || failed(tables.checkUpdates()))
    return failure();
  artifact.axes = meshOf(tables.meshShape());
  artifact.faults = kernels.faults();
  for (const KernelInfo &info : kernels.kernels())
    artifact.kernelNames.push_back(info.name);
  return success();
}

int64_t mtp::arenaBytesOf(ModuleOp module) {
  int64_t most = -1;
  for (func::FuncOp func : preparedFunctions(module))
    most = std::max(most, BufferPlan(func).arenaBytes());
  return most;
}
