// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Importer.cpp - the walk over the model -----------------------------===//

#include "compiler/frontend/onnx/import/Importer.h"
#include "compiler/frontend/onnx/DimBinder.h"
#include "compiler/frontend/onnx/import/InputRanges.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

Importer::Importer(const Model &model, const ReadOptions &options,
                   MLIRContext &context, std::vector<std::string> &warnings)
    : model(model), options(options), context(context), warnings(warnings),
      body(&context), top(&context) {
  context.loadDialect<MtpDialect, func::FuncDialect>();
}

DType Importer::effective(DType type) const {
  return options.doublePrecision && isFloat(type) ? DType::F64 : type;
}

OwningOpRef<ModuleOp> Importer::run() {
  Location loc = NameLoc::get(StringAttr::get(&context, model.path));
  module = ModuleOp::create(loc);
  top.setInsertionPointToStart(module->getBody());
  body.setInsertionPointToEnd(module->getBody());
  main = func::FuncOp::create(body, loc, "main", body.getFunctionType({}, {}));
  top.setInsertionPoint(main);
  body.setInsertionPointToStart(main.addEntryBlock());
  rootFrame.opsets = &model.opsets;
  if (!model.graph.sparseInitializers.empty())
    failInput("sparse initializer '" + model.graph.sparseInitializers[0] +
              "' is not supported");
  addInputs();
  runNodes(model.graph.nodes, model.graph.outputs, rootFrame);
  finish();
  return std::move(module);
}

//===----------------------------------------------------------------------===//
// Inputs, initializers, outputs
//===----------------------------------------------------------------------===//

void Importer::addInputs() {
  std::set<std::string> initializers;
  for (const Tensor &tensor : model.graph.initializers)
    initializers.insert(tensor.name);
  std::set<std::string> overridden;
  std::vector<ValueInfo> infos;
  for (const ValueInfo &info : model.graph.inputs) {
    bool given = options.inputs.count(info.name) != 0;
    if (initializers.count(info.name)) {
      if (!given || model.irVersion < 4)
        continue; // a constant, or a default that is not overridden
      overridden.insert(info.name);
    }
    if (!info.foreignType.empty())
      failInput("input '" + info.name + "' is of type " + info.foreignType +
                ", which mtp does not have");
    infos.push_back(info);
  }
  std::set<std::string> taken = initializers;
  for (const ValueInfo &info : model.graph.inputs)
    taken.insert(info.name);
  for (const Node &node : model.graph.nodes)
    for (const std::string &name : node.outputs)
      if (taken.count(name))
        failInput("value '" + name + "' is produced by node '" + node.name +
                      "' and is an input or initializer too",
                  {node.name});
  addInitializers(model.graph, rootFrame, overridden);
  std::vector<Shape> shapes = DimBinder(options, warnings).bind(infos);
  for (auto [index, info] : llvm::enumerate(infos)) {
    auto entry = std::make_shared<Entry>();
    entry->name = info.name;
    entry->type = effective(info.type);
    entry->shape = shapes[index];
    auto type = RankedTensorType::get(shapes[index],
                                      elementType(&context, entry->type));
    (void)main.insertArgument(index, type, {},
                              locationOf(info.name, info.name));
    entry->value = main.getArgument(index);
    main.setArgAttr(index, "mtp.name", body.getStringAttr(info.name));
    SmallVector<mlir::Attribute> dims;
    for (const Dim &dim : info.dims)
      dims.push_back(body.getStringAttr(dim.value ? "" : dim.symbol));
    main.setArgAttr(index, "mtp.dim_names", body.getArrayAttr(dims));
    rootFrame.scope.names[info.name] = entry;
  }
}

void Importer::addInitializers(const Graph &graph, Frame &frame,
                               const std::set<std::string> &overridden) {
  for (const Tensor &tensor : graph.initializers)
    if (!overridden.count(tensor.name))
      frame.scope.names[tensor.name] =
          tensorEntry(tensor, frame.prefix + tensor.name, true);
}

void Importer::finish() {
  SmallVector<Value> results;
  SmallVector<std::string> names;
  for (const std::string &name : model.graph.outputs) {
    EntryRef entry = rootFrame.scope.find(name);
    if (!entry)
      failInput("output '" + name + "' is not produced by any node");
    if (entry->isSequence)
      failInput("output '" + name +
                "' is a sequence; only tensors can be outputs");
    if (entry->unknown)
      break;
    results.push_back(materialize(entry));
    names.push_back(name);
  }
  if (!reports.empty())
    reportUnsupported();
  func::ReturnOp::create(body, main.getLoc(), results);
  main.setFunctionType(
      body.getFunctionType(main.getBody().front().getArgumentTypes(),
                           TypeRange(ValueRange(results))));
  for (auto [index, name] : llvm::enumerate(names))
    main.setResultAttr(index, "mtp.name", body.getStringAttr(name));
  annotateInputs(main);
  nameOtherInitializers();
}

/// Initializers that the program does not read as stored tensors, for the list
/// of parameters: name and type.
void Importer::nameOtherInitializers() {
  SmallVector<NamedAttribute> others;
  for (const Tensor &tensor : model.graph.initializers)
    if (!weightSymbols.count(&tensor) && tensor.foreignType.empty())
      others.push_back(body.getNamedAttr(
          tensor.name, TypeAttr::get(RankedTensorType::get(
                           tensor.shape, elementType(&context, tensor.type)))));
  if (!others.empty())
    (*module)->setAttr("mtp.other_initializers",
                       body.getDictionaryAttr(others));
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

EntryRef Importer::Scope::find(const std::string &name) const {
  for (const Scope *scope = this; scope; scope = scope->parent)
    if (auto at = scope->names.find(name); at != scope->names.end())
      return at->second;
  return nullptr;
}

/// Names that the bodies of a node take from around it.
static void addCaptures(const Node &node, std::vector<std::string> &names) {
  for (auto &[key, attribute] : node.attributes)
    if (attribute.graph)
      for (const Node &inner : attribute.graph->nodes) {
        names.insert(names.end(), inner.inputs.begin(), inner.inputs.end());
        addCaptures(inner, names);
      }
  for (auto &[key, attribute] : node.attributes)
    if (attribute.graph)
      names.insert(names.end(), attribute.graph->outputs.begin(),
                   attribute.graph->outputs.end());
}

/// The nodes that `outputs` need, in topological order.
static std::vector<const Node *>
sortNodes(const std::vector<Node> &nodes,
          const std::vector<std::string> &outputs) {
  std::map<std::string, const Node *> producers;
  for (const Node &node : nodes)
    for (const std::string &name : node.outputs)
      if (!name.empty() && !producers.emplace(name, &node).second)
        failInput("value '" + name + "' is produced twice", {node.name});
  std::vector<const Node *> order;
  std::map<const Node *, int> state; // 1: being visited, 2: done
  struct Step {
    const Node *node;
    std::vector<std::string> needs;
    size_t next;
  };
  std::vector<Step> stack;
  auto visit = [&](const std::string &name) {
    auto producer = producers.find(name);
    if (producer == producers.end() || state[producer->second] == 2)
      return;
    if (state[producer->second] == 1)
      failInput("the graph has a cycle through node '" +
                    producer->second->name + "'",
                {producer->second->name});
    state[producer->second] = 1;
    std::vector<std::string> needs = producer->second->inputs;
    addCaptures(*producer->second, needs);
    stack.push_back({producer->second, std::move(needs), 0});
  };
  for (const std::string &output : outputs) {
    visit(output);
    while (!stack.empty()) {
      if (stack.back().next < stack.back().needs.size()) {
        std::string need = stack.back().needs[stack.back().next++];
        visit(need);
        continue;
      }
      state[stack.back().node] = 2;
      order.push_back(stack.back().node);
      stack.pop_back();
    }
  }
  return order;
}

void Importer::runNodes(const std::vector<Node> &nodes,
                        const std::vector<std::string> &outputs, Frame &frame) {
  for (const Node *node : sortNodes(nodes, outputs))
    runNode(*node, frame);
}

std::map<std::string, mtp::onnx::Attribute>
Importer::bind(const std::map<std::string, mtp::onnx::Attribute> &attributes,
               const Frame &frame) const {
  std::map<std::string, mtp::onnx::Attribute> bound;
  for (auto &[name, attribute] : attributes) {
    if (attribute.reference.empty()) {
      bound.emplace(name, attribute);
      continue;
    }
    if (!frame.arguments)
      continue;
    if (auto at = frame.arguments->find(attribute.reference);
        at != frame.arguments->end())
      bound.emplace(name, at->second);
  }
  return bound;
}

static constexpr const char *kDependsOnData =
    "the shape of its result depends on data";

static bool accepts(Accepts accepted, DType type) {
  switch (accepted) {
  case Accepts::Anything:
    return true;
  case Accepts::Numbers:
    return type != DType::Bool;
  case Accepts::Floats:
    return isFloat(type);
  case Accepts::Integers:
    return type != DType::Bool && !isFloat(type);
  case Accepts::Booleans:
    return type == DType::Bool;
  }
  return false;
}

/// What kind an attribute of that name has; the operators agree on it.
static mtp::onnx::Attribute::Kind kindOf(StringRef name) {
  using Kind = mtp::onnx::Attribute::Kind;
  return llvm::StringSwitch<Kind>(name)
      .Cases({"alpha", "beta", "epsilon", "momentum", "ratio", "scale",
              "softcap", "min", "max", "value_float"},
             Kind::Float)
      .Cases({"mode", "reduction", "equation", "auto_pad", "approximate",
              "round_mode"},
             Kind::String)
      .Cases({"axes", "perm", "split", "pads", "strides", "dilations",
              "kernel_shape", "value_ints"},
             Kind::Ints)
      .Case("value_floats", Kind::Floats)
      .Case("value", Kind::Tensor)
      .Default(Kind::Int);
}

void Importer::runNode(const Node &node, Frame &frame) {
  std::vector<EntryRef> inputs;
  bool unknown = false;
  for (const std::string &name : node.inputs) {
    EntryRef entry = name.empty() ? nullptr : frame.scope.find(name);
    if (!name.empty() && !entry)
      failInput("input '" + name + "' of node '" + node.name +
                    "' is not produced by any node, input or initializer",
                {node.name});
    unknown |= entry && entry->unknown;
    inputs.push_back(std::move(entry));
  }
  std::map<std::string, mtp::onnx::Attribute> attributes =
      bind(node.attributes, frame);
  auto function =
      model.functions.find(functionKey(node.domain, node.op, node.overload));
  if (function != model.functions.end())
    return inlineFunction(node, function->second, std::move(inputs), attributes,
                          frame);
  if (!node.domain.empty()) {
    reject(node, frame,
           "operators of domain '" + node.domain + "' are not supported");
    return;
  }
  auto opset = frame.opsets->find("");
  int64_t version =
      opset == frame.opsets->end() ? model.opsets.at("") : opset->second;
  if (node.op == "If") {
    if (unknown)
      return markUnknown(node, frame);
    return inlineBranch(node, std::move(inputs), attributes, frame);
  }
  bool dependsOnData =
      node.op == "NonZero" || node.op == "Compress" || node.op == "Unique";
  auto entry = opTable().find(node.op);
  if (entry == opTable().end())
    return reject(node, frame,
                  dependsOnData ? kDependsOnData
                                : "the operator is not supported");
  if (version < entry->second.since)
    return reject(node, frame,
                  "opset " + std::to_string(version) + " does not have it");
  for (auto &[name, attribute] : attributes) {
    if (!entry->second.attributes.count(name))
      return reject(node, frame, "attribute '" + name + "' is not supported");
    if (attribute.kind != kindOf(name))
      failInput("attribute '" + name + "' of node '" + node.name + "' (" +
                    node.op + ") is of another kind than its " +
                    "operator says",
                {node.name});
  }
  if (inputs.size() < entry->second.leastInputs)
    failInput("node '" + node.name + "' (" + node.op + ") has " +
                  std::to_string(inputs.size()) + " inputs, needs " +
                  std::to_string(entry->second.leastInputs),
              {node.name});
  for (size_t i = 0; i < entry->second.leastInputs; ++i)
    if (!inputs[i])
      failInput("input " + std::to_string(i) + " of node '" + node.name +
                    "' (" + node.op + ") is left out",
                {node.name});
  if (unknown)
    return dependsOnData ? reject(node, frame, kDependsOnData)
                         : markUnknown(node, frame);
  if (!inputs.empty() && inputs[0] && !inputs[0]->isSequence &&
      !accepts(entry->second.accepts, inputs[0]->type))
    return reject(node, frame,
                  std::string("elements of type ") +
                      mtp::name(inputs[0]->type));
  runHandler(node, version, std::move(inputs), attributes, frame);
}

void Importer::runHandler(
    const Node &node, int64_t version, std::vector<EntryRef> inputs,
    const std::map<std::string, mtp::onnx::Attribute> &attributes,
    Frame &frame) {
  std::string valueName = node.outputs.empty() ? node.name : node.outputs[0];
  Emit emit(body,
            locationOf(frame.prefix + node.name, frame.prefix + valueName));
  NodeContext context(*this, node, version, std::move(inputs), attributes,
                      emit);
  try {
    std::vector<Constant> folded;
    if (foldNode(context, folded))
      for (size_t i = 0; i < folded.size(); ++i)
        context.outConstant(i, std::move(folded[i]));
    else
      opTable().at(node.op).handler(context);
  } catch (const Unsupported &problem) {
    return reject(node, frame, problem.reason);
  } catch (const ShapeMismatch &problem) {
    failInput("node '" + node.name + "' (" + node.op + "): " + problem.reason,
              {node.name});
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty())
      continue;
    EntryRef entry = context.results()[i];
    if (!entry)
      return reject(node, frame,
                    "its output " + std::to_string(i) + " is not supported");
    frame.scope.names[node.outputs[i]] = entry;
  }
}

void Importer::inlineFunction(
    const Node &node, const Function &function, std::vector<EntryRef> inputs,
    const std::map<std::string, mtp::onnx::Attribute> &attributes,
    Frame &frame) {
  std::string key =
      functionKey(function.domain, function.name, function.overload);
  if (llvm::is_contained(callStack, key))
    failInput("function '" + key + "' calls itself", {node.name});
  if (inputs.size() > function.inputs.size() ||
      node.outputs.size() > function.outputs.size())
    failInput("node '" + node.name +
                  "' has more inputs or outputs than function '" + key + "'",
              {node.name});
  callStack.push_back(key);
  std::map<std::string, mtp::onnx::Attribute> arguments = function.defaults;
  for (auto &[name, attribute] : attributes)
    arguments[name] = attribute;
  Frame inner;
  inner.prefix = frame.prefix + node.name + "/";
  inner.opsets = function.opsets.empty() ? frame.opsets : &function.opsets;
  inner.arguments = &arguments;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i])
      inner.scope.names[function.inputs[i]] = inputs[i];
  runNodes(function.nodes, function.outputs, inner);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty())
      continue;
    EntryRef entry = inner.scope.find(function.outputs[i]);
    if (!entry)
      failInput("function '" + key + "' does not produce its output '" +
                    function.outputs[i] + "'",
                {node.name});
    frame.scope.names[node.outputs[i]] = entry;
  }
  callStack.pop_back();
}

void Importer::inlineBranch(
    const Node &node, std::vector<EntryRef> inputs,
    const std::map<std::string, mtp::onnx::Attribute> &attributes,
    Frame &frame) {
  auto condition =
      inputs.empty() || !inputs[0] ? nullptr : constantOf(inputs[0]);
  if (!condition || condition->elements() != 1)
    return reject(node, frame,
                  "its condition is known only at run time; give the input "
                  "that decides it a fixed value");
  auto branch = attributes.find(condition->numberAt(0) != 0 ? "then_branch"
                                                            : "else_branch");
  if (branch == attributes.end() || !branch->second.graph)
    failInput("node '" + node.name + "' (If) has no such branch", {node.name});
  const Graph &graph = *branch->second.graph;
  if (graph.outputs.size() != node.outputs.size())
    failInput("the branches of node '" + node.name +
                  "' have another number of outputs",
              {node.name});
  Frame inner;
  inner.scope.parent = &frame.scope;
  inner.prefix = frame.prefix;
  inner.opsets = frame.opsets;
  inner.arguments = frame.arguments;
  addInitializers(graph, inner, {});
  runNodes(graph.nodes, graph.outputs, inner);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty())
      frame.scope.names[node.outputs[i]] = inner.scope.find(graph.outputs[i]);
}

//===----------------------------------------------------------------------===//
// What is not supported
//===----------------------------------------------------------------------===//

void Importer::markUnknown(const Node &node, Frame &frame) {
  for (const std::string &name : node.outputs) {
    if (name.empty())
      continue;
    auto entry = std::make_shared<Entry>();
    entry->name = name;
    entry->unknown = true;
    frame.scope.names[name] = entry;
  }
}

void Importer::reject(const Node &node, const Frame &frame,
                      const std::string &reason) {
  reports.push_back(
      {node.domain.empty() ? node.op : node.domain + "." + node.op, reason,
       frame.prefix + node.name});
  markUnknown(node, const_cast<Frame &>(frame));
}

void Importer::reportUnsupported() {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>>
      groups;
  for (const Report &report : reports)
    groups[{report.op, report.reason}].push_back(report.node);
  std::string message = "the model has " + std::to_string(reports.size()) +
                        " unsupported node" + (reports.size() == 1 ? "" : "s") +
                        ":";
  std::vector<std::string> nodes;
  for (auto &[key, names] : groups) {
    message += "\n  " + key.first + " x " + std::to_string(names.size()) +
               ": " + key.second + " (";
    for (size_t i = 0; i < names.size() && i < 8; ++i)
      message += (i ? ", '" : "'") + names[i] + "'";
    message += names.size() > 8 ? ", ..)" : ")";
    nodes.insert(nodes.end(), names.begin(), names.end());
  }
  throw OnnxFailure({"unsupported", message, nodes});
}
