// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/Constant.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace mtp::onnx {

namespace {
double halfToDouble(uint16_t bits) {
  int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double value = exponent == 31
                     ? (fraction ? std::numeric_limits<double>::quiet_NaN()
                                 : std::numeric_limits<double>::infinity())
                 : exponent == 0 ? std::ldexp(fraction, -24)
                                 : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

double bfloatToDouble(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Rounds to `precision` bits with least exponent `least` (of the last bit of
/// subnormals) and largest finite value `most`.
double roundBits(double value, int precision, int least, double most) {
  if (!std::isfinite(value) || value == 0)
    return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  int unit = std::max(exponent - precision, least);
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  if (std::fabs(rounded) > most)
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

template <typename Stored>
void readInts(const uint8_t *data, int64_t n, std::vector<int64_t> &ints) {
  ints.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    Stored value;
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof value),
                sizeof value);
    ints[i] = static_cast<int64_t>(value);
  }
}

template <typename Stored, typename Function>
void readFloats(const uint8_t *data, int64_t n, std::vector<double> &floats,
                Function toDouble) {
  floats.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    Stored value;
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof value),
                sizeof value);
    floats[i] = toDouble(value);
  }
}

int64_t wrap(int64_t value, DType type) {
  switch (type) {
  case DType::I32:
    return static_cast<int32_t>(value);
  case DType::I16:
    return static_cast<int16_t>(value);
  case DType::I8:
    return static_cast<int8_t>(value);
  case DType::U32:
    return static_cast<uint32_t>(value);
  case DType::U16:
    return static_cast<uint16_t>(value);
  case DType::U8:
    return static_cast<uint8_t>(value);
  case DType::Bool:
    return value != 0;
  default:
    return value;
  }
}

template <typename Stored> void put(std::string &bytes, Stored value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

uint16_t halfBits(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double size = std::fabs(value);
  if (std::isnan(size))
    return 0x7e00;
  if (std::isinf(size))
    return sign | 0x7c00;
  if (size < std::ldexp(1.0, -14))
    return sign | static_cast<uint16_t>(std::ldexp(size, 24));
  int exponent = 0;
  double fraction = std::frexp(size, &exponent); // in [0.5, 1)
  return sign | static_cast<uint16_t>(
                    ((exponent + 14) << 10) +
                    (static_cast<int>(std::ldexp(fraction, 11)) - 1024));
}
} // namespace

double roundTo(double value, DType type) {
  switch (type) {
  case DType::F32:
    return static_cast<float>(value);
  case DType::F16:
    return roundBits(value, 11, -24, 65504);
  case DType::BF16:
    return roundBits(value, 8, -133, 3.3895313892515355e38);
  default:
    return value;
  }
}

void Constant::normalize() {
  if (type != DType::F64)
    for (double &value : floats)
      value = roundTo(value, type);
  if (type != DType::I64 && type != DType::U64)
    for (int64_t &value : ints)
      value = wrap(value, type);
}

Constant vectorOf(std::vector<int64_t> values) {
  Constant result;
  result.shape = {static_cast<int64_t>(values.size())};
  result.ints = std::move(values);
  return result;
}

Constant scalarOf(DType type, double value) {
  Constant result;
  result.type = type;
  result.resize();
  if (isFloat(type))
    result.floats[0] = value;
  else
    result.ints[0] = static_cast<int64_t>(value);
  result.normalize();
  return result;
}

Constant load(const Tensor &tensor, DType type) {
  Constant result;
  result.type = type;
  result.shape = tensor.shape;
  int64_t n = tensor.elements();
  const uint8_t *data = tensor.data();
  switch (tensor.type) {
  case DType::F64:
    readFloats<double>(data, n, result.floats, [](double v) { return v; });
    break;
  case DType::F32:
    readFloats<float>(data, n, result.floats,
                      [](float v) { return static_cast<double>(v); });
    break;
  case DType::F16:
    readFloats<uint16_t>(data, n, result.floats, halfToDouble);
    break;
  case DType::BF16:
    readFloats<uint16_t>(data, n, result.floats, bfloatToDouble);
    break;
  case DType::I64:
  case DType::U64:
    readInts<int64_t>(data, n, result.ints);
    break;
  case DType::I32:
    readInts<int32_t>(data, n, result.ints);
    break;
  case DType::I16:
    readInts<int16_t>(data, n, result.ints);
    break;
  case DType::I8:
    readInts<int8_t>(data, n, result.ints);
    break;
  case DType::U32:
    readInts<uint32_t>(data, n, result.ints);
    break;
  case DType::U16:
    readInts<uint16_t>(data, n, result.ints);
    break;
  case DType::U8:
  case DType::Bool:
    readInts<uint8_t>(data, n, result.ints);
    break;
  }
  result.normalize();
  return result;
}

Constant convert(const Constant &value, DType type) {
  Constant result;
  result.type = type;
  result.shape = value.shape;
  result.splat = value.splat;
  result.resize();
  int64_t n = static_cast<int64_t>(result.holdsFloats() ? result.floats.size()
                                                        : result.ints.size());
  for (int64_t i = 0; i < n; ++i) {
    if (result.holdsFloats()) {
      result.floats[i] = value.numberAt(i);
    } else if (!value.holdsFloats()) {
      result.ints[i] = value.intAt(i);
    } else if (type == DType::Bool) {
      result.ints[i] = value.floatAt(i) != 0; // NaN is true
    } else {
      double number = std::trunc(value.floatAt(i));
      result.ints[i] = std::isnan(number) ? 0
                       : number >= 9223372036854775808.0
                           ? std::numeric_limits<int64_t>::max()
                       : number <= -9223372036854775808.0
                           ? std::numeric_limits<int64_t>::min()
                           : static_cast<int64_t>(number);
    }
  }
  result.normalize();
  return result;
}

std::string bytesOf(const Constant &value) {
  std::string bytes;
  int64_t n = value.elements();
  bytes.reserve(static_cast<size_t>(n * byteSize(value.type)));
  for (int64_t i = 0; i < n; ++i) {
    switch (value.type) {
    case DType::F64:
      put(bytes, value.floatAt(i));
      break;
    case DType::F32:
      put(bytes, static_cast<float>(value.floatAt(i)));
      break;
    case DType::F16:
      put(bytes, halfBits(value.floatAt(i)));
      break;
    case DType::BF16:
      put(bytes,
          static_cast<uint16_t>(
              std::bit_cast<uint32_t>(static_cast<float>(value.floatAt(i))) >>
              16));
      break;
    case DType::I64:
    case DType::U64:
      put(bytes, value.intAt(i));
      break;
    case DType::I32:
    case DType::U32:
      put(bytes, static_cast<uint32_t>(value.intAt(i)));
      break;
    case DType::I16:
    case DType::U16:
      put(bytes, static_cast<uint16_t>(value.intAt(i)));
      break;
    case DType::I8:
    case DType::U8:
    case DType::Bool:
      put(bytes, static_cast<uint8_t>(value.intAt(i)));
      break;
    }
  }
  return bytes;
}

} // namespace mtp::onnx
