// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/OpContext.h"

#include "compiler/frontend/onnx/Resolver.h"

#include <algorithm>

namespace mtp::onnx {

const FlatValue &OpContext::in(size_t i) const {
  if (!has(i))
    invalid("input " + std::to_string(i) + " is missing");
  const FlatValue &value = resolver.graph.values[node.inputs[i]];
  if (value.isSequence)
    unsupported("input " + std::to_string(i) + " is a sequence");
  return value;
}

std::shared_ptr<const Constant> OpContext::value(size_t i) const {
  return has(i) ? resolver.valueOf(node.inputs[i], 0) : nullptr;
}

std::shared_ptr<const Constant> OpContext::take(size_t i, const std::string &what) {
  in(i);
  std::shared_ptr<const Constant> known = value(i);
  if (!known)
    unsupported(what + " is known only at run time");
  drop(i);
  return known;
}

std::vector<int64_t> OpContext::takeInts(size_t i, const std::string &what) {
  std::shared_ptr<const Constant> known = take(i, what);
  if (known->holdsFloats())
    invalid(what + " is not of an integer type");
  if (known->shape.size() > 1)
    invalid(what + " has shape " + text(known->shape));
  std::vector<int64_t> values;
  for (int64_t k = 0; k < known->elements(); ++k)
    values.push_back(known->intAt(k));
  return values;
}

void OpContext::drop(size_t i) {
  if (i < node.inputs.size())
    node.inputs[i] = kNoValue;
}

int64_t OpContext::intAttr(const std::string &name, int64_t otherwise) const {
  return node.intAttr(name, otherwise);
}
double OpContext::floatAttr(const std::string &name, double otherwise) const {
  return node.floatAttr(name, otherwise);
}
std::string OpContext::stringAttr(const std::string &name, const std::string &otherwise) const {
  return node.stringAttr(name, otherwise);
}
std::optional<std::vector<int64_t>> OpContext::intsAttr(const std::string &name) const {
  auto at = node.attributes.find(name);
  if (at == node.attributes.end())
    return std::nullopt;
  return at->second.ints;
}

void OpContext::set(const std::string &name, int64_t value) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::Int;
  attribute.i = value;
  node.attributes[name] = attribute;
}
void OpContext::set(const std::string &name, double value) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::Float;
  attribute.f = value;
  node.attributes[name] = attribute;
}
void OpContext::set(const std::string &name, std::vector<int64_t> values) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::Ints;
  attribute.ints = std::move(values);
  node.attributes[name] = attribute;
}

int64_t OpContext::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank)
    invalid("axis " + std::to_string(axis) + " does not exist in " + std::to_string(rank) +
            " dimensions");
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> OpContext::axes(std::vector<int64_t> axes, int64_t rank) const {
  for (int64_t &a : axes)
    a = axis(a, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    invalid("an axis is given twice");
  return axes;
}

Shape OpContext::broadcast(const Shape &a, const Shape &b) const {
  Shape result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      invalid("shapes " + text(a) + " and " + text(b) + " do not broadcast");
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

Shape OpContext::broadcastInputs() const {
  Shape result;
  for (size_t i = 0; i < numInputs(); ++i)
    if (has(i))
      result = broadcast(result, shape(i));
  return result;
}

void OpContext::sameTypes() const {
  for (size_t i = 1; i < numInputs(); ++i)
    if (has(i) && type(i) != type(0))
      invalid(std::string("inputs have types ") + mtp::name(type(0)) + " and " +
              mtp::name(type(i)));
}

void OpContext::checkRank(size_t i, int64_t wanted, const char *what) const {
  if (rank(i) != wanted)
    invalid(std::string(what) + " has shape " + text(shape(i)) + ", not " +
            std::to_string(wanted) + " dimensions");
}

static void checkSize(const OpContext &context, DType type, const Shape &shape) {
  int64_t elements = 0, bytes = 0;
  for (int64_t extent : shape)
    if (extent < 0)
      context.invalid("the result has shape " + text(shape));
  if (!checkedProduct(shape, elements) || !checkedMul(elements, byteSize(type), bytes))
    context.invalid("the result of shape " + text(shape) + " has more than 2^63 bytes");
}

void OpContext::output(size_t i, DType type, Shape shape) {
  if (!wants(i))
    return;
  checkSize(*this, type, shape);
  FlatValue &value = resolver.graph.values[node.outputs[i]];
  value.type = type;
  value.shape = std::move(shape);
}

void OpContext::alias(size_t i, int value) {
  if (wants(i))
    resolver.forwarded[node.outputs[i]] = resolver.resolved(value);
}

void OpContext::constant(size_t i, Constant constant) {
  if (!wants(i))
    return;
  checkSize(*this, constant.type, constant.shape);
  FlatValue &value = resolver.graph.values[node.outputs[i]];
  value.type = constant.type;
  value.shape = constant.shape;
  value.isFixed = true;
  value.constant = std::make_shared<Constant>(std::move(constant));
}

void OpContext::sequence(size_t i, std::vector<int> elements) {
  if (!wants(i))
    return;
  FlatValue &value = resolver.graph.values[node.outputs[i]];
  value.isSequence = true;
  value.sequence = std::move(elements);
}

const std::vector<int> &OpContext::elements(size_t i) const {
  if (!has(i) || !resolver.graph.values[node.inputs[i]].isSequence)
    invalid("input " + std::to_string(i) + " is not a sequence");
  return resolver.graph.values[node.inputs[i]].sequence;
}

int OpContext::emit(const std::string &op, std::vector<int> inputs,
                    std::map<std::string, Attribute> attributes, DType type, Shape shape) {
  checkSize(*this, type, shape);
  FlatNode made;
  made.name = node.name;
  made.op = op;
  made.version = node.version;
  made.attributes = std::move(attributes);
  made.inputs = std::move(inputs);
  std::string base = node.outputs.empty() || node.outputs[0] == kNoValue
                         ? node.name
                         : resolver.graph.values[node.outputs[0]].name;
  int result = resolver.addValue(base);
  resolver.graph.values[result].type = type;
  resolver.graph.values[result].shape = std::move(shape);
  made.outputs = {result};
  resolver.finish(opTable().at(op), std::move(made));
  return resolver.resolved(result);
}

std::vector<int> OpContext::newOutputs(size_t n) {
  node.outputs.clear();
  for (size_t i = 0; i < n; ++i)
    node.outputs.push_back(resolver.addValue(node.name));
  return node.outputs;
}

DType OpContext::effective(DType type) const { return resolver.effective(type); }

Constant OpContext::loadTensor(const Tensor &tensor) const {
  return load(tensor, effective(tensor.type));
}
int OpContext::addLiteral(const Tensor &tensor) { return resolver.addTensor(tensor, true); }

void OpContext::invalid(const std::string &reason) const {
  failInput("node '" + node.name + "' (" + node.op + "): " + reason, {node.name});
}

int64_t FlatNode::intAttr(const std::string &name, int64_t otherwise) const {
  auto at = attributes.find(name);
  return at == attributes.end() ? otherwise : at->second.i;
}
double FlatNode::floatAttr(const std::string &name, double otherwise) const {
  auto at = attributes.find(name);
  return at == attributes.end() ? otherwise : at->second.f;
}
std::string FlatNode::stringAttr(const std::string &name, const std::string &otherwise) const {
  auto at = attributes.find(name);
  return at == attributes.end() ? otherwise : at->second.s;
}
const std::vector<int64_t> &FlatNode::intsAttr(const std::string &name) const {
  static const std::vector<int64_t> none;
  auto at = attributes.find(name);
  return at == attributes.end() ? none : at->second.ints;
}

const OpTable &opTable() {
  static const OpTable table = [] {
    OpTable all;
    addElementwiseRules(all);
    addShapeRules(all);
    addIndexRules(all);
    addCreationRules(all);
    addReductionRules(all);
    addContractionRules(all);
    addNormRules(all);
    addAttentionRules(all);
    addSequenceRules(all);
    return all;
  }();
  return table;
}

} // namespace mtp::onnx
