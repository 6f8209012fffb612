// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/SiteTables.h"
#include "compiler/codegen/ArtifactTypes.h"
#include "compiler/codegen/Overlap.h"

using namespace mlir;
using namespace mtp;

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// Everything that makes two parameters different, as text.
static std::string keyOf(const Parameter &parameter) {
  nlohmann::json key = {parameter.name,
                        static_cast<int>(parameter.source.kind),
                        parameter.source.file,
                        parameter.source.offset,
                        name(parameter.source.type),
                        parameter.source.shape,
                        name(parameter.layout.type),
                        parameter.layout.shape,
                        parameter.trainable,
                        parameter.state,
                        parameter.partial};
  for (const RecipeStep &step : parameter.recipe)
    key.push_back({static_cast<int>(step.kind), step.values, step.dim,
                   step.start, step.size});
  for (const DimSharding &dim : parameter.layout.dims)
    key.push_back({dim.axes, dim.unit});
  return key.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int64_t SiteTables::intern(Parameter parameter) {
  auto [it, isNew] =
      parameterIndex.try_emplace(keyOf(parameter), artifact.parameters.size());
  if (isNew)
    artifact.parameters.push_back(std::move(parameter));
  return it->second;
}

FailureOr<Source> SiteTables::embed(Operation *op, ElementsAttr value) {
  auto type = dtypeOf(value.getElementType());
  auto elements = elementBytes(value);
  if (!type || !elements)
    return op->emitOpError()
           << "has a constant of type " << value.getShapedType()
           << " that cannot be stored";
  Source source;
  source.kind = Source::Kind::Embedded;
  source.type = *type;
  source.shape =
      vectorOf(cast<RankedTensorType>(value.getShapedType()).getShape());
  source.bytes = elements->size();
  auto [it, isNew] = dataOffset.try_emplace(*elements, 0);
  if (isNew) {
    artifact.data.resize(llvm::alignTo(artifact.data.size(), 64), '\0');
    it->second = artifact.data.size();
    artifact.data += *elements;
  }
  source.offset = it->second;
  return source;
}

FailureOr<Source> SiteTables::sourceOf(Operation *op,
                                       InitializerOp initializer) {
  if (auto value = initializer.getValue())
    return embed(op, *value);
  auto tensor = cast<RankedTensorType>(initializer.getType());
  auto type = dtypeOf(tensor.getElementType());
  if (!type)
    return op->emitOpError() << "reads elements of type "
                             << tensor.getElementType() << ", which do not run";
  Source source;
  source.file = initializer.getFile()->str();
  source.offset = *initializer.getOffset();
  source.bytes = *initializer.getBytes();
  source.sha256 = initializer.getSha256().value_or("").str();
  source.type = *type;
  source.shape = vectorOf(tensor.getShape());
  return source;
}

static RecipeStep recipeStep(RecipeStepAttr attr) {
  ArrayRef<int64_t> values = attr.getValues();
  RecipeStep step{};
  step.kind = attr.getKind() == "transpose" ? RecipeStep::Kind::Transpose
              : attr.getKind() == "slice"   ? RecipeStep::Kind::Slice
                                            : RecipeStep::Kind::Reshape;
  if (step.kind != RecipeStep::Kind::Slice) {
    step.values = vectorOf(values);
    return step;
  }
  step.dim = values[0];
  step.start = values[1];
  step.size = values[2];
  return step;
}

/// Zeros of an initializer's shape.
static Source zeros(InitializerOp initializer, DType type) {
  Source source;
  source.kind = Source::Kind::Zero;
  source.type = type;
  source.shape =
      vectorOf(cast<RankedTensorType>(initializer.getType()).getShape());
  return source;
}

/// Axes over which a stored tensor is a sum; fails if it is no state.
static FailureOr<std::vector<int>> partialAxes(spmd::ParameterOp op,
                                               const MeshShape &mesh) {
  auto global = cast<RankedTensorType>(op.getGlobalType());
  auto layout = toLayout(op, withLayout(global, op.getLayout()), mesh);
  if (failed(layout))
    return failure();
  std::vector<int> axes;
  for (auto [axis, state] : llvm::enumerate(layout->states))
    if (isPartial(state.kind))
      axes.push_back(axis);
  if (!axes.empty() && !op.getState())
    return op.emitOpError() << "is partial, and only states may be";
  return axes;
}

FailureOr<int64_t> SiteTables::add(spmd::ParameterOp op) {
  auto initializer = symbols.lookupNearestSymbolFrom<InitializerOp>(
      op, op.getSourceAttr());
  auto layout = tensorLayoutOf(op, cast<RankedTensorType>(op.getGlobalType()),
                               op.getLayout(), mesh);
  auto partial = partialAxes(op, mesh);
  if (failed(layout) || failed(partial))
    return failure();
  FailureOr<Source> source = zeros(initializer, layout->type);
  if (!op.getState())
    source = sourceOf(op, initializer);
  if (failed(source))
    return failure();
  Parameter parameter;
  parameter.state = op.getState().value_or("").str();
  parameter.partial = std::move(*partial);
  parameter.name = initializer.getSymName().str();
  parameter.source = std::move(*source);
  for (auto step : op.getRecipe().getAsRange<RecipeStepAttr>())
    parameter.recipe.push_back(recipeStep(step));
  parameter.layout = std::move(*layout);
  parameter.trainable = initializer.getParameter();
  return intern(std::move(parameter));
}

void SiteTables::markUpdated(spmd::StoreOp op, int64_t parameter) {
  Parameter &stored = artifact.parameters[parameter];
  stored.updated = true;
  if (stored.state.empty())
    updates.try_emplace(stored.name, op);
}

LogicalResult SiteTables::checkUpdates() const {
  for (const Parameter &parameter : artifact.parameters) {
    auto it = updates.find(parameter.name);
    if (it == updates.end() || parameter.updated || !parameter.state.empty())
      continue;
    spmd::StoreOp store = it->second;
    return store.emitOpError()
           << "updates a piece of @" << parameter.name
           << " of which another one is only read (layout "
           << (parameter.layout.text.empty() ? "whole" : parameter.layout.text)
           << "), and would keep its old value";
  }
  return success();
}

FailureOr<int64_t> SiteTables::add(ConstantOp op) {
  auto source = embed(op, op.getValue());
  if (failed(source))
    return failure();
  Parameter parameter;
  parameter.layout.type = source->type;
  parameter.layout.shape = source->shape;
  parameter.layout.dims.resize(source->shape.size());
  parameter.source = std::move(*source);
  return intern(std::move(parameter));
}

//===----------------------------------------------------------------------===//
// Rank values and library sites
//===----------------------------------------------------------------------===//

int64_t SiteTables::add(spmd::RankValueOp op) {
  RankValue value{};
  value.kind = op.getKind() == spmd::RankValueKind::offset
                   ? RankValue::Kind::Offset
               : op.getKind() == spmd::RankValueKind::valid
                   ? RankValue::Kind::Valid
                   : RankValue::Kind::Coordinate;
  value.extent = op.getCut().getExtent();
  value.sharding = shardingOf(toCut(op.getCut(), mesh));
  nlohmann::json key = {static_cast<int>(value.kind), value.extent,
                        value.sharding.axes, value.sharding.unit};
  auto [it, isNew] =
      rankValueIndex.try_emplace(key.dump(), artifact.rankValues.size());
  if (isNew)
    artifact.rankValues.push_back(std::move(value));
  return it->second;
}

int64_t SiteTables::add(LibrarySite site) {
  nlohmann::json key = {site.kind, site.attributes, site.results};
  for (const TensorDesc &desc : site.operands)
    key.push_back({name(desc.type), desc.shape, desc.strides});
  auto [it, isNew] =
      libraryIndex.try_emplace(key.dump(), artifact.librarySites.size());
  if (isNew)
    artifact.librarySites.push_back(std::move(site));
  return it->second;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static CollectiveSite::Kind kindOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, CollectiveSite::Kind>(op)
      .Case<spmd::AllGatherOp>(
          [](auto) { return CollectiveSite::Kind::AllGather; })
      .Case<spmd::ReduceScatterOp>(
          [](auto) { return CollectiveSite::Kind::ReduceScatter; })
      .Case<spmd::AllToAllOp>(
          [](auto) { return CollectiveSite::Kind::AllToAll; })
      .Case<spmd::PermuteOp>([](auto) { return CollectiveSite::Kind::Permute; })
      .Default([](auto) { return CollectiveSite::Kind::AllReduce; });
}

/// Names, cause and prediction, as the plan gave them.
static void addPlanned(Operation *op, CollectiveSite &site) {
  auto text = [&](StringRef name) {
    auto attr = op->getAttrOfType<StringAttr>(name);
    return attr ? attr.getValue().str() : std::string();
  };
  auto number = [&](StringRef name, int64_t otherwise) {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : otherwise;
  };
  site.node = text(spmd::names::node);
  if (site.node.empty())
    site.node = nodeName(op->getLoc());
  site.reason = text(spmd::names::reason);
  site.predictedCount = number(spmd::names::predictedCount, 1);
  site.predictedBytes = number(spmd::names::predictedBytes, 0);
}

FailureOr<int64_t> SiteTables::add(spmd::CollectiveOpInterface op) {
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  auto type = dtypeOf(from.getElementType());
  if (!type)
    return op->emitOpError() << "moves elements of type "
                             << from.getElementType() << ", which do not run";
  CollectiveSite site{};
  site.kind = kindOf(op);
  site.reduction =
      static_cast<CollectiveSite::Reduction>(op.getReductionKind());
  site.op = op.getMtpOp().str();
  SmallVector<int, 2> axes = spmd::findAxes(op.getAxes(), mesh);
  site.axes.assign(axes.begin(), axes.end());
  for (Attribute axis : op.getAxes())
    site.axisName += (site.axisName.empty() ? "" : ",") +
                     cast<StringAttr>(axis).getValue().str();
  site.type = *type;
  site.inShape = vectorOf(from.getShape());
  site.outShape = vectorOf(to.getShape());
  if (spmd::CutAttr cut = op.getChangedCut()) {
    site.dim = op.getChangedDim();
    site.extent = cut.getExtent();
    site.sharding = shardingOf(toCut(cut, mesh));
  }
  if (auto exchange = dyn_cast<spmd::AllToAllOp>(op.getOperation())) {
    site.splitDim = exchange.getSplitDim();
    site.splitExtent = exchange.getSplitCut().getExtent();
    site.splitSharding = shardingOf(toCut(exchange.getSplitCut(), mesh));
  }
  if (auto permute = dyn_cast<spmd::PermuteOp>(op.getOperation()))
    site.sourceOf = vectorOf(permute.getSourceOf());
  site.phase = op.getPhase().str();
  addPlanned(op, site);
  if (auto part = op->getAttrOfType<IntegerAttr>(kCollectivePart)) {
    if (part.getInt() == 0)
      wholeSite = static_cast<int64_t>(artifact.collectiveSites.size());
    else
      site.partOf = wholeSite;
  }
  artifact.collectiveSites.push_back(std::move(site));
  return artifact.collectiveSites.size() - 1;
}
