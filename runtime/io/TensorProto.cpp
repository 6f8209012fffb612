// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TensorProto.cpp - onnx.TensorProto without protobuf ----------------===//
//
// Fields (onnx.proto): 1 dims, 2 data_type, 4 float_data, 5 int32_data,
// 7 int64_data, 9 raw_data, 10 double_data, 11 uint64_data, 14 data_location.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Npy.h"
#include "runtime/support/Checked.h"

#include <cstring>

using namespace mtp;

namespace {

/// A cursor over the wire format.
struct Wire {
  const char *at, *end;
  const std::string &what;

  [[noreturn]] void bad(const std::string &reason) const {
    failInput(what + " is not a valid TensorProto: " + reason);
  }
  bool done() const { return at == end; }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == end)
        bad("it is cut short");
      uint8_t byte = static_cast<uint8_t>(*at++);
      value |= uint64_t(byte & 127) << shift;
      if (!(byte & 128))
        return value;
    }
    bad("a number is too long");
  }
  const char *take(uint64_t count) {
    if (count > static_cast<uint64_t>(end - at))
      bad("it is cut short");
    const char *begin = at;
    at += count;
    return begin;
  }
  Wire message() {
    uint64_t length = varint();
    const char *begin = take(length);
    return {begin, begin + length, what};
  }
};

struct Proto {
  std::vector<int64_t> dims;
  uint64_t dataType = 0, location = 0;
  const char *raw = nullptr;
  uint64_t rawBytes = 0;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> integers; ///< int32_data, int64_data, uint64_data
};

/// A repeated field, packed or not.
template <typename Read> void repeated(Wire &wire, int wireType, Read &&read) {
  if (wireType != 2)
    return read(wire);
  Wire packed = wire.message();
  while (!packed.done())
    read(packed);
}

template <typename T> T fixed(Wire &wire) {
  T value;
  std::memcpy(&value, wire.take(sizeof(T)), sizeof(T));
  return value;
}

Proto readProto(Wire wire) {
  Proto proto;
  while (!wire.done()) {
    uint64_t tag = wire.varint();
    int wireType = static_cast<int>(tag & 7);
    auto integer = [&](std::vector<int64_t> &to) {
      if (wireType != 0 && wireType != 2)
        wire.bad("a field has the wrong type");
      repeated(wire, wireType, [&](Wire &w) {
        to.push_back(static_cast<int64_t>(w.varint()));
      });
    };
    switch (tag >> 3) {
    case 1:
      integer(proto.dims);
      continue;
    case 5:
    case 7:
    case 11:
      integer(proto.integers);
      continue;
    case 4:
      repeated(wire, wireType,
               [&](Wire &w) { proto.floats.push_back(fixed<float>(w)); });
      continue;
    case 10:
      repeated(wire, wireType,
               [&](Wire &w) { proto.doubles.push_back(fixed<double>(w)); });
      continue;
    default:
      break;
    }
    if (wireType == 0) {
      uint64_t value = wire.varint();
      if (tag >> 3 == 2)
        proto.dataType = value;
      if (tag >> 3 == 14)
        proto.location = value;
    } else if (wireType == 1) {
      wire.take(8);
    } else if (wireType == 5) {
      wire.take(4);
    } else if (wireType == 2) {
      Wire field = wire.message();
      if (tag >> 3 == 9) {
        proto.raw = field.at;
        proto.rawBytes = static_cast<uint64_t>(field.end - field.at);
      }
    } else {
      wire.bad("a field has an unknown wire type");
    }
  }
  return proto;
}

bool typeOf(uint64_t code, DType &type) {
  switch (code) {
  case 1:
    type = DType::F32;
    return true;
  case 2:
    type = DType::U8;
    return true;
  case 3:
    type = DType::I8;
    return true;
  case 4:
    type = DType::U16;
    return true;
  case 5:
    type = DType::I16;
    return true;
  case 6:
    type = DType::I32;
    return true;
  case 7:
    type = DType::I64;
    return true;
  case 9:
    type = DType::Bool;
    return true;
  case 10:
    type = DType::F16;
    return true;
  case 11:
    type = DType::F64;
    return true;
  case 12:
    type = DType::U32;
    return true;
  case 13:
    type = DType::U64;
    return true;
  case 16:
    type = DType::BF16;
    return true;
  default:
    return false;
  }
}

/// Typed fields hold the bits of an element in their low bytes.
void storeTyped(const Proto &proto, HostTensor &tensor, const Wire &wire) {
  int64_t count = tensor.elements(), size = byteSize(tensor.type);
  size_t have = tensor.type == DType::F32   ? proto.floats.size()
                : tensor.type == DType::F64 ? proto.doubles.size()
                                            : proto.integers.size();
  if (have != static_cast<size_t>(count))
    wire.bad("it has " + std::to_string(have) + " elements; its shape " +
             shapeText(tensor.shape) + " needs " + std::to_string(count));
  for (int64_t i = 0; i < count; ++i) {
    char *to = tensor.bytes.data() + i * size;
    if (tensor.type == DType::F32)
      std::memcpy(to, &proto.floats[i], 4);
    else if (tensor.type == DType::F64)
      std::memcpy(to, &proto.doubles[i], 8);
    else
      std::memcpy(to, &proto.integers[i], size);
  }
}

} // namespace

HostTensor mtp::parseTensorProto(const char *bytes, uint64_t size,
                                 const std::string &what) {
  Wire wire{bytes, bytes + size, what};
  Proto proto = readProto(wire);
  DType type;
  if (!typeOf(proto.dataType, type))
    wire.bad("element type " + std::to_string(proto.dataType) +
             " is not supported");
  if (proto.location != 0)
    wire.bad("its data lie in another file");
  if (proto.dims.size() > 64)
    wire.bad("it has more than 64 dims");
  int64_t need;
  for (int64_t extent : proto.dims)
    if (extent < 0)
      wire.bad("it has a negative extent");
  if (!checkedProduct(proto.dims, need) ||
      !checkedMul(need, byteSize(type), need))
    wire.bad("its shape is larger than any memory");
  if (proto.raw && proto.rawBytes != static_cast<uint64_t>(need))
    wire.bad("it has " + std::to_string(proto.rawBytes) +
             " bytes of data; its shape " + shapeText(proto.dims) + " of " +
             name(type) + " needs " + std::to_string(need));
  // Without raw data each element takes at least a byte of the file.
  if (!proto.raw && static_cast<uint64_t>(need) / 8 > size)
    wire.bad("its shape " + shapeText(proto.dims) + " is larger than its data");
  HostTensor tensor(type, proto.dims);
  if (!proto.raw)
    storeTyped(proto, tensor, wire);
  else if (need)
    std::memcpy(tensor.bytes.data(), proto.raw, need);
  return tensor;
}
