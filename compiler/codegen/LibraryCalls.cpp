// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/LibraryCalls.h"
#include "compiler/codegen/ArtifactTypes.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mtp;

namespace {

LibraryCall callOf(MatMulOp op) {
  LibraryCall call("matmul");
  call.attributes["transposeA"] = op.getTransposeLhs();
  call.attributes["transposeB"] = op.getTransposeRhs();
  return call;
}

LibraryCall callOf(spmd::MatmulOp op) {
  LibraryCall call("matmul");
  call.attributes["transposeA"] = op.getTransposeLhs();
  call.attributes["transposeB"] = op.getTransposeRhs();
  call.attributes["bias"] = op.getBias() != nullptr;
  call.attributes["activation"] =
      spmd::stringifyActivation(op.getActivation()).str();
  return call;
}

/// What attention and its gradient have in common.
template <typename Op>
void addAttentionAttributes(Op op, nlohmann::json &attributes) {
  attributes["scale"] = op.getScale().convertToDouble();
  attributes["mask"] = op.getMask() != nullptr;
  attributes["queryStart"] = op.getQueryStart() != nullptr;
  attributes["causal"] = op.getCausal();
  attributes["causalOffset"] = static_cast<int64_t>(op.getCausalOffset());
  if (!op.getSoftcap().isZero())
    attributes["softcap"] = op.getSoftcap().convertToDouble();
  attributes["maskedRow"] = op.getMaskedRowZero()      ? "zero"
                            : op.getMaskedRowUniform() ? "uniform"
                                                       : "softmax";
}

LibraryCall callOf(AttentionOp op) {
  LibraryCall call("attention");
  addAttentionAttributes(op, call.attributes);
  call.attributes["logsumexp"] = !isOmitted(op->getResult(1));
  return call;
}

LibraryCall callOf(AttentionGradientOp op) {
  LibraryCall call("attention_gradient");
  addAttentionAttributes(op, call.attributes);
  const char *names[] = {"queryGradient", "keyGradient", "valueGradient",
                         "maskGradient"};
  for (auto [name, result] : llvm::zip_equal(names, op->getResults()))
    call.attributes[name] = !isOmitted(result);
  return call;
}

LibraryCall callOf(ConvolutionOp op) {
  LibraryCall call("convolution");
  call.attributes["strides"] = vectorOf(op.getStrides());
  call.attributes["dilations"] = vectorOf(op.getDilations());
  call.attributes["pads"] = vectorOf(op.getPads());
  call.attributes["group"] = static_cast<int64_t>(op.getGroups());
  call.attributes["bias"] = false;
  return call;
}

template <typename Op>
LibraryCall convolutionGradientCall(Op op, const char *kind) {
  LibraryCall call(kind);
  call.attributes["strides"] = vectorOf(op.getStrides());
  call.attributes["dilations"] = vectorOf(op.getDilations());
  call.attributes["pads"] = vectorOf(op.getPads());
  call.attributes["group"] = static_cast<int64_t>(op.getGroups());
  return call;
}

LibraryCall callOf(GatherGradientOp op) {
  LibraryCall call("gather_gradient");
  call.attributes["axis"] = static_cast<int64_t>(op.getDim());
  return call;
}

LibraryCall callOf(TopKOp op) {
  LibraryCall call("topk");
  int64_t axis = op.getDim();
  call.attributes["axis"] = axis;
  call.attributes["k"] = op.getValues().getType().getDimSize(axis);
  call.attributes["largest"] = !op.getSmallest();
  call.attributes["sorted"] = true;
  return call;
}

template <typename Op> LibraryCall argCall(Op op, const char *kind) {
  LibraryCall call(kind);
  call.attributes["axis"] = static_cast<int64_t>(op.getDim());
  call.attributes["selectLastIndex"] = op.getLast();
  return call;
}

LibraryCall callOf(CumsumOp op) {
  LibraryCall call("cumsum");
  call.attributes["axis"] = static_cast<int64_t>(op.getDim());
  call.attributes["exclusive"] = op.getExclusive();
  call.attributes["reverse"] = op.getReverse();
  return call;
}

LibraryCall callOf(GatherNdOp op) {
  LibraryCall call("gather_nd");
  call.attributes["batchDims"] = static_cast<int64_t>(op.getBatchDims());
  return call;
}

LibraryCall callOf(ScatterElementsOp op) {
  LibraryCall call("scatter_elements");
  call.attributes["axis"] = static_cast<int64_t>(op.getDim());
  call.attributes["reduction"] = stringifyCombine(op.getCombine()).str();
  return call;
}

LibraryCall callOf(ScatterNdOp op) {
  LibraryCall call("scatter_nd");
  call.attributes["reduction"] = stringifyCombine(op.getCombine()).str();
  return call;
}

} // namespace

FailureOr<LibraryCall> mtp::libraryCallOf(Operation *op) {
  using Result = FailureOr<LibraryCall>;
  Result call =
      TypeSwitch<Operation *, Result>(op)
          .Case<MatMulOp, spmd::MatmulOp, AttentionOp, AttentionGradientOp,
                ConvolutionOp, TopKOp, CumsumOp, GatherNdOp, GatherGradientOp,
                ScatterElementsOp, ScatterNdOp>(
              [](auto kindOp) -> Result { return callOf(kindOp); })
          .Case([](ConvolutionInputGradientOp kindOp) -> Result {
            return convolutionGradientCall(kindOp,
                                           "convolution_input_gradient");
          })
          .Case([](ConvolutionFilterGradientOp kindOp) -> Result {
            return convolutionGradientCall(kindOp,
                                           "convolution_filter_gradient");
          })
          .Case([](ArgMaxOp kindOp) -> Result {
            return argCall(kindOp, "argmax");
          })
          .Case([](ArgMinOp kindOp) -> Result {
            return argCall(kindOp, "argmin");
          })
          .Default([](Operation *other) -> Result {
            return other->emitOpError()
                   << "has neither a kernel nor a library call";
          });
  if (failed(call))
    return failure();
  call->inputs.append(op->operand_begin(), op->operand_end());
  for (OpResult result : op->getResults())
    if (!isOmitted(result))
      call->results.push_back(result);
  return call;
}

bool mtp::takesStrides(Operation *op, unsigned operand) {
  if (isa<AttentionGradientOp>(op)) {
    // Those of the attention, then its results and the cotangent.
    unsigned last = op->getNumOperands() - 1;
    return operand < 3 || operand == last - 2 || operand == last;
  }
  return isa<AttentionOp>(op) && operand < 3;
}
bool mtp::givesStrides(Operation *op, unsigned result) {
  return (isa<AttentionOp>(op) && result == 0) ||
         (isa<AttentionGradientOp>(op) && result < 3);
}
bool mtp::isOmitted(OpResult result) {
  Operation *op = result.getOwner();
  return result.use_empty() &&
         (isa<AttentionGradientOp>(op) ||
          (isa<AttentionOp>(op) && result.getResultNumber() == 1));
}
