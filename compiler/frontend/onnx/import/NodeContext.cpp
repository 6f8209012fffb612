// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- NodeContext.cpp - what the handler of a node sees ------------------===//

#include "compiler/frontend/onnx/import/Importer.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

const EntryRef &NodeContext::in(size_t i) const {
  if (!has(i))
    invalid("input " + std::to_string(i) + " is left out");
  return inputs[i];
}

Value NodeContext::value(size_t i) { return importer.materialize(in(i)); }
std::shared_ptr<const Constant> NodeContext::constant(size_t i) const {
  return importer.constantOf(in(i));
}

std::shared_ptr<const Constant>
NodeContext::known(size_t i, const std::string &what) const {
  auto value = constant(i);
  if (!value)
    unsupported(what + " (input '" + in(i)->name +
                "') are known only at run time");
  return value;
}

std::vector<int64_t> NodeContext::ints(size_t i,
                                       const std::string &what) const {
  auto value = known(i, what);
  if (value->holdsFloats())
    invalid(what + " are floats");
  std::vector<int64_t> result;
  for (int64_t k = 0; k < value->elements(); ++k)
    result.push_back(value->intAt(k));
  return result;
}

const mtp::onnx::Attribute *NodeContext::attr(const std::string &name) const {
  auto at = attributes.find(name);
  return at == attributes.end() ? nullptr : &at->second;
}
int64_t NodeContext::intAttr(const std::string &name, int64_t otherwise) const {
  return hasAttr(name) ? attr(name)->i : otherwise;
}
double NodeContext::floatAttr(const std::string &name, double otherwise) const {
  return hasAttr(name) ? attr(name)->f : otherwise;
}
std::string NodeContext::stringAttr(const std::string &name,
                                    const std::string &otherwise) const {
  return hasAttr(name) ? attr(name)->s : otherwise;
}
std::optional<std::vector<int64_t>>
NodeContext::intsAttr(const std::string &name) const {
  if (!hasAttr(name))
    return std::nullopt;
  return attr(name)->ints;
}

int64_t NodeContext::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank)
    invalid("axis " + std::to_string(axis) +
            " does not exist in a tensor of rank " + std::to_string(rank));
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> NodeContext::axes(std::vector<int64_t> axes,
                                       int64_t rank) const {
  for (int64_t &a : axes)
    a = axis(a, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    invalid("an axis is given twice");
  return axes;
}

void NodeContext::out(size_t i, Value value) {
  if (i < outputs.size())
    outputs[i] = importer.valueEntry(
        value, i < node.outputs.size() ? node.outputs[i] : node.name);
}
void NodeContext::outConstant(size_t i, Constant value) {
  if (i < outputs.size())
    outputs[i] = importer.constantEntry(std::move(value), node.outputs[i]);
}
void NodeContext::outSequence(size_t i, std::vector<EntryRef> elements) {
  auto entry = std::make_shared<Entry>();
  entry->name = node.outputs[i];
  entry->isSequence = true;
  entry->sequence = std::move(elements);
  outputs[i] = entry;
}
void NodeContext::invalid(const std::string &reason) const {
  failInput("node '" + node.name + "' (" + node.op + "): " + reason,
            {node.name});
}
