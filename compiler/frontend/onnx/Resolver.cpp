// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/Resolver.h"

#include "compiler/frontend/onnx/DimBinder.h"

#include <algorithm>

namespace mtp::onnx {

namespace {
/// Functions and branches may nest so deep.
constexpr size_t kDeepest = 64;
/// Nodes after inlining.
constexpr size_t kMostNodes = size_t(1) << 20;
/// Operators behind each other that are computed on demand.
constexpr int kDeepestDemand = 400;

bool isVector(const Shape &shape) {
  return std::count_if(shape.begin(), shape.end(), [](int64_t extent) { return extent != 1; }) <= 1;
}
bool foldsByItself(const Shape &shape) {
  return isVector(shape) && elementCount(shape) <= kMostFolded;
}

/// All elements alike: a splat, or a single element.
bool isUniform(const Constant &value) { return value.splat || value.elements() == 1; }

/// One element, shape [].
std::shared_ptr<Constant> uniformElement(const Constant &value) {
  auto element = std::make_shared<Constant>();
  element->type = value.type;
  element->resize();
  if (value.holdsFloats())
    element->floats[0] = value.floatAt(0);
  else
    element->ints[0] = value.intAt(0);
  return element;
}
} // namespace

int Resolver::Scope::find(const std::string &name) const {
  for (const Scope *scope = this; scope; scope = scope->parent) {
    auto at = scope->names.find(name);
    if (at != scope->names.end())
      return at->second;
  }
  return kNoValue;
}

int Resolver::addValue(std::string name) {
  graph.values.emplace_back();
  graph.values.back().name = std::move(name);
  int value = static_cast<int>(graph.values.size()) - 1;
  forwarded.push_back(value);
  return value;
}

int Resolver::resolved(int value) const {
  while (value != kNoValue && forwarded[value] != value)
    value = forwarded[value];
  return value;
}

void Resolver::run() {
  graph.path = model.path;
  graph.name = model.graph.name;
  graph.irVersion = model.irVersion;
  graph.opset = model.opsets.at("");
  Frame frame;
  frame.opsets = &model.opsets;
  addInitializers(model.graph, frame, true);
  addInputs(frame);
  resolveNodes(model.graph.nodes, frame);
  addOutputs(frame);
  removeDead();
  reportUnsupported();
}

//===----------------------------------------------------------------------===//
// Initializers, inputs, outputs
//===----------------------------------------------------------------------===//

/// Integers and scalars are values of the graph, float tensors are parameters
/// unless they are literals of a node.
int Resolver::addTensor(const Tensor &tensor, bool isLiteral) {
  int index = addValue(tensor.name);
  FlatValue &value = graph.values[index];
  if (!tensor.foreignType.empty()) {
    FlatNode node;
    node.name = tensor.name;
    node.op = "initializer";
    node.outputs = {index};
    reject(std::move(node), "element type " + tensor.foreignType);
    return index;
  }
  value.type = effective(tensor.type);
  value.shape = tensor.shape;
  value.isFixed = isLiteral || !isFloat(tensor.type) || tensor.shape.empty();
  if (value.isFixed && foldsByItself(tensor.shape)) {
    value.constant = std::make_shared<Constant>(load(tensor, value.type));
    return index;
  }
  value.initializer = static_cast<int>(graph.initializers.size());
  graph.initializers.push_back(tensor);
  return index;
}

void Resolver::addInitializers(const Graph &source, Frame &frame, bool isMain) {
  for (const Tensor &tensor : source.initializers) {
    int value = addTensor(tensor, false);
    frame.scope.names[tensor.name] = value;
    if (!isMain)
      graph.values[value].name = frame.prefix + tensor.name;
  }
  for (const std::string &name : source.sparseInitializers) {
    FlatNode node;
    node.name = name;
    node.op = "sparse initializer";
    node.outputs = {addValue(name)};
    frame.scope.names[name] = node.outputs[0];
    reject(std::move(node), "sparse tensors are not supported");
  }
}

void Resolver::addInputs(Frame &frame) {
  std::vector<ValueInfo> inputs;
  for (const ValueInfo &input : model.graph.inputs)
    if (!frame.scope.names.count(input.name)) // an initializer gives its value
      inputs.push_back(input);
  for (const ValueInfo &input : inputs)
    if (!input.foreignType.empty())
      throw OnnxFailure({"unsupported", "input '" + input.name + "' has type " + input.foreignType, {}});
  for (const auto &given : options.inputs)
    if (std::none_of(inputs.begin(), inputs.end(), [&](const ValueInfo &input) { return input.name == given.first; }))
      failInput("the model has no input '" + given.first + "'");
  std::vector<Shape> shapes = DimBinder(options, graph.warnings).bind(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    int64_t elements = 0, bytes = 0;
    if (!checkedProduct(shapes[i], elements) || !checkedMul(elements, 8, bytes))
      failInput("input '" + inputs[i].name + "' of shape " + text(shapes[i]) + " has more than 2^63 bytes");
    int value = addValue(inputs[i].name);
    frame.scope.names[inputs[i].name] = value;
    graph.values[value].type = effective(inputs[i].type);
    graph.values[value].shape = shapes[i];
    graph.values[value].input = static_cast<int>(graph.inputs.size());
    FlatInput input{inputs[i].name, value, {}};
    for (const Dim &dim : inputs[i].dims)
      input.dimNames.push_back(dim.value ? "" : dim.symbol.empty() ? "?" : dim.symbol);
    input.dimNames.resize(shapes[i].size(), "?");
    graph.inputs.push_back(std::move(input));
  }
}

void Resolver::addOutputs(const Frame &frame) {
  std::set<std::string> names;
  for (const std::string &name : model.graph.outputs) {
    int value = frame.scope.find(name);
    if (value == kNoValue)
      failInput("output '" + name + "' of the model is defined by nothing");
    if (!names.insert(name).second)
      failInput("output '" + name + "' is listed twice");
    value = resolved(value);
    if (graph.values[value].isSequence)
      throw OnnxFailure({"unsupported", "output '" + name + "' is a sequence", {}});
    graph.outputs.push_back({name, value});
  }
  if (graph.outputs.empty())
    failInput("the model has no output");
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void Resolver::resolveNodes(const std::vector<Node> &nodes, Frame &frame) {
  if (callStack.size() > kDeepest)
    failInput("functions and branches are nested more than " + std::to_string(kDeepest) + " deep");
  for (const Node &node : nodes) {
    if (graph.nodes.size() > kMostNodes)
      failInput("the model has more than " + std::to_string(kMostNodes) + " nodes after inlining");
    resolveNode(node, frame);
  }
}

std::map<std::string, Attribute> Resolver::bindAttributes(const Node &node, const Frame &frame) const {
  std::map<std::string, Attribute> bound;
  for (const auto &[name, attribute] : node.attributes) {
    if (attribute.reference.empty()) {
      bound[name] = attribute;
      continue;
    }
    if (!frame.arguments)
      failInput("node '" + node.name + "': attribute '" + name + "' refers to a function's attribute outside of one");
    auto argument = frame.arguments->find(attribute.reference);
    if (argument != frame.arguments->end()) // else absent: the default counts
      bound[name] = argument->second;
  }
  return bound;
}

std::vector<int> Resolver::inputsOf(const Node &node, const Frame &frame) const {
  std::vector<int> inputs;
  for (const std::string &name : node.inputs) {
    int value = name.empty() ? kNoValue : frame.scope.find(name);
    if (value == kNoValue && !name.empty())
      failInput("node '" + node.name + "' (" + node.op + ") reads '" + name + "', which nothing before it defines",
                {node.name});
    inputs.push_back(resolved(value));
  }
  while (!inputs.empty() && inputs.back() == kNoValue)
    inputs.pop_back();
  return inputs;
}

std::vector<int> Resolver::defineOutputs(const Node &node, Frame &frame) {
  std::vector<int> outputs;
  for (const std::string &name : node.outputs) {
    if (name.empty()) {
      outputs.push_back(kNoValue);
      continue;
    }
    if (frame.scope.names.count(name))
      failInput("'" + name + "' is defined twice; the second time by node '" + node.name + "'", {node.name});
    outputs.push_back(addValue(frame.prefix + name));
    frame.scope.names[name] = outputs.back();
  }
  return outputs;
}

static std::string displayName(const Node &node, const std::string &prefix) {
  if (!node.name.empty())
    return prefix + node.name;
  for (const std::string &output : node.outputs)
    if (!output.empty())
      return prefix + output;
  return prefix + node.op;
}

void Resolver::resolveNode(const Node &source, Frame &frame) {
  std::map<std::string, Attribute> attributes = bindAttributes(source, frame);
  auto function = model.functions.find(functionKey(source.domain, source.op, source.overload));
  bool standard = source.domain.empty();
  auto rule = opTable().find(source.op);
  // A function in the standard domain is a body for those who lack the operator.
  if (function != model.functions.end() && !(standard && rule != opTable().end()))
    return inlineFunction(source, function->second, attributes, frame);
  if (standard && source.op == "If")
    return inlineBranch(source, attributes, frame);
  FlatNode node;
  node.name = displayName(source, frame.prefix);
  node.op = standard ? source.op : source.domain + "::" + source.op;
  node.attributes = std::move(attributes);
  node.inputs = inputsOf(source, frame);
  node.outputs = defineOutputs(source, frame);
  auto opset = frame.opsets->find("");
  node.version = opset == frame.opsets->end() ? graph.opset : opset->second;
  if (!standard || rule == opTable().end() || rule->second.since > 1000)
    return reject(std::move(node), standard ? "the operator is not supported"
                                            : "operators of the domain '" + source.domain + "' are not supported");
  if (rule->second.since > node.version)
    return reject(std::move(node), "the operator exists from opset " + std::to_string(rule->second.since) + ", not in " +
                                       std::to_string(node.version));
  runRule(rule->second, std::move(node));
}

void Resolver::runRule(const OpRule &rule, FlatNode node) {
  for (int input : node.inputs)
    if (input != kNoValue && graph.values[input].unknown)
      return reject(std::move(node), "");
  for (const auto &[name, attribute] : node.attributes)
    if (std::find(rule.attributes.begin(), rule.attributes.end(), name) == rule.attributes.end())
      return reject(std::move(node), "attribute '" + name + "' is not supported");
  size_t given = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    given = node.inputs[i] != kNoValue ? i + 1 : given;
  OpContext context(*this, node);
  if (given < rule.leastInputs || (rule.mostInputs != kAnyNumber && node.inputs.size() > rule.mostInputs))
    context.invalid("it has " + std::to_string(node.inputs.size()) + " inputs");
  if (rule.mostOutputs != kAnyNumber && node.outputs.size() > rule.mostOutputs)
    context.invalid("it has " + std::to_string(node.outputs.size()) + " outputs");
  FlatNode original = node;
  try {
    rule.infer(context);
  } catch (const Unsupported &unsupported) {
    return reject(std::move(original), unsupported.reason);
  }
  // The rule may have turned the node into one of another operator.
  finish(opTable().at(node.op), std::move(node));
}

void Resolver::finish(const OpRule &rule, FlatNode node) {
  bool needed = false, fixed = true;
  for (int output : node.outputs)
    needed |= output != kNoValue && forwarded[output] == output && !graph.values[output].constant &&
              !graph.values[output].isSequence;
  if (!needed)
    return;
  while (!node.inputs.empty() && node.inputs.back() == kNoValue)
    node.inputs.pop_back();
  for (int &input : node.inputs)
    input = resolved(input);
  if (fold(rule, node))
    return;
  for (int input : node.inputs)
    fixed &= input == kNoValue || graph.values[input].isFixed;
  int index = static_cast<int>(graph.nodes.size());
  for (int output : node.outputs)
    if (output != kNoValue && forwarded[output] == output) {
      graph.values[output].producer = index;
      graph.values[output].isFixed = fixed;
    }
  graph.nodes.push_back(std::move(node));
}

bool Resolver::fold(const OpRule &rule, const FlatNode &node) {
  if (!rule.evaluate)
    return false;
  bool uniform = rule.flags != OpRule::None, small = true;
  EvalContext context{node, {}, {}};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) {
      context.inputs.push_back(nullptr);
      continue;
    }
    const auto &known = graph.values[node.inputs[i]].constant;
    if (!known)
      return false;
    if (rule.flags & OpRule::Elementwise || i == 0)
      uniform &= isUniform(*known);
    context.inputs.push_back(known);
  }
  for (int output : node.outputs) {
    if (output == kNoValue)
      return false;
    small &= foldsByItself(graph.values[output].shape);
  }
  if (!small && !uniform)
    return false;
  bool asSplat = !small;
  for (int output : node.outputs) {
    Constant result;
    result.type = graph.values[output].type;
    result.shape = asSplat && !(rule.flags & OpRule::Moves) ? Shape() : graph.values[output].shape;
    result.splat = asSplat && (rule.flags & OpRule::Moves);
    context.outputs.push_back(std::move(result));
  }
  if (asSplat && (rule.flags & OpRule::Moves)) {
    for (Constant &result : context.outputs) {
      auto element = uniformElement(*context.inputs[0]);
      result.floats = element->floats;
      result.ints = element->ints;
    }
  } else {
    if (asSplat)
      for (auto &input : context.inputs)
        if (input)
          input = uniformElement(*input);
    for (Constant &result : context.outputs)
      result.resize();
    rule.evaluate(context);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Constant &result = context.outputs[i];
    result.normalize();
    if (asSplat) {
      result.shape = graph.values[node.outputs[i]].shape;
      result.splat = true;
    }
    graph.values[node.outputs[i]].isFixed = true;
    graph.values[node.outputs[i]].constant = std::make_shared<Constant>(std::move(result));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Values on demand
//===----------------------------------------------------------------------===//

std::shared_ptr<const Constant> Resolver::valueOf(int index, int depth) {
  index = resolved(index);
  const FlatValue &value = graph.values[index];
  if (value.constant)
    return value.constant;
  if (value.unknown || value.isSequence || !value.isFixed || elementCount(value.shape) > kMostDemanded ||
      depth > kDeepestDemand)
    return nullptr;
  auto known = demanded.find(index);
  if (known != demanded.end())
    return known->second;
  std::shared_ptr<const Constant> result;
  if (value.initializer >= 0)
    result = std::make_shared<Constant>(load(graph.initializers[value.initializer], value.type));
  else if (value.producer >= 0)
    result = evaluate(index, depth);
  demanded[index] = result;
  return result;
}

std::shared_ptr<const Constant> Resolver::evaluate(int value, int depth) {
  const FlatNode &node = graph.nodes[graph.values[value].producer];
  auto rule = opTable().find(node.op);
  if (rule == opTable().end() || !rule->second.evaluate)
    return nullptr;
  EvalContext context{node, {}, {}};
  for (int input : node.inputs) {
    context.inputs.push_back(input == kNoValue ? nullptr : valueOf(input, depth + 1));
    if (input != kNoValue && !context.inputs.back())
      return nullptr;
  }
  std::shared_ptr<const Constant> wanted;
  for (int output : node.outputs) {
    Constant result;
    if (output != kNoValue) {
      result.type = graph.values[output].type;
      result.shape = graph.values[output].shape;
      if (elementCount(result.shape) > kMostDemanded)
        return nullptr;
    }
    result.resize();
    context.outputs.push_back(std::move(result));
  }
  rule->second.evaluate(context);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue)
      continue;
    context.outputs[i].normalize();
    auto result = std::make_shared<Constant>(std::move(context.outputs[i]));
    if (node.outputs[i] == value)
      wanted = result;
    demanded[node.outputs[i]] = std::move(result);
  }
  return wanted;
}

//===----------------------------------------------------------------------===//
// Functions and branches
//===----------------------------------------------------------------------===//

void Resolver::inlineFunction(const Node &node, const Function &function,
                              const std::map<std::string, Attribute> &attributes, Frame &frame) {
  std::string key = functionKey(function.domain, function.name, function.overload);
  if (std::find(callStack.begin(), callStack.end(), key) != callStack.end())
    failInput("function '" + key + "' calls itself", {node.name});
  if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
    failInput("node '" + node.name + "' has more inputs or outputs than function '" + key + "'", {node.name});
  std::map<std::string, Attribute> arguments = function.defaults;
  for (const auto &[name, attribute] : attributes)
    arguments[name] = attribute;
  Frame inner;
  inner.prefix = displayName(node, frame.prefix) + "/";
  inner.opsets = &function.opsets;
  inner.arguments = &arguments;
  std::vector<int> inputs = inputsOf(node, frame);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != kNoValue)
      inner.scope.names[function.inputs[i]] = inputs[i];
  // Inputs that are left out read as the empty name inside.
  std::vector<Node> nodes = function.nodes;
  for (Node &body : nodes)
    for (std::string &name : body.inputs)
      for (size_t i = 0; i < function.inputs.size(); ++i)
        if (name == function.inputs[i] && (i >= inputs.size() || inputs[i] == kNoValue))
          name.clear();
  callStack.push_back(key);
  resolveNodes(nodes, inner);
  callStack.pop_back();
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty())
      continue;
    int value = inner.scope.find(function.outputs[i]);
    if (value == kNoValue)
      failInput("function '" + key + "' does not define its output '" + function.outputs[i] + "'", {node.name});
    frame.scope.names[node.outputs[i]] = value;
  }
}

void Resolver::inlineBranch(const Node &node, const std::map<std::string, Attribute> &attributes, Frame &frame) {
  FlatNode flat;
  flat.name = displayName(node, frame.prefix);
  flat.op = "If";
  flat.inputs = inputsOf(node, frame);
  auto refuse = [&](const std::string &reason) {
    flat.outputs = defineOutputs(node, frame);
    reject(std::move(flat), reason);
  };
  if (flat.inputs.size() != 1)
    failInput("node '" + flat.name + "' (If) has " + std::to_string(flat.inputs.size()) + " inputs", {flat.name});
  if (graph.values[flat.inputs[0]].unknown)
    return refuse("");
  std::shared_ptr<const Constant> condition = valueOf(flat.inputs[0], 0);
  if (!condition || condition->elements() != 1 || condition->holdsFloats())
    return refuse("the condition '" + graph.values[flat.inputs[0]].name + "' is known only at run time");
  auto branch = attributes.find(condition->intAt(0) ? "then_branch" : "else_branch");
  if (branch == attributes.end() || !branch->second.graph)
    failInput("node '" + flat.name + "' (If) lacks a branch", {flat.name});
  const Graph &body = *branch->second.graph;
  if (body.outputs.size() < node.outputs.size())
    failInput("node '" + flat.name + "' (If) has more outputs than its branch", {flat.name});
  Frame inner;
  inner.scope.parent = &frame.scope;
  inner.prefix = flat.name + "/";
  inner.opsets = frame.opsets;
  inner.arguments = frame.arguments;
  addInitializers(body, inner, false);
  callStack.push_back("If");
  resolveNodes(body.nodes, inner);
  callStack.pop_back();
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty())
      continue;
    int value = inner.scope.find(body.outputs[i]);
    if (value == kNoValue)
      failInput("a branch of node '" + flat.name + "' does not define '" + body.outputs[i] + "'", {flat.name});
    frame.scope.names[node.outputs[i]] = value;
  }
}

//===----------------------------------------------------------------------===//
// What can't be compiled, and what isn't needed
//===----------------------------------------------------------------------===//

void Resolver::reject(FlatNode node, const std::string &reason) {
  int index = static_cast<int>(graph.nodes.size()), first = kNoValue;
  for (int output : node.outputs)
    if (output != kNoValue) {
      graph.values[output].unknown = true;
      graph.values[output].producer = index;
      first = output;
    }
  if (!reason.empty() && first != kNoValue)
    reports.push_back({node.op, reason, node.name, first});
  graph.nodes.push_back(std::move(node));
}

void Resolver::removeDead() {
  std::vector<char> live(graph.nodes.size(), 0);
  std::vector<int> work;
  auto need = [&](int value) {
    int producer = value == kNoValue ? -1 : graph.values[resolved(value)].producer;
    if (producer >= 0 && !live[producer]) {
      live[producer] = 1;
      work.push_back(producer);
    }
  };
  for (const FlatOutput &output : graph.outputs)
    need(output.value);
  while (!work.empty()) {
    int node = work.back();
    work.pop_back();
    for (int input : graph.nodes[node].inputs)
      need(input);
  }
  std::vector<FlatNode> kept;
  std::vector<int> newIndex(graph.nodes.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (live[i]) {
      newIndex[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(graph.nodes[i]));
    }
  graph.nodes = std::move(kept);
  for (FlatValue &value : graph.values)
    if (value.producer >= 0)
      value.producer = newIndex[value.producer];
}

/// One report: operators with counts, the first nodes and the reason.
void Resolver::reportUnsupported() {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> groups;
  std::vector<std::string> nodes;
  for (const Report &report : reports)
    if (graph.values[report.output].producer >= 0) {
      groups[{report.op, report.reason}].push_back(report.node);
      nodes.push_back(report.node);
    }
  if (groups.empty())
    return;
  std::string message = std::to_string(nodes.size()) + (nodes.size() == 1 ? " node" : " nodes") +
                        " of the model cannot be compiled:";
  for (const auto &[what, where] : groups) {
    message += "\n  " + what.first + ": " + what.second + "; " + std::to_string(where.size()) +
               (where.size() == 1 ? " node: " : " nodes: ");
    for (size_t i = 0; i < where.size() && i < 5; ++i)
      message += (i ? ", '" : "'") + where[i] + "'";
    if (where.size() > 5)
      message += ", ...";
  }
  throw OnnxFailure({"unsupported", message, nodes});
}

} // namespace mtp::onnx
