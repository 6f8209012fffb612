// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ImporterValues.cpp - constants and weights as mtp values -----------===//

#include "compiler/frontend/onnx/import/Importer.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

/// Constants up to this many bytes stand in the IR; larger ones are
/// initializers.
static constexpr int64_t kInlineBytes = 1024;
/// Largest initializer whose elements are read where an operator must know
/// them.
static constexpr int64_t kMostLoaded = int64_t(1) << 16;

/// Small integers and scalars are known; all else stays where it lies.
EntryRef Importer::tensorEntry(const Tensor &tensor, const std::string &name,
                               bool isInitializer) {
  auto entry = std::make_shared<Entry>();
  entry->name = name;
  entry->shape = tensor.shape;
  if (!tensor.foreignType.empty()) {
    entry->unknown = true;
    return entry;
  }
  entry->type = effective(tensor.type);
  bool isVector = llvm::count_if(tensor.shape, [](int64_t extent) {
                    return extent != 1;
                  }) <= 1;
  bool small = tensor.shape.empty() || tensor.elements() == 0 ||
               (isFloat(tensor.type)
                    ? !isInitializer && tensor.elements() * 8 <= kInlineBytes
                    : isVector && tensor.elements() <= kMostLoaded);
  if (small)
    entry->constant = std::make_shared<Constant>(load(tensor, entry->type));
  else {
    entry->weight = &tensor;
    entry->isParameter = isInitializer && isFloat(tensor.type);
  }
  return entry;
}

Location Importer::locationOf(const std::string &node,
                              const std::string &value) {
  return NameLoc::get(StringAttr::get(&context, node),
                      NameLoc::get(StringAttr::get(&context, value)));
}

EntryRef Importer::constantEntry(Constant value, std::string name) {
  auto entry = std::make_shared<Entry>();
  entry->name = std::move(name);
  entry->type = value.type;
  entry->shape = value.shape;
  entry->constant = std::make_shared<Constant>(std::move(value));
  return entry;
}

EntryRef Importer::valueEntry(Value value, std::string name) {
  auto entry = std::make_shared<Entry>();
  entry->name = std::move(name);
  entry->type = dtypeOf(elementOf(value));
  entry->shape.assign(shapeOf(value).begin(), shapeOf(value).end());
  entry->value = value;
  return entry;
}

std::shared_ptr<const Constant> Importer::constantOf(const EntryRef &entry) {
  if (entry->constant || !entry->weight ||
      entry->weight->elements() > kMostLoaded)
    return entry->constant;
  auto &constant = loaded[entry->name];
  if (!constant)
    constant = std::make_shared<Constant>(load(*entry->weight, entry->type));
  return constant;
}

Value Importer::materialize(const EntryRef &entry) {
  if (entry->value)
    return entry->value;
  if (entry->isSequence)
    throw Unsupported{"a sequence is used as a tensor"};
  entry->value = entry->weight ? emitWeight(*entry->weight, entry->name,
                                            entry->type, entry->isParameter)
                               : emitConstant(*entry->constant, entry->name);
  return entry->value;
}

Value Importer::emitConstant(const Constant &value, const std::string &name) {
  OpBuilder::InsertionGuard guard(body);
  Location loc = locationOf(name, name);
  if (Value counter = emitProgression(value, loc))
    return counter;
  Type element = elementType(&context, value.type);
  auto type = RankedTensorType::get(value.shape, element);
  int64_t n = value.splat ? 1 : value.elements();
  SmallVector<mlir::Attribute> elements;
  bool same = true;
  for (int64_t i = 0; i < n; ++i)
    same &= value.holdsFloats() ? std::bit_cast<int64_t>(value.floatAt(i)) ==
                                      std::bit_cast<int64_t>(value.floatAt(0))
                                : value.intAt(i) == value.intAt(0);
  for (int64_t i = 0; i < (same && n ? 1 : n); ++i) {
    if (auto floating = dyn_cast<FloatType>(element)) {
      APFloat number(value.floatAt(i));
      bool lost;
      number.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                     &lost);
      elements.push_back(FloatAttr::get(element, number));
    } else {
      elements.push_back(IntegerAttr::get(
          element, APInt(element.getIntOrFloatBitWidth(),
                         static_cast<uint64_t>(value.intAt(i)), false, true)));
    }
  }
  auto dense = DenseElementsAttr::get(type, elements);
  if (same || value.elements() * byteSize(value.type) <= kInlineBytes)
    return ConstantOp::create(body, loc, dense);
  std::string symbol = uniqueSymbol(name);
  InitializerOp::create(top, loc, symbol, type, StringAttr(), IntegerAttr(),
                        IntegerAttr(), StringAttr(), dense,
                        /*parameter=*/false);
  return ParameterOp::create(body, loc, type,
                             FlatSymbolRefAttr::get(&context, symbol),
                             body.getArrayAttr({}));
}

/// A vector of integers a, a + d, a + 2d, .. counts: later passes see
/// positions.
Value Importer::emitProgression(const Constant &value, Location loc) {
  int64_t n = value.elements();
  if (value.splat || value.holdsFloats() || value.type == DType::Bool || n < 3)
    return {};
  int64_t step = value.intAt(1) - value.intAt(0), dim = -1;
  for (auto [d, extent] : llvm::enumerate(value.shape))
    if (extent == n)
      dim = d;
  if (dim < 0 || step == 0)
    return {};
  for (int64_t i = 1; i < n; ++i)
    if (value.intAt(i) - value.intAt(i - 1) != step)
      return {};
  Emit emit(body, loc);
  Type element = elementType(&context, value.type);
  Value counter = emit.iota(value.shape, dim, element);
  if (step != 1)
    counter = emit.binary<MulOp>(
        counter, emit.scalar(element, static_cast<double>(step)));
  if (value.intAt(0) != 0)
    counter = emit.binary<AddOp>(
        counter, emit.scalar(element, static_cast<double>(value.intAt(0))));
  return counter;
}

Value Importer::emitWeight(const Tensor &tensor, const std::string &name,
                           DType type, bool isParameter) {
  Value &value = weightValues[{&tensor, type}];
  if (value)
    return value;
  Location loc = locationOf(name, name);
  FlatSymbolRefAttr &symbol = weightSymbols[&tensor];
  if (!symbol) {
    auto stored =
        RankedTensorType::get(tensor.shape, elementType(&context, tensor.type));
    symbol = FlatSymbolRefAttr::get(&context, uniqueSymbol(name));
    if (tensor.file) {
      InitializerOp::create(top, loc, symbol.getValue(), stored,
                            top.getStringAttr(tensor.file->path()),
                            top.getI64IntegerAttr(tensor.offset),
                            top.getI64IntegerAttr(tensor.bytes), StringAttr(),
                            ElementsAttr(), isParameter);
    } else {
      Constant constant = load(tensor, tensor.type);
      std::string bytes = bytesOf(constant);
      bool isBool = tensor.type == DType::Bool;
      SmallVector<bool> bools;
      for (int64_t i = 0; isBool && i < constant.elements(); ++i)
        bools.push_back(constant.intAt(i));
      DenseElementsAttr dense =
          isBool ? DenseElementsAttr::get(stored, bools)
                 : DenseElementsAttr::getFromRawBuffer(
                       stored, ArrayRef<char>(bytes.data(), bytes.size()));
      InitializerOp::create(top, loc, symbol.getValue(), stored, StringAttr(),
                            IntegerAttr(), IntegerAttr(), StringAttr(), dense,
                            isParameter);
    }
  }
  OpBuilder::InsertionGuard guard(body);
  body.setInsertionPointToStart(&main.getBody().front());
  value = ParameterOp::create(
      body, loc,
      RankedTensorType::get(tensor.shape, elementType(&context, type)), symbol,
      body.getArrayAttr({}));
  return value;
}

std::string Importer::uniqueSymbol(const std::string &name) {
  std::string symbol = name;
  for (int i = 1;
       !symbols.insert(symbol).second || symbol == "main" || symbol == "mesh";
       ++i)
    symbol = name + "#" + std::to_string(i);
  return symbol;
}
