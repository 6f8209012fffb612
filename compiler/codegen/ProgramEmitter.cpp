// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/ProgramEmitter.h"
#include "compiler/codegen/ArtifactTypes.h"
#include "compiler/codegen/BufferPlan.h"
#include "compiler/codegen/LibraryCalls.h"
#include "compiler/codegen/SiteTables.h"

using namespace mlir;
using namespace mtp;

namespace {
class ProgramEmitter {
public:
  ProgramEmitter(func::FuncOp func, MeshShape mesh, KernelModule &kernels,
                 Artifact &artifact)
      : func(func), plan(func), tables(artifact, std::move(mesh)),
        kernels(kernels), artifact(artifact) {}

  LogicalResult run() {
    entry.name = "forward";
    if (failed(addInputs()) || failed(addOutputs()))
      return failure();
    for (Operation &op : func.getBody().front())
      if (failed(emit(&op)))
        return failure();
    entry.arenaBytes = plan.arenaBytes();
    artifact.axes = meshOf(tables.meshShape());
    artifact.faults = kernels.faults();
    for (const KernelInfo &info : kernels.kernels())
      artifact.kernelNames.push_back(info.name);
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
    if (isa<func::ReturnOp>(op) || plan.isFolded(op))
      return success();
    if (isa<spmd::ParameterOp, spmd::RankValueOp, ConstantOp>(op))
      return op->use_empty() ? success() : emitSource(op);
    if (auto collective = dyn_cast<spmd::CollectiveOpInterface>(op))
      return emitCollective(collective);
    if (isa<spmd::FusedOp>(op) || isFusible(op))
      return emitKernel(op);
    return emitLibrary(op);
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
    if (auto place = plan.place(home))
      return *place;
    return refs.lookup(home);
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

  LogicalResult emitKernel(Operation *op) {
    KernelInfo info;
    auto index = kernels.add(op, info);
    if (failed(index))
      return failure();
    Instruction step =
        instruction(Instruction::Kind::Kernel, *index, info.name);
    addRefs(op->getOperands(), step);
    addRefs(op->getResults(), step);
    step.count = info.count;
    step.grain = info.grain;
    entry.program.push_back(std::move(step));
    return success();
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
    entry.program.push_back(instruction(Instruction::Kind::Done, *index, name));
    return success();
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

  LogicalResult emitLibrary(Operation *op) {
    auto call = libraryCallOf(op);
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
  SiteTables tables;
  KernelModule &kernels;
  Artifact &artifact;
  Entry entry;
  llvm::DenseMap<Value, BufferRef> refs; ///< of homes that no op writes
};
} // namespace

/// @main with its outputs copied where they must be; null after a diagnostic.
static func::FuncOp preparedMain(ModuleOp module) {
  auto func = module.lookupSymbol<func::FuncOp>("main");
  if (!func || !func.getBody().hasOneBlock()) {
    module.emitError() << "there is no func.func @main with one block";
    return {};
  }
  BufferPlan::copyOutputs(func);
  return func;
}

LogicalResult mtp::emitProgram(ModuleOp module, KernelModule &kernels,
                               Artifact &artifact) {
  MeshOp mesh = spmd::findMesh(module);
  func::FuncOp func = preparedMain(module);
  if (!mesh || !func)
    return failure();
  return ProgramEmitter(func, mesh.getShape(), kernels, artifact).run();
}

int64_t mtp::arenaBytesOf(ModuleOp module) {
  func::FuncOp func = preparedMain(module);
  return func ? BufferPlan(func).arenaBytes() : -1;
}
