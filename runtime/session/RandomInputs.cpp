// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/session/Session.h"

#include "runtime/loader/Convert.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace mtp;

namespace {

/// Counter-based: value number i of a stream depends on (key, i) only.
uint64_t randomBits(uint64_t key, uint64_t i) {
  uint64_t z = key + (i + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

uint64_t keyOf(uint64_t seed, const std::string &name) {
  uint64_t hash = 0xcbf29ce484222325ull; // FNV-1a
  for (char c : name)
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return randomBits(seed, hash);
}

/// Box-Muller, rounded to f32.
float normalAt(uint64_t key, uint64_t i) {
  double u = (static_cast<double>(randomBits(key, 2 * i) >> 11) + 1) * 0x1p-53;
  double v = static_cast<double>(randomBits(key, 2 * i + 1) >> 11) * 0x1p-53;
  return static_cast<float>(std::sqrt(-2 * std::log(u)) *
                            std::cos(2 * std::numbers::pi * v));
}

/// Integer `i` of the input, before it is narrowed to its type.
int64_t integerAt(const Input &input, uint64_t key, int64_t i) {
  bool limited = input.lo <= input.hi;
  if (input.random == "zeros")
    return limited ? std::clamp<int64_t>(0, input.lo, input.hi) : 0;
  if (input.random == "mask")
    return limited ? std::clamp<int64_t>(1, input.lo, input.hi) : 1;
  int64_t last = input.layout.shape.empty() ? 1 : input.layout.shape.back();
  if (input.random == "positions")
    return limited ? std::min(i % last, input.hi) : i % last;
  int64_t lo =
      limited ? std::max<int64_t>(input.lo, std::min<int64_t>(0, input.hi)) : 0;
  int64_t hi = limited ? input.hi : 99;
  uint64_t span = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo) + 1;
  uint64_t bits = randomBits(key, static_cast<uint64_t>(i));
  return static_cast<int64_t>(static_cast<uint64_t>(lo) +
                              (span ? bits % span : bits));
}

void fillFloats(const Input &input, uint64_t key, HostTensor &tensor) {
  int64_t n = tensor.elements(), size = byteSize(tensor.type);
  int64_t last = input.layout.shape.empty() ? 1 : input.layout.shape.back();
  for (int64_t i = 0; i < n; ++i) {
    float value = input.random == "zeros"  ? 0.0f
                  : input.random == "mask" ? 1.0f
                  : input.random == "positions"
                      ? static_cast<float>(i % last)
                      : normalAt(key, static_cast<uint64_t>(i));
    convertElements(DType::F32, reinterpret_cast<const char *>(&value),
                    tensor.type, tensor.bytes.data() + i * size, 1);
  }
}

void fillIntegers(const Input &input, uint64_t key, HostTensor &tensor) {
  int64_t n = tensor.elements(), size = byteSize(tensor.type);
  for (int64_t i = 0; i < n; ++i) {
    int64_t value = tensor.type == DType::Bool && input.random == "ids"
                        ? static_cast<int64_t>(randomBits(key, i) & 1)
                        : integerAt(input, key, i);
    convertElements(DType::I64, reinterpret_cast<const char *>(&value),
                    tensor.type, tensor.bytes.data() + i * size, 1);
  }
}

} // namespace

TensorMap mtp::randomInputs(const Artifact &, const Entry &entry,
                            uint64_t seed) {
  TensorMap tensors;
  for (const Input &input : entry.inputs) {
    HostTensor tensor(input.layout.type, input.layout.shape);
    uint64_t key = keyOf(seed, input.name);
    if (isFloat(tensor.type))
      fillFloats(input, key, tensor);
    else
      fillIntegers(input, key, tensor);
    tensors.emplace(input.name, std::move(tensor));
  }
  return tensors;
}
