// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/session/Inputs.h"
#include "runtime/session/Session.h"
#include "runtime/support/Checked.h"

#include <cstring>

using namespace mtp;

namespace {

/// Bytes FF 7F: NaN as f16, bf16, f32 and f64, large and positive as integer.
constexpr uint16_t kPoison = 0x7fff;

/// Hidden scalars of a training step are the tool's, not the user's.
std::string listNames(const Entry &entry) {
  std::string text;
  for (const Input &input : entry.inputs)
    if (input.name.rfind("mtp.", 0) != 0)
      text += (text.empty() ? "'" : ", '") + input.name + "'";
  return text.empty() ? "none" : text;
}

/// "[batch = 1, sequence = 16]".
std::string compiledShape(const Input &input) {
  std::string text = "[";
  for (size_t i = 0; i < input.layout.shape.size(); ++i) {
    if (i)
      text += ", ";
    if (i < input.dimNames.size() && !input.dimNames[i].empty())
      text += input.dimNames[i] + " = ";
    text += std::to_string(input.layout.shape[i]);
  }
  return text + "]";
}

bool typeFits(const Artifact &artifact, DType given, DType wanted) {
  if (given == wanted)
    return true;
  if (wanted == DType::BF16 && given == DType::U16)
    return true;
  return artifact.precision == "f64" && wanted == DType::F64 && isFloat(given);
}

bool shapesFit(const Entry &entry, const TensorMap &inputs) {
  for (const Input &input : entry.inputs) {
    auto it = inputs.find(input.name);
    if (it != inputs.end() && it->second.shape != input.layout.shape)
      return false;
  }
  return true;
}

Error inputError(std::string message) {
  return {exits::BadInput, "input", std::move(message), {}};
}

Error shapeError(const Artifact &artifact, const Input &input,
                 const HostTensor &tensor) {
  std::string what = "input '" + input.name + "'";
  if (tensor.shape.size() != input.layout.shape.size())
    return inputError(what + " has " + std::to_string(tensor.shape.size()) +
                      " dims " + shapeText(tensor.shape) +
                      "; the model takes " +
                      std::to_string(input.layout.shape.size()) + ": " +
                      compiledShape(input));
  std::string compiled = compiledShape(input);
  for (size_t i = 1; i < artifact.entries.size(); ++i)
    for (const Input &other : artifact.entries[i].inputs)
      if (other.name == input.name && other.layout.shape != input.layout.shape)
        compiled += " or " + compiledShape(other);
  return inputError(what + " has dims " + shapeText(tensor.shape) +
                    "; the program was compiled for " + compiled);
}

std::string positionText(int64_t flat, const std::vector<int64_t> &shape) {
  std::vector<int64_t> position(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    position[i] = flat % shape[i];
    flat /= shape[i];
  }
  return shapeText(position);
}

template <typename T>
Error rangeError(const Input &input, const HostTensor &tensor) {
  const T *values = tensor.as<T>();
  for (int64_t i = 0, n = tensor.elements(); i < n; ++i) {
    if (std::cmp_greater_equal(values[i], input.lo) &&
        std::cmp_less_equal(values[i], input.hi))
      continue;
    std::string message =
        "input '" + input.name + "' has " + std::to_string(values[i]) + " at " +
        positionText(i, tensor.shape) + "; valid are " +
        std::to_string(input.lo) + " to " + std::to_string(input.hi);
    if (!input.rangeReason.empty())
      message += ": " + input.rangeReason;
    return inputError(message);
  }
  return {};
}

Error checkRange(const Input &input, const HostTensor &tensor) {
  if (input.lo > input.hi)
    return {};
  switch (tensor.type) {
  case DType::I64:
    return rangeError<int64_t>(input, tensor);
  case DType::I32:
    return rangeError<int32_t>(input, tensor);
  case DType::I16:
    return rangeError<int16_t>(input, tensor);
  case DType::I8:
    return rangeError<int8_t>(input, tensor);
  case DType::U64:
    return rangeError<uint64_t>(input, tensor);
  case DType::U32:
    return rangeError<uint32_t>(input, tensor);
  case DType::U16:
    return rangeError<uint16_t>(input, tensor);
  case DType::U8:
    return rangeError<uint8_t>(input, tensor);
  default:
    return {};
  }
}

Error checkAgainst(const Artifact &artifact, const Entry &entry,
                   const TensorMap &inputs) {
  for (const auto &[name, tensor] : inputs) {
    bool known = false;
    for (const Input &input : entry.inputs)
      known |= input.name == name;
    if (!known)
      return inputError("the model has no input '" + name +
                        "'; it has: " + listNames(entry));
  }
  for (const Input &input : entry.inputs) {
    auto it = inputs.find(input.name);
    if (it == inputs.end())
      return inputError("input '" + input.name + "' " + compiledShape(input) +
                        " of type " + name(input.layout.type) + " is missing");
    const HostTensor &tensor = it->second;
    if (!typeFits(artifact, tensor.type, input.layout.type))
      return inputError("input '" + input.name + "' has type " +
                        name(tensor.type) + "; the model takes " +
                        name(input.layout.type));
    if (tensor.shape != input.layout.shape)
      return shapeError(artifact, input, tensor);
    if (Error error = checkRange(input, tensor))
      return error;
  }
  return {};
}

} // namespace

bool mtp::checkInputs(const Artifact &artifact, const TensorMap &inputs,
                      int &entry, Error &error) {
  entry = 0;
  for (size_t i = artifact.entries.size(); i-- > 0;)
    if (shapesFit(artifact.entries[i], inputs))
      entry = static_cast<int>(i);
  return checkEntryInputs(artifact, entry, inputs, error);
}

bool mtp::checkEntryInputs(const Artifact &artifact, int entry,
                           const TensorMap &inputs, Error &error) {
  error = checkAgainst(artifact, artifact.entries[entry], inputs);
  return !error;
}

BlockMap::BlockMap(const TensorLayout &layout, const Mesh &mesh,
                   const std::vector<int64_t> &coordinates) {
  std::vector<int64_t> offset, valid, capacity, zero(layout.shape.size(), 0);
  std::vector<bool> cut(mesh.axes.size(), false);
  for (size_t i = 0; i < layout.shape.size(); ++i) {
    Block block = blockOf(layout.shape[i], layout.dims[i], mesh, coordinates);
    offset.push_back(block.offset);
    valid.push_back(block.valid);
    capacity.push_back(block.capacity);
    for (int axis : layout.dims[i].axes)
      cut[axis] = true;
  }
  for (size_t axis = 0; axis < cut.size(); ++axis)
    writes &= cut[axis] || coordinates[axis] == 0;
  int64_t element = byteSize(layout.type);
  blockBytes = elementCount(capacity) * element;
  toBlock = BoxCopy(valid, layout.shape, offset, capacity, zero, element);
  toWhole = BoxCopy(valid, capacity, zero, layout.shape, offset, element);
}

void mtp::poisonArena(char *bytes, int64_t size) {
  for (int64_t i = 0; i + 2 <= size; i += 2)
    std::memcpy(bytes + i, &kPoison, 2);
  if (size % 2)
    bytes[size - 1] = 0x7f;
}

void mtp::poison(DType type, char *bytes, int64_t size) {
  if (type == DType::Bool) {
    std::memset(bytes, 1, size);
    return;
  }
  poisonArena(bytes, size);
  if (!isFloat(type))
    return;
  int64_t element = byteSize(type);
  uint64_t infinity = type == DType::F64   ? 0x7ff0000000000000
                      : type == DType::F32 ? 0x7f800000
                      : type == DType::F16 ? 0x7c00
                                           : 0x7f80;
  for (int64_t i = element; i + element <= size; i += 2 * element)
    std::memcpy(bytes + i, &infinity, element);
}
