// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/TensorReader.h"

#include "compiler/frontend/onnx/OnnxError.h"
#include "compiler/frontend/onnx/Skeleton.h"
#include "runtime/support/Checked.h"

#include "onnx-ml.pb.h"

#include <charconv>
#include <cstring>
#include <google/protobuf/unknown_field_set.h>

namespace mtp::onnx {

std::string text(const Shape &shape) {
  std::string result = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    result += (i ? ", " : "") + std::to_string(shape[i]);
  return result + "]";
}

int64_t Tensor::elements() const { return elementCount(shape); }

const uint8_t *Tensor::data() const {
  if (file)
    return file->data() + offset;
  return owned ? reinterpret_cast<const uint8_t *>(owned->data()) : nullptr;
}

bool dtypeOf(int64_t onnxType, DType &type) {
  using Proto = ::onnx::TensorProto;
  switch (onnxType) {
  case Proto::FLOAT:
    type = DType::F32;
    return true;
  case Proto::DOUBLE:
    type = DType::F64;
    return true;
  case Proto::FLOAT16:
    type = DType::F16;
    return true;
  case Proto::BFLOAT16:
    type = DType::BF16;
    return true;
  case Proto::INT64:
    type = DType::I64;
    return true;
  case Proto::INT32:
    type = DType::I32;
    return true;
  case Proto::INT16:
    type = DType::I16;
    return true;
  case Proto::INT8:
    type = DType::I8;
    return true;
  case Proto::UINT64:
    type = DType::U64;
    return true;
  case Proto::UINT32:
    type = DType::U32;
    return true;
  case Proto::UINT16:
    type = DType::U16;
    return true;
  case Proto::UINT8:
    type = DType::U8;
    return true;
  case Proto::BOOL:
    type = DType::Bool;
    return true;
  default:
    return false;
  }
}

std::string foreignName(int64_t onnxType) {
  if (onnxType > 0 && onnxType <= INT32_MAX &&
      ::onnx::TensorProto::DataType_IsValid(static_cast<int>(onnxType))) {
    std::string name = ::onnx::TensorProto::DataType_Name(
        static_cast<::onnx::TensorProto::DataType>(onnxType));
    for (char &c : name)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return name;
  }
  return "type number " + std::to_string(onnxType);
}

namespace {
template <typename Stored, typename Values>
void pack(const Values &values, std::string &bytes) {
  bytes.reserve(static_cast<size_t>(values.size()) * sizeof(Stored));
  for (auto value : values) {
    Stored stored = static_cast<Stored>(value);
    bytes.append(reinterpret_cast<const char *>(&stored), sizeof stored);
  }
}

int64_t parseNumber(const std::string &value, const std::string &what) {
  int64_t number = 0;
  auto [end, code] =
      std::from_chars(value.data(), value.data() + value.size(), number);
  if (code != std::errc() || end != value.data() + value.size() || number < 0)
    failInput(what + " is '" + value + "', not a number of bytes");
  return number;
}

/// True if the skeleton left a reference where the payload was.
bool hasMappedPayload(const ::onnx::TensorProto &proto) {
  const auto &unknown = proto.GetReflection()->GetUnknownFields(proto);
  for (int i = 0; i < unknown.field_count(); ++i)
    if (unknown.field(i).number() == static_cast<int>(payload::Field))
      return true;
  return false;
}

/// Kernels rely on 0 and 1; a file may hold other bytes for true.
void normalizeBooleans(Tensor &tensor) {
  if (tensor.type != DType::Bool)
    return;
  const uint8_t *data = tensor.data();
  bool sound = true;
  for (uint64_t i = 0; i < tensor.bytes; ++i)
    sound &= data[i] <= 1;
  if (sound)
    return;
  std::string bytes(tensor.bytes, '\0');
  for (uint64_t i = 0; i < tensor.bytes; ++i)
    bytes[i] = data[i] != 0;
  tensor.owned = std::make_shared<std::string>(std::move(bytes));
  tensor.file = nullptr;
  tensor.offset = 0;
}
} // namespace

Tensor TensorReader::read(const ::onnx::TensorProto &proto) {
  Tensor tensor;
  tensor.name = proto.name();
  std::string what = "tensor '" + tensor.name + "'";
  for (int64_t extent : proto.dims()) {
    if (extent < 0)
      failInput(what + " has a negative dimension, " + std::to_string(extent));
    tensor.shape.push_back(extent);
  }
  if (tensor.shape.size() > 64)
    failInput(what + " has " + std::to_string(tensor.shape.size()) +
              " dimensions");
  if (!dtypeOf(proto.data_type(), tensor.type)) {
    if (!proto.has_data_type() || proto.data_type() == 0)
      failInput(what + " has no element type");
    tensor.foreignType = foreignName(proto.data_type());
    return tensor;
  }
  int64_t elements = 0, bytes = 0;
  if (!checkedProduct(tensor.shape, elements) ||
      !checkedMul(elements, byteSize(tensor.type), bytes))
    failInput(what + " has shape " + text(tensor.shape) +
              ", more than 2^63 bytes");
  if (proto.has_segment())
    failInput(what + " is stored in segments, which cannot be read");
  int fields =
      (proto.has_raw_data() ? 1 : 0) + (proto.float_data_size() ? 1 : 0) +
      (proto.int32_data_size() ? 1 : 0) + (proto.int64_data_size() ? 1 : 0) +
      (proto.double_data_size() ? 1 : 0) + (proto.uint64_data_size() ? 1 : 0) +
      (proto.string_data_size() ? 1 : 0) + (hasMappedPayload(proto) ? 1 : 0);
  if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
    if (fields)
      failInput(what + " has external data and data of its own");
    readExternal(proto, tensor, static_cast<uint64_t>(bytes));
    return tensor;
  }
  if (fields > 1)
    failInput(what + " has its data in more than one field");
  if (fields == 0) {
    if (elements)
      failInput(what + " of shape " + text(tensor.shape) + " has no data");
    tensor.owned = std::make_shared<std::string>();
    return tensor;
  }
  if (readMapped(proto, tensor, static_cast<uint64_t>(bytes))) {
    normalizeBooleans(tensor);
    return tensor;
  }
  if (proto.has_raw_data())
    tensor.owned = std::make_shared<std::string>(proto.raw_data());
  else
    readTyped(proto, tensor);
  if (tensor.owned->size() != static_cast<uint64_t>(bytes))
    failInput(what + " of shape " + text(tensor.shape) + " needs " +
              std::to_string(bytes) + " bytes, its data has " +
              std::to_string(tensor.owned->size()));
  tensor.bytes = static_cast<uint64_t>(bytes);
  normalizeBooleans(tensor);
  return tensor;
}

bool TensorReader::readMapped(const ::onnx::TensorProto &proto, Tensor &tensor,
                              uint64_t bytes) {
  uint64_t field = 0, length = 0;
  const auto &unknown = proto.GetReflection()->GetUnknownFields(proto);
  for (int i = 0; i < unknown.field_count(); ++i) {
    if (unknown.field(i).type() != google::protobuf::UnknownField::TYPE_VARINT)
      continue;
    uint64_t value = unknown.field(i).varint();
    switch (unknown.field(i).number()) {
    case payload::Field:
      field = value;
      break;
    case payload::Offset:
      tensor.offset = value;
      break;
    case payload::Length:
      length = value;
      break;
    default:
      break;
    }
  }
  if (!field)
    return false;
  std::string what = "tensor '" + tensor.name + "'";
  if ((field == 4 && tensor.type != DType::F32) ||
      (field == 10 && tensor.type != DType::F64))
    failInput(what + " has its data in the field of another type");
  if (length != bytes)
    failInput(what + " of shape " + text(tensor.shape) + " needs " +
              std::to_string(bytes) + " bytes, its data has " +
              std::to_string(length));
  tensor.bytes = bytes;
  tensor.file = model;
  return true;
}

void TensorReader::readTyped(const ::onnx::TensorProto &proto, Tensor &tensor) {
  std::string bytes;
  auto misplaced = [&](bool present) {
    if (!present)
      failInput("tensor '" + tensor.name +
                "' has its data in the field of another type");
  };
  switch (tensor.type) {
  case DType::F32:
    misplaced(proto.float_data_size());
    pack<float>(proto.float_data(), bytes);
    break;
  case DType::F64:
    misplaced(proto.double_data_size());
    pack<double>(proto.double_data(), bytes);
    break;
  case DType::I64:
    misplaced(proto.int64_data_size());
    pack<int64_t>(proto.int64_data(), bytes);
    break;
  case DType::U64:
  case DType::U32:
    misplaced(proto.uint64_data_size());
    if (tensor.type == DType::U64)
      pack<uint64_t>(proto.uint64_data(), bytes);
    else
      pack<uint32_t>(proto.uint64_data(), bytes);
    break;
  default: // 32 bits and less, floats of 16 bits by their bits
    misplaced(proto.int32_data_size());
    if (tensor.type == DType::Bool)
      for (int32_t value : proto.int32_data())
        bytes.push_back(value != 0);
    else if (byteSize(tensor.type) == 4)
      pack<int32_t>(proto.int32_data(), bytes);
    else if (byteSize(tensor.type) == 2)
      pack<uint16_t>(proto.int32_data(), bytes);
    else
      pack<uint8_t>(proto.int32_data(), bytes);
  }
  tensor.owned = std::make_shared<std::string>(std::move(bytes));
}

void TensorReader::readExternal(const ::onnx::TensorProto &proto,
                                Tensor &tensor, uint64_t bytes) {
  std::map<std::string, std::string> entries;
  for (const auto &entry : proto.external_data())
    if (!entries.emplace(entry.key(), entry.value()).second)
      failInput("external data of '" + tensor.name + "' gives '" + entry.key() +
                "' twice");
  std::string path =
      resolveExternalData(modelPath, entries["location"], tensor.name);
  auto &file = external[path];
  if (!file)
    file = MappedFile::open(path);
  std::string what = "external data of '" + tensor.name + "'";
  uint64_t offset = 0;
  if (entries.count("offset"))
    offset = static_cast<uint64_t>(
        parseNumber(entries["offset"], "the offset of the " + what));
  if (entries.count("length")) {
    int64_t length =
        parseNumber(entries["length"], "the length of the " + what);
    if (static_cast<uint64_t>(length) != bytes)
      failInput(what + " has length " + std::to_string(length) + ", shape " +
                text(tensor.shape) + " needs " + std::to_string(bytes) +
                " bytes");
  }
  if (offset > file->size() || bytes > file->size() - offset)
    failInput(what + " ends at byte " +
              std::to_string(static_cast<unsigned __int128>(offset) + bytes >
                                     UINT64_MAX
                                 ? UINT64_MAX
                                 : offset + bytes) +
              ", '" + entries["location"] + "' has " +
              std::to_string(file->size()));
  tensor.file = file;
  tensor.offset = offset;
  tensor.bytes = bytes;
  normalizeBooleans(tensor);
}

} // namespace mtp::onnx
