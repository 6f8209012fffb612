// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- KernelTest.h - helpers of the library kernels' tests ---------------===//
#ifndef MTP_TEST_UNIT_KERNELS_KERNELTEST_H
#define MTP_TEST_UNIT_KERNELS_KERNELTEST_H

#include "runtime/kernels/Convert.h"
#include "runtime/kernels/LibraryKernel.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MTP_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MTP_TEST_SANITIZED 1
#endif
#endif

namespace mtp::test {

/// Which combinations of values a test tries: all, but one in seven under
/// sanitizers, where they take twenty times as long. With numbers of values
/// that seven does not divide, every pair of values still occurs.
class Combinations {
public:
  bool skipsThis() {
#ifdef MTP_TEST_SANITIZED
    return seen++ % 7 != 0;
#else
    return false;
#endif
  }

private:
  [[maybe_unused]] int seen = 0;
};

inline int64_t product(const std::vector<int64_t> &shape) {
  int64_t result = 1;
  for (int64_t extent : shape)
    result *= extent;
  return result;
}

/// Elements of any type, seen as doubles.
struct Buffer {
  TensorDesc desc;
  std::vector<char> bytes;

  Buffer() = default;
  Buffer(DType type, std::vector<int64_t> shape,
         std::vector<int64_t> strides = {})
      : desc{type, shape, strides} {
    int64_t count = product(shape);
    if (!strides.empty() && count > 0) {
      count = 1;
      for (size_t i = 0; i < shape.size(); ++i)
        count += (shape[i] - 1) * strides[i];
    }
    bytes.resize(size_t(count * byteSize(type)));
  }
  int64_t count() const { return int64_t(bytes.size()) / byteSize(desc.type); }
  template <typename T> T *as() { return reinterpret_cast<T *>(bytes.data()); }
  bool isSigned() const {
    return desc.type != DType::U8 && desc.type != DType::U16 &&
           desc.type != DType::U32 && desc.type != DType::U64 &&
           desc.type != DType::Bool;
  }
  double get(int64_t i) const {
    double value = 0;
    loadRow<double>(desc.type, bytes.data() + i * byteSize(desc.type), 1,
                    &value, 1, 1);
    return value;
  }
  void set(int64_t i, double value) {
    char *to = bytes.data() + i * byteSize(desc.type);
    switch (desc.type) {
    case DType::I64:
    case DType::U64: {
      int64_t x = int64_t(value);
      std::memcpy(to, &x, 8);
      break;
    }
    case DType::I32:
    case DType::U32: {
      int32_t x = int32_t(value);
      std::memcpy(to, &x, 4);
      break;
    }
    case DType::I16:
    case DType::U16: {
      int16_t x = int16_t(value);
      std::memcpy(to, &x, 2);
      break;
    }
    case DType::I8:
    case DType::U8:
    case DType::Bool:
      *to = char(int(value));
      break;
    default:
      storeRow<double>(desc.type, &value, to, 1, 1);
    }
  }
  /// Element at an index of the shape.
  int64_t at(const std::vector<int64_t> &index) const {
    int64_t offset = 0, stride = 1;
    for (size_t i = index.size(); i-- > 0;) {
      offset += index[i] * (desc.strides.empty() ? stride : desc.strides[i]);
      stride *= desc.shape[i];
    }
    return offset;
  }
  Buffer &fill(unsigned seed, double scale = 1) {
    std::mt19937 random(seed);
    bool floating = desc.type == DType::F64 || desc.type == DType::F32 ||
                    desc.type == DType::F16 || desc.type == DType::BF16;
    std::normal_distribution<double> normal(0, scale);
    std::uniform_int_distribution<int> integers(isSigned() ? -9 : 0, 9);
    for (int64_t i = 0; i < count(); ++i)
      set(i, floating ? normal(random) : integers(random));
    return *this;
  }
};

/// Prepares and runs; buffers are the site's operands in order.
struct Call {
  LibrarySite site;
  PrepareContext context;
  std::unique_ptr<LibraryKernel> kernel;
  std::string error;

  Call(const char *kind, nlohmann::json attributes) {
    site.kind = kind;
    site.attributes =
        attributes.is_null() ? nlohmann::json::object() : attributes;
  }
  bool prepare(const std::vector<Buffer *> &buffers) {
    site.operands.clear();
    for (Buffer *buffer : buffers)
      site.operands.push_back(buffer->desc);
    kernel = prepareLibraryKernel(site, context, error);
    return kernel != nullptr;
  }
  bool run(const std::vector<Buffer *> &buffers) {
    if (!kernel && !prepare(buffers))
      return false;
    std::vector<char *> addresses;
    for (size_t i = 0; i < buffers.size(); ++i)
      addresses.push_back(
          kernel->keepsConstant(int(i)) ? buffers[i]->bytes.data() : nullptr);
    MtpRank rank = {};
    rank.rankValues = rankValues.data();
    return kernel->run(&rank, addresses.data(), error);
  }
  std::vector<int64_t> rankValues = {0};
};

/// max|a - b| / max|b|; infinity if NaN or infinity stand in different places.
inline double difference(const Buffer &a, const std::vector<double> &b) {
  double most = 0, scale = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    double x = a.get(int64_t(i)), y = b[i];
    if (std::isnan(x) && std::isnan(y))
      continue;
    if (std::isinf(y) && x == y)
      continue;
    if (!std::isfinite(x) || !std::isfinite(y))
      return INFINITY;
    most = std::max(most, std::fabs(x - y));
    scale = std::max(scale, std::fabs(y));
  }
  return most == 0 ? 0 : most / scale;
}

} // namespace mtp::test

#endif // MTP_TEST_UNIT_KERNELS_KERNELTEST_H
