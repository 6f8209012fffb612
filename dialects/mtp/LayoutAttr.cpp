// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LayoutAttr.cpp - #mtp.layout and mtp.mesh --------------------------===//

#include "dialects/mtp/MtpDialect.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mtp;

//===----------------------------------------------------------------------===//
// #mtp.layout
//===----------------------------------------------------------------------===//

/// `tp` | `tp.0`.
static ParseResult parseAxisName(AsmParser &parser, StringAttr &axis) {
  std::string name;
  if (parser.parseKeywordOrString(&name))
    return failure();
  axis = parser.getBuilder().getStringAttr(name);
  return success();
}

/// `R` | `P(sum)` | `S(2, unit 64)`.
static ParseResult parseState(AsmParser &parser, LayoutEntry &entry) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  if (keyword == "R") {
    entry.kind = Kind::R;
    return success();
  }
  if (keyword == "P") {
    StringRef reduction;
    if (parser.parseLParen() || parser.parseKeyword(&reduction) ||
        parser.parseRParen())
      return failure();
    if (reduction != "sum" && reduction != "max" && reduction != "min")
      return parser.emitError(loc) << "unknown reduction '" << reduction << "'";
    entry.kind = reduction == "sum"   ? Kind::PSum
                 : reduction == "max" ? Kind::PMax
                                      : Kind::PMin;
    return success();
  }
  if (keyword != "S")
    return parser.emitError(loc) << "unknown state '" << keyword
                                 << "': expected R, S(dim) or P(reduction)";
  entry.kind = Kind::S;
  if (parser.parseLParen() || parser.parseInteger(entry.dim))
    return failure();
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("unit") || parser.parseInteger(entry.unit)))
    return failure();
  return parser.parseRParen();
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<LayoutEntry> entries;
  if (parser.parseLess() || parser.parseAttribute(mesh))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    LayoutEntry entry;
    if (parseAxisName(parser, entry.axis) || parser.parseEqual() ||
        parseState(parser, entry))
      return {};
    entries.push_back(entry);
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), mesh, entries);
}

static void printState(AsmPrinter &printer, const LayoutEntry &entry) {
  switch (entry.kind) {
  case Kind::I:
    printer << "I";
    break;
  case Kind::R:
    printer << "R";
    break;
  case Kind::PSum:
    printer << "P(sum)";
    break;
  case Kind::PMax:
    printer << "P(max)";
    break;
  case Kind::PMin:
    printer << "P(min)";
    break;
  case Kind::S:
    printer << "S(" << entry.dim;
    if (entry.unit != 1)
      printer << ", unit " << entry.unit;
    printer << ")";
  }
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMesh();
  for (const LayoutEntry &entry : getEntries()) {
    printer << ", ";
    printer.printKeywordOrString(entry.axis.getValue());
    printer << " = ";
    printState(printer, entry);
  }
  printer << ">";
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                           function_ref<InFlightDiagnostic()> emitError) const {
  llvm::SmallSet<StringRef, 4> seen;
  Kind partial = Kind::I;
  for (const LayoutEntry &entry : getEntries()) {
    if (!seen.insert(entry.axis.getValue()).second)
      return emitError() << "axis " << entry.axis.getValue()
                         << " is given twice";
    if (entry.kind == Kind::S &&
        (entry.dim < 0 || entry.dim >= static_cast<int64_t>(shape.size())))
      return emitError() << "axis " << entry.axis.getValue()
                         << " shards dimension " << entry.dim
                         << " of a tensor of rank " << shape.size();
    if (entry.kind == Kind::S && entry.unit < 1)
      return emitError() << "axis " << entry.axis.getValue() << ": unit "
                         << entry.unit << " is not positive";
    if (!isPartial(entry.kind))
      continue;
    if (partial != Kind::I && partial != entry.kind)
      return emitError() << "a tensor has at most one kind of reduction";
    partial = entry.kind;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// mtp.mesh
//===----------------------------------------------------------------------===//

/// `@mesh <dp = 2, tp = 2 x 2>`.
ParseResult MeshOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr symbol;
  SmallVector<Attribute> names, factors;
  Builder &builder = parser.getBuilder();
  auto parseAxis = [&]() -> ParseResult {
    StringAttr name;
    SmallVector<int64_t> sizes(1);
    if (parseAxisName(parser, name) || parser.parseEqual() ||
        parser.parseInteger(sizes[0]))
      return failure();
    while (succeeded(parser.parseOptionalKeyword("x")))
      if (parser.parseInteger(sizes.emplace_back()))
        return failure();
    names.push_back(name);
    factors.push_back(builder.getDenseI64ArrayAttr(sizes));
    return success();
  };
  if (parser.parseSymbolName(symbol, "sym_name", state.attributes) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseAxis) ||
      parser.parseOptionalAttrDict(state.attributes))
    return failure();
  state.addAttribute("axis_names", builder.getArrayAttr(names));
  state.addAttribute("axis_factors", builder.getArrayAttr(factors));
  return success();
}

void MeshOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " <";
  llvm::interleaveComma(
      llvm::zip_equal(getAxisNames(), getAxisFactors()), printer,
      [&](auto axis) {
        auto [name, factors] = axis;
        printer.printKeywordOrString(cast<StringAttr>(name).getValue());
        printer << " = ";
        llvm::interleave(cast<DenseI64ArrayAttr>(factors).asArrayRef(), printer,
                         " x ");
      });
  printer << ">";
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {"sym_name", "axis_names", "axis_factors"});
}

LogicalResult MeshOp::verify() {
  if (getAxisNames().size() != getAxisFactors().size())
    return emitOpError() << "has " << getAxisNames().size() << " names for "
                         << getAxisFactors().size() << " axes";
  llvm::SmallSet<StringRef, 4> seen;
  int64_t ranks = 1;
  for (auto [name, factors] :
       llvm::zip_equal(getAxisNames(), getAxisFactors())) {
    StringRef axis = cast<StringAttr>(name).getValue();
    if (!seen.insert(axis).second)
      return emitOpError() << "axis " << axis << " is given twice";
    auto sizes = dyn_cast<DenseI64ArrayAttr>(factors);
    if (!sizes || sizes.empty())
      return emitOpError() << "axis " << axis << " has no size";
    for (int64_t size : sizes.asArrayRef()) {
      if (size < 1 || size > 65536 || (ranks *= size) > 65536)
        return emitOpError()
               << "axis " << axis << " of size " << size
               << ": sizes are positive and a mesh has at most 65536 ranks";
    }
  }
  return success();
}

MeshShape MeshOp::getShape() {
  MeshShape mesh;
  mesh.symbol = getSymName().str();
  for (auto [name, factors] :
       llvm::zip_equal(getAxisNames(), getAxisFactors())) {
    ArrayRef<int64_t> sizes = cast<DenseI64ArrayAttr>(factors).asArrayRef();
    for (auto [part, size] : llvm::enumerate(sizes))
      mesh.axes.push_back({cast<StringAttr>(name).getValue().str(),
                           sizes.size() == 1 ? -1 : static_cast<int>(part),
                           size});
  }
  return mesh;
}

//===----------------------------------------------------------------------===//
// Between attribute and algorithm data
//===----------------------------------------------------------------------===//

LayoutAttr mtp::layoutOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding())
                : LayoutAttr();
}

RankedTensorType mtp::withLayout(RankedTensorType type, LayoutAttr layout) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), layout);
}

MeshOp mtp::lookupMesh(Operation *from, FlatSymbolRefAttr symbol) {
  return SymbolTable::lookupNearestSymbolFrom<MeshOp>(from, symbol);
}

FailureOr<Layout> mtp::toLayout(Operation *op, RankedTensorType type,
                                const MeshShape &mesh) {
  LayoutAttr attr = layoutOf(type);
  if (!attr)
    return op->emitOpError() << "has a tensor type without a layout: " << type;
  Layout layout(mesh.size(), type.getRank());
  for (const LayoutEntry &entry : attr.getEntries()) {
    SmallVector<int, 2> axes = mesh.find(entry.axis.getValue());
    if (axes.empty())
      return op->emitOpError() << "mesh @" << mesh.symbol << " has no axis "
                               << entry.axis.getValue();
    for (int axis : axes) {
      if (layout.states[axis].kind != Kind::I)
        return op->emitOpError()
               << "axis " << mesh.axes[axis].name() << " is given twice";
      if (entry.kind != Kind::S) {
        layout.states[axis] = {entry.kind, -1};
        continue;
      }
      DimCut &cut = layout.dims[entry.dim];
      if (!cut.axes.empty() && cut.unit != entry.unit)
        return op->emitOpError()
               << "dimension " << entry.dim << " is cut in units of "
               << cut.unit << " and of " << entry.unit;
      layout.shard(axis, entry.dim);
      cut.unit = entry.unit;
    }
  }
  Layout canonical = layout;
  canonical.canonicalize(type.getShape(), mesh);
  if (toAttr(op->getContext(), canonical, mesh) != attr)
    return op->emitOpError()
           << "the layout of " << type << " is written <@" << mesh.symbol
           << (canonical.isInvariant() ? "" : ", ") << canonical.text(mesh)
           << ">";
  return canonical;
}

LayoutAttr mtp::toAttr(MLIRContext *context, const Layout &layout,
                       const MeshShape &mesh) {
  SmallVector<LayoutEntry> entries;
  auto add = [&](const std::string &axis, Kind kind, int64_t dim,
                 int64_t unit) {
    entries.push_back({StringAttr::get(context, axis), kind, dim, unit});
  };
  for (auto [dim, cut] : llvm::enumerate(layout.dims))
    for (const std::string &name : mesh.names(cut.axes))
      add(name, Kind::S, dim, cut.unit);
  for (Kind kind : {Kind::R, Kind::PSum, Kind::PMax, Kind::PMin}) {
    SmallVector<int> axes;
    for (auto [axis, state] : llvm::enumerate(layout.states))
      if (state.kind == kind)
        axes.push_back(axis);
    for (const std::string &name : mesh.names(axes))
      add(name, kind, -1, 1);
  }
  return LayoutAttr::get(context, FlatSymbolRefAttr::get(context, mesh.symbol),
                         entries);
}
