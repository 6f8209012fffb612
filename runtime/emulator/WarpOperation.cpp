// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/emulator/WarpOperation.h"
#include "runtime/support/Half.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

using namespace mtp;
using namespace mtp::emulator;

static constexpr int64_t kRows = 16, kColumns = 8, kMostDepth = 16;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static WarpOperation parseShuffle(const std::string &mode) {
  if (mode == "xor")
    return Shuffle::Xor;
  if (mode == "up")
    return Shuffle::Up;
  if (mode == "down")
    return Shuffle::Down;
  if (mode == "idx")
    return Shuffle::Index;
  throw std::invalid_argument("shuffle " + mode);
}

static WarpOperation parseVote(const std::string &mode) {
  if (mode == "any")
    return Vote::Any;
  if (mode == "all")
    return Vote::All;
  if (mode == "uni")
    return Vote::Uniform;
  if (mode == "ballot")
    return Vote::Ballot;
  throw std::invalid_argument("vote " + mode);
}

static WarpOperation parseProduct(const std::string &mode) {
  using Type = MatrixProduct::Type;
  struct Known {
    const char *mode;
    MatrixProduct product;
  };
  static const Known all[] = {
      {"f16 8", {Type::F16, 8}},   {"f16 16", {Type::F16, 16}},
      {"bf16 8", {Type::BF16, 8}}, {"bf16 16", {Type::BF16, 16}},
      {"tf32 4", {Type::TF32, 4}}, {"tf32 8", {Type::TF32, 8}}};
  for (const Known &known : all)
    if (mode == known.mode)
      return known.product;
  throw std::invalid_argument("mma " + mode);
}

static WarpOperation parseLoad(const std::string &mode) {
  for (int64_t count : {1, 2, 4})
    for (bool transposed : {false, true})
      if (mode == std::to_string(count) + (transposed ? " col" : " row"))
        return MatrixLoad{count, transposed};
  throw std::invalid_argument("ldmatrix " + mode);
}

WarpOperation mtp::emulator::parseWarpOperation(const std::string &kind,
                                                const std::string &mode) {
  if (kind == "shuffle")
    return parseShuffle(mode);
  if (kind == "vote")
    return parseVote(mode);
  if (kind == "mma")
    return parseProduct(mode);
  if (kind == "ldmatrix")
    return parseLoad(mode);
  throw std::invalid_argument(kind);
}

//===----------------------------------------------------------------------===//
// Shuffles and votes
//===----------------------------------------------------------------------===//

/// CUDA's shfl.sync: value, offset, width -> value, valid.
static int exchange(Shuffle mode, const Lanes &lanes) {
  std::array<uint64_t, kWarp> values;
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    if (lanes[lane][2] != kWarp)
      return static_cast<int>(lane);
    values[lane] = lanes[lane][0];
  }
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    auto offset = static_cast<int64_t>(lanes[lane][1]);
    int64_t from = mode == Shuffle::Xor    ? int64_t(lane) ^ offset
                   : mode == Shuffle::Up   ? int64_t(lane) - offset
                   : mode == Shuffle::Down ? int64_t(lane) + offset
                                           : offset;
    bool valid = from >= 0 && from < int64_t(kWarp);
    lanes[lane][0] = values[valid ? static_cast<uint32_t>(from) : lane];
    lanes[lane][1] = valid;
  }
  return -1;
}

/// CUDA's vote.sync: value, mask -> result.
static int count(Vote mode, const Lanes &lanes) {
  uint32_t votes = 0;
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    if (lanes[lane][1] != 0xffffffff)
      return static_cast<int>(lane);
    votes |= uint32_t(lanes[lane][0] != 0) << lane;
  }
  uint64_t result = mode == Vote::Ballot ? votes
                    : mode == Vote::Any  ? votes != 0
                    : mode == Vote::All  ? votes == ~0u
                                         : votes == 0 || votes == ~0u;
  for (uint64_t *lane : lanes)
    lane[0] = result;
  return -1;
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

/// The numbers of a register, one or two.
static void unpack(MatrixProduct::Type type, uint64_t bits, double *first,
                   double *second) {
  auto low = static_cast<uint32_t>(bits);
  switch (type) {
  case MatrixProduct::Type::F16:
    *first = f16ToFloat(static_cast<uint16_t>(low));
    *second = f16ToFloat(static_cast<uint16_t>(low >> 16));
    return;
  case MatrixProduct::Type::BF16:
    *first = bf16ToFloat(static_cast<uint16_t>(low));
    *second = bf16ToFloat(static_cast<uint16_t>(low >> 16));
    return;
  case MatrixProduct::Type::TF32:
    *first = std::bit_cast<float>(low & 0xffffe000);
    return;
  }
}

static void multiply(const MatrixProduct &product, const Lanes &lanes) {
  double a[kRows][kMostDepth], b[kColumns][kMostDepth]; // b is transposed
  bool pairs = product.type != MatrixProduct::Type::TF32;
  int64_t countA = product.countA(), countB = product.countB();
  double unused;
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    int64_t g = lane / 4, t = lane % 4;
    auto column = [&](int64_t half) {
      return pairs ? 2 * t + 8 * half : t + 4 * half;
    };
    for (int64_t i = 0; i < countA; ++i) {
      double *at = &a[g + i % 2 * 8][column(i / 2)];
      unpack(product.type, lanes[lane][i], at, pairs ? at + 1 : &unused);
    }
    for (int64_t i = 0; i < countB; ++i) {
      double *at = &b[g][column(i)];
      unpack(product.type, lanes[lane][countA + i], at,
             pairs ? at + 1 : &unused);
    }
  }
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    uint64_t *own = lanes[lane];
    std::array<uint64_t, 4> result;
    for (int64_t i = 0; i < 4; ++i) {
      int64_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      double sum =
          std::bit_cast<float>(static_cast<uint32_t>(own[countA + countB + i]));
      for (int64_t k = 0; k < product.depth; ++k)
        sum += a[row][k] * b[column][k];
      result[i] = std::isnan(sum)
                      ? 0x7fffffff
                      : std::bit_cast<uint32_t>(static_cast<float>(sum));
    }
    std::copy(result.begin(), result.end(), own);
  }
}

static void loadMatrices(const MatrixLoad &load, const Lanes &lanes) {
  std::array<const char *, kWarp> rows;
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    rows[lane] = reinterpret_cast<const char *>(lanes[lane][0]);
  auto number = [&](int64_t matrix, int64_t row, int64_t column) {
    uint16_t bits;
    memcpy(&bits, rows[static_cast<size_t>(8 * matrix + row)] + 2 * column, 2);
    return uint64_t(bits);
  };
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    for (int64_t matrix = 0; matrix < load.count; ++matrix) {
      int64_t g = lane / 4, t = 2 * (lane % 4);
      lanes[lane][matrix] =
          load.transposed
              ? number(matrix, t, g) | number(matrix, t + 1, g) << 16
              : number(matrix, g, t) | number(matrix, g, t + 1) << 16;
    }
}

namespace {
struct Performer {
  const Lanes &lanes;
  int operator()(Shuffle mode) const { return exchange(mode, lanes); }
  int operator()(Vote mode) const { return count(mode, lanes); }
  int operator()(const MatrixProduct &product) const {
    multiply(product, lanes);
    return -1;
  }
  int operator()(const MatrixLoad &load) const {
    loadMatrices(load, lanes);
    return -1;
  }
};
} // namespace

int mtp::emulator::perform(const WarpOperation &operation, const Lanes &lanes) {
  return std::visit(Performer{lanes}, operation);
}
