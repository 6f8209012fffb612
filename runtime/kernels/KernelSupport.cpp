// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- KernelSupport.cpp --------------------------------------------------===//
#include "runtime/kernels/KernelSupport.h"
#include <cmath>

namespace mtp {

void refuse(const std::string &message) { throw KernelError(message); }

int64_t checkedMultiply(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result))
    refuse("a size is too large");
  return result;
}

int64_t Tensor::elements() const {
  int64_t result = 1;
  for (int64_t extent : shape)
    result = checkedMultiply(result, extent);
  return result;
}

bool Tensor::isRowMajor() const {
  if (elements() == 0)
    return true;
  int64_t expected = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != expected)
      return false;
    expected *= shape[i];
  }
  return true;
}

std::vector<int64_t> rowMajorStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride = checkedMultiply(stride, shape[i] > 0 ? shape[i] : 1);
  }
  return strides;
}

std::string toString(const Tensor &tensor) {
  std::string text;
  for (int64_t extent : tensor.shape)
    text += std::to_string(extent) + "x";
  return text + name(tensor.type);
}

SiteReader::SiteReader(const LibrarySite &site, const PrepareContext &context)
    : context(context), site(site) {
  require(site.attributes.is_object() || site.attributes.is_null(),
          "attributes aren't an object");
  require(site.results >= 1 && site.results <= int64_t(site.operands.size()),
          "has " + std::to_string(site.results) + " results among " +
              std::to_string(site.operands.size()) + " operands");
  require(context.threads >= 1, "needs at least one thread");
}

void SiteReader::require(bool condition, const std::string &message) const {
  if (!condition)
    refuse(site.kind + ": " + message);
}

Tensor SiteReader::next(const char *what) {
  require(at < int(site.operands.size()),
          std::string("operand ") + what + " is missing");
  const TensorDesc &desc = site.operands[at++];
  Tensor tensor{desc.type, desc.shape, desc.strides};
  require(tensor.rank() <= 16,
          std::string(what) + " has more than 16 dimensions");
  int64_t span = 1; // elements from the first to past the last one
  for (int64_t extent : tensor.shape)
    require(extent >= 0, std::string(what) + " has a negative dimension");
  if (tensor.strides.empty())
    tensor.strides = rowMajorStrides(tensor.shape);
  require(tensor.strides.size() == tensor.shape.size(),
          std::string(what) + " has " + std::to_string(tensor.shape.size()) +
              " dimensions and " + std::to_string(tensor.strides.size()) +
              " strides");
  for (int i = 0; i < tensor.rank(); ++i) {
    require(tensor.strides[i] >= 0,
            std::string(what) + " has a negative stride");
    if (tensor.shape[i] > 1 &&
        __builtin_add_overflow(
            span, checkedMultiply(tensor.shape[i] - 1, tensor.strides[i]),
            &span))
      refuse(site.kind + ": " + what + " is too large");
  }
  checkedMultiply(span, 8);
  checkedMultiply(tensor.elements(), 8);
  return tensor;
}

const nlohmann::json *SiteReader::find(const char *name) {
  known.insert(name);
  auto it = site.attributes.find(name);
  return it == site.attributes.end() ? nullptr : &*it;
}

int64_t SiteReader::integer(const char *name, std::optional<int64_t> otherwise,
                            int64_t least, int64_t most) {
  const nlohmann::json *value = find(name);
  require(value || otherwise, std::string("attribute ") + name + " is missing");
  if (!value)
    return *otherwise;
  require(value->is_number_integer(),
          std::string("attribute ") + name + " isn't an integer");
  require(!value->is_number_unsigned() ||
              value->get<uint64_t>() <= uint64_t(INT64_MAX),
          std::string("attribute ") + name + " is too large");
  int64_t result = value->get<int64_t>();
  require(result >= least && result <= most,
          std::string("attribute ") + name + " = " + std::to_string(result) +
              " isn't in [" + std::to_string(least) + ", " +
              std::to_string(most) + "]");
  return result;
}

double SiteReader::number(const char *name, std::optional<double> otherwise) {
  const nlohmann::json *value = find(name);
  require(value || otherwise, std::string("attribute ") + name + " is missing");
  if (!value)
    return *otherwise;
  // JSON has no infinities: they are written as text.
  if (value->is_string() && *value == "-inf")
    return -INFINITY;
  if (value->is_string() && *value == "inf")
    return INFINITY;
  require(value->is_number(),
          std::string("attribute ") + name + " isn't a number");
  return value->get<double>();
}

bool SiteReader::flag(const char *name, bool otherwise) {
  const nlohmann::json *value = find(name);
  if (!value)
    return otherwise;
  require(value->is_boolean(),
          std::string("attribute ") + name + " isn't a boolean");
  return value->get<bool>();
}

std::string SiteReader::choice(const char *name, const char *otherwise,
                               const std::vector<std::string> &choices) {
  const nlohmann::json *value = find(name);
  if (!value)
    return otherwise;
  std::string list;
  for (const std::string &candidate : choices) {
    if (value->is_string() && value->get<std::string>() == candidate)
      return candidate;
    list += (list.empty() ? "" : ", ") + candidate;
  }
  refuse(site.kind + ": attribute " + name + " is " + value->dump() +
         ", not one of " + list);
}

std::vector<int64_t> SiteReader::integers(const char *name) {
  const nlohmann::json *value = find(name);
  require(value, std::string("attribute ") + name + " is missing");
  require(value->is_array(),
          std::string("attribute ") + name + " isn't a list");
  std::vector<int64_t> result;
  for (const nlohmann::json &element : *value) {
    require(element.is_number_integer(),
            std::string("attribute ") + name + " holds a non-integer");
    result.push_back(element.get<int64_t>());
  }
  return result;
}

int SiteReader::axis(const char *name, int rank,
                     std::optional<int64_t> otherwise) {
  int64_t value = integer(name, otherwise, INT64_MIN, INT64_MAX);
  require(value >= -rank && value < rank,
          std::string("attribute ") + name + " = " + std::to_string(value) +
              " isn't a dimension of a tensor of rank " + std::to_string(rank));
  return int(value < 0 ? value + rank : value);
}

void SiteReader::finish() const {
  require(at == int(site.operands.size()),
          "has " + std::to_string(site.operands.size()) + " operands, " +
              std::to_string(at) + " expected");
  if (site.attributes.is_object())
    for (const auto &item : site.attributes.items())
      require(known.count(item.key()),
              "attribute " + item.key() + " is unknown");
}

const char *constantBytes(const PrepareContext &context, int operand) {
  return operand < int(context.constant.size()) ? context.constant[operand]
                                                : nullptr;
}

uint64_t constantKey(const PrepareContext &context, int operand) {
  if (operand < int(context.constantKeys.size()))
    return context.constantKeys[operand];
  return uint64_t(reinterpret_cast<uintptr_t>(constantBytes(context, operand)));
}

std::shared_ptr<AlignedBytes>
packConstant(const PrepareContext &context, int operand,
             const std::string &format, size_t bytes,
             const std::function<void(char *)> &pack) {
  if (context.packs)
    return context.packs->get({constantKey(context, operand), format}, bytes,
                              pack);
  auto copy = std::make_shared<AlignedBytes>(bytes);
  pack(copy->data());
  return copy;
}

std::shared_ptr<Scratch> scratchOf(const PrepareContext &context) {
  return context.scratch ? context.scratch : std::make_shared<Scratch>();
}

} // namespace mtp
