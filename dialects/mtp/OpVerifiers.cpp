// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpVerifiers.cpp - constraints beyond sharding, folds, work ---------===//

#include "dialects/mtp/RuleSupport.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mtp;

//===----------------------------------------------------------------------===//
// Module ops
//===----------------------------------------------------------------------===//

LogicalResult InitializerOp::verify() {
  bool stored = getFile() && getOffset() && getBytes();
  if (stored == getValue().has_value())
    return emitOpError() << "needs either a value or file, offset and bytes";
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return emitOpError() << "needs a static shape, has " << type;
  if (getValue() && getValue()->getShapedType() != type)
    return emitOpError() << "has a value of type "
                         << getValue()->getShapedType();
  if (!stored)
    return success();
  int64_t element = llvm::divideCeil(type.getElementTypeBitWidth(), 8), size;
  if (llvm::MulOverflow(type.getNumElements(), element, size) ||
      size != static_cast<int64_t>(*getBytes()))
    return emitOpError() << "has " << *getBytes() << " bytes for " << type;
  if (static_cast<int64_t>(*getOffset()) < 0)
    return emitOpError() << "has a negative offset " << *getOffset();
  return success();
}

/// Shape after the steps, or failure with a diagnostic.
static FailureOr<SmallVector<int64_t>>
applyRecipe(Operation *op, ArrayAttr recipe, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> current(shape);
  int64_t rank = current.size();
  for (auto step : recipe.getAsRange<RecipeStepAttr>()) {
    ArrayRef<int64_t> values = step.getValues();
    rank = current.size();
    if (step.getKind() == "transpose") {
      SmallVector<int64_t> sorted(values);
      llvm::sort(sorted);
      if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
        return op->emitOpError()
               << "recipe: not a permutation of " << rank << " dimensions";
      SmallVector<int64_t> next;
      for (int64_t dim : values)
        next.push_back(current[dim]);
      current = next;
    } else if (step.getKind() == "slice") {
      if (values.size() != 3 || values[0] < 0 || values[0] >= rank ||
          values[1] < 0 || values[2] < 0 ||
          values[1] > current[values[0]] - values[2])
        return op->emitOpError()
               << "recipe: the slice does not lie in the tensor";
      current[values[0]] = values[2];
    } else if (step.getKind() == "reshape") {
      int64_t from = 1, to = 1;
      for (int64_t extent : current)
        from *= extent;
      for (int64_t extent : values)
        to *= extent;
      if (from != to)
        return op->emitOpError()
               << "recipe: cannot turn " << from << " elements into " << to;
      current.assign(values.begin(), values.end());
    } else {
      return op->emitOpError()
             << "recipe: unknown step '" << step.getKind() << "'";
    }
  }
  return current;
}

/// A stored piece: `source` exists and the recipe gives the result's shape.
static LogicalResult verifyPiece(Operation *op, FlatSymbolRefAttr source,
                                 ArrayAttr recipe,
                                 SymbolTableCollection &symbols) {
  auto initializer = symbols.lookupNearestSymbolFrom<InitializerOp>(op, source);
  if (!initializer)
    return op->emitOpError() << "there is no mtp.initializer " << source;
  auto shape = applyRecipe(
      op, recipe, cast<RankedTensorType>(initializer.getType()).getShape());
  if (failed(shape))
    return failure();
  if (typeOf(op->getResult(0)).getShape() != ArrayRef<int64_t>(*shape))
    return op->emitOpError()
           << "the recipe gives another shape than the result's";
  return success();
}

LogicalResult ParameterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPiece(*this, getSourceAttr(), getRecipe(), symbols);
}

LogicalResult StateOp::verify() {
  if (getName().empty())
    return emitOpError() << "has no name";
  return success();
}

LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPiece(*this, getSourceAttr(), getRecipe(), symbols);
}

LogicalResult StoreOp::verify() {
  Operation *source = getStored().getDefiningOp();
  if (!isa_and_nonnull<ParameterOp, StateOp>(source))
    return emitOpError()
           << "replaces a value that no mtp.parameter or mtp.state gave";
  if (getValue().getType() != getStored().getType())
    return emitOpError() << "replaces " << getStored().getType() << " by "
                         << getValue().getType();
  for (Operation *user : getStored().getUsers())
    if (auto other = dyn_cast<StoreOp>(user))
      if (other != *this && other.getStored() == getStored())
        return emitOpError() << "replaces a tensor that is replaced already";
  return success();
}

void ConstantOp::build(OpBuilder &, OperationState &state, ElementsAttr value) {
  state.addAttribute("value", value);
  state.addTypes(cast<RankedTensorType>(value.getShapedType()));
}

/// `dense<0.5> : tensor<f32>`, followed by `in` and the type if it has a
/// layout.
ParseResult ConstantOp::parse(OpAsmParser &parser, OperationState &state) {
  ElementsAttr value;
  if (parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseAttribute(value, "value", state.attributes))
    return failure();
  Type type = value.getShapedType();
  if (succeeded(parser.parseOptionalKeyword("in")) && parser.parseType(type))
    return failure();
  state.addTypes(type);
  return success();
}

void ConstantOp::print(OpAsmPrinter &printer) {
  printer.printOptionalAttrDict((*this)->getAttrs(), {"value"});
  printer << " " << getValue();
  if (layoutOf(getResult().getType()))
    printer << " in " << getResult().getType();
}

LogicalResult ConstantOp::verify() {
  auto type = typeOf(getResult());
  if (getValue().getShapedType() != withLayout(type, {}))
    return emitOpError() << "has a value of type " << getValue().getShapedType()
                         << " and a result of type " << type;
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

//===----------------------------------------------------------------------===//
// Shape ops
//===----------------------------------------------------------------------===//

LogicalResult StridedSliceOp::verify() {
  int64_t size = typeOf(getResult()).getDimSize(getDim()),
          extent = typeOf(getInput()).getDimSize(getDim());
  int64_t start = getStart(), step = getStep();
  if (step == 0)
    return emitOpError() << "step is zero";
  if (size == 0)
    return success();
  int64_t span, last;
  if (llvm::MulOverflow(size - 1, step, span) ||
      llvm::AddOverflow(start, span, last) || start < 0 || start >= extent ||
      last < 0 || last >= extent)
    return emitOpError() << "elements " << start << " in steps of " << step
                         << ", " << size << " of them, do not lie in dimension "
                         << getDim() << " of size " << extent;
  return success();
}

LogicalResult ConcatOp::verify() {
  int64_t sum = 0, dim = getDim();
  for (Value input : getInputs())
    sum += typeOf(input).getDimSize(dim);
  if (sum != typeOf(getResult()).getDimSize(dim))
    return emitOpError() << "sizes along dimension " << dim << " add up to "
                         << sum << ", the result has "
                         << typeOf(getResult()).getDimSize(dim);
  return success();
}

LogicalResult PadOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  int64_t rank = from.getRank();
  if (static_cast<int64_t>(getLow().size()) != rank ||
      static_cast<int64_t>(getHigh().size()) != rank)
    return emitOpError() << "low and high need " << rank << " entries";
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t low = getLow()[dim], high = getHigh()[dim];
    if (low < 0 || high < 0 ||
        from.getDimSize(dim) + low + high != to.getDimSize(dim))
      return emitOpError() << "dimension " << dim << ": "
                           << from.getDimSize(dim) << " padded by " << low
                           << " and " << high << " is not "
                           << to.getDimSize(dim);
  }
  return success();
}

LogicalResult GatherOp::verify() {
  if (typeOf(getIndices()).getElementType().isInteger() &&
      !typeOf(getIndices()).getElementType().isInteger(1))
    return success();
  return emitOpError() << "indices are "
                       << typeOf(getIndices()).getElementType()
                       << ", expected integers";
}

LogicalResult TopKOp::verify() {
  int64_t k = typeOf(getValues()).getDimSize(getDim()),
          extent = typeOf(getInput()).getDimSize(getDim());
  if (k > extent || typeOf(getIndices()).getDimSize(getDim()) != k)
    return emitOpError() << "takes " << k << " of " << extent << " elements";
  return success();
}

LogicalResult RotaryOp::verify() {
  int64_t half = typeOf(getCos()).getShape().back(),
          width = typeOf(getInput()).getShape().back();
  if (typeOf(getCos()).getShape() != typeOf(getSin()).getShape() ||
      2 * half > width)
    return emitOpError() << "cos and sin need one shape and at most "
                         << width / 2
                         << " elements in the last dimension, have " << half;
  return success();
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

LogicalResult ConvolutionOp::verify() {
  auto input = typeOf(getInput()), filter = typeOf(getFilter()),
       result = typeOf(getResult());
  int64_t spatial = input.getRank() - 2, groups = getGroups();
  auto has = [](ArrayRef<int64_t> values, int64_t size) {
    return static_cast<int64_t>(values.size()) == size;
  };
  if (!has(getStrides(), spatial) || !has(getDilations(), spatial) ||
      !has(getPads(), 2 * spatial))
    return emitOpError() << "needs " << spatial << " strides and dilations and "
                         << 2 * spatial << " pads";
  if (groups < 1 || input.getDimSize(1) != filter.getDimSize(1) * groups ||
      filter.getDimSize(0) % groups != 0)
    return emitOpError() << input.getDimSize(1) << " channels and "
                         << filter.getDimSize(0) << " filters of "
                         << filter.getDimSize(1) << " channels do not fit "
                         << groups << " groups";
  for (int64_t dim = 0; dim < spatial; ++dim) {
    int64_t stride = getStrides()[dim], dilation = getDilations()[dim];
    int64_t window = dilation * (filter.getDimSize(dim + 2) - 1) + 1;
    int64_t padded =
        input.getDimSize(dim + 2) + getPads()[dim] + getPads()[dim + spatial];
    if (stride < 1 || dilation < 1 || getPads()[dim] < 0 ||
        getPads()[dim + spatial] < 0 || padded < window ||
        (padded - window) / stride + 1 != result.getDimSize(dim + 2))
      return emitOpError()
             << "spatial dimension " << dim << ": result size "
             << result.getDimSize(dim + 2)
             << " does not follow from input, window, stride and pads";
  }
  return success();
}

LogicalResult AttentionOp::verify() {
  if (getSoftcap().convertToDouble() < 0)
    return emitOpError() << "softcap is negative";
  if (getMaskedRowZero() && getMaskedRowUniform())
    return emitOpError() << "a row without any key cannot be zero and uniform";
  if (getQueryStart() && typeOf(getQueryStart()).getRank() != 0)
    return emitOpError() << "query_start is a scalar";
  return success();
}

static int64_t product(ArrayRef<int64_t> shape) {
  int64_t result = 1;
  for (int64_t extent : shape)
    result *= extent;
  return result;
}

int64_t MatMulOp::getFlops(ArrayRef<SmallVector<int64_t>> operands,
                           ArrayRef<SmallVector<int64_t>> results) {
  return 2 * product(results[0]) *
         operands[0].rbegin()[getTransposeLhs() ? 1 : 0];
}

int64_t ConvolutionOp::getFlops(ArrayRef<SmallVector<int64_t>> operands,
                                ArrayRef<SmallVector<int64_t>> results) {
  return 2 * product(results[0]) *
         product(ArrayRef<int64_t>(operands[1]).drop_front());
}

int64_t AttentionOp::getFlops(ArrayRef<SmallVector<int64_t>> operands,
                              ArrayRef<SmallVector<int64_t>>) {
  ArrayRef<int64_t> q = operands[0], v = operands[2];
  return 2 * q[0] * q[1] * q[2] * v[2] * (q[3] + v[3]);
}
