// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- WarpOperation.h - what the 32 threads of a warp do together --------===//
//
// Registers of lane 4 g + t of a product D = A B + C, A (16 x k), B (k x 8), C
// and D (16 x 8) of f32, as the PTX ISA has them (mma.m16n8k*):
//
//   C, D   (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1)
//
//   f16 and bf16: two numbers a register, the lower half is the first of
//   A   (g, 2t) (g + 8, 2t)    and for k = 16    (g, 2t + 8) (g + 8, 2t + 8)
//   B   (2t, g)                                  (2t + 8, g)
//
//   tf32: one number a register, the lower 13 bits of an f32 are not looked at
//   A   (g, t) (g + 8, t)      and for k = 8     (g, t + 4) (g + 8, t + 4)
//   B   (t, g)                                   (t + 4, g)
//
// Products are exact. What the hardware adds in which order is not said; here
// the sum is that of double precision, rounded once. A NaN is 0x7fffffff.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_EMULATOR_WARPOPERATION_H
#define MTP_RUNTIME_EMULATOR_WARPOPERATION_H

#include <array>
#include <cstdint>
#include <string>
#include <variant>

namespace mtp::emulator {

/// Threads of a warp.
inline constexpr uint32_t kWarp = 32;

enum class Shuffle { Xor, Up, Down, Index };

enum class Vote { Any, All, Uniform, Ballot };

struct MatrixProduct {
  enum class Type { F16, BF16, TF32 };
  Type type = Type::F16;
  int64_t depth = 8; ///< k

  /// Registers of a lane.
  int64_t countA() const { return depth / (type == Type::TF32 ? 2 : 4); }
  int64_t countB() const { return countA() / 2; }
};

/// Matrices of 8 x 8 numbers of 16 bits from shared memory: lane 8 m + r has
/// the address of row r of matrix m. Lane 4 g + t gets (g, 2t) and (g, 2t + 1)
/// of each in one register, or of its transposed.
struct MatrixLoad {
  int64_t count = 1; ///< 1, 2, 4
  bool transposed = false;
};

using WarpOperation = std::variant<Shuffle, Vote, MatrixProduct, MatrixLoad>;

/// Of a site, as EmulatorAbi.h has it. Throws std::invalid_argument.
WarpOperation parseWarpOperation(const std::string &kind,
                                 const std::string &mode);

/// Operands and then results of each lane, as EmulatorAbi.h has them.
using Lanes = std::array<uint64_t *, kWarp>;

/// -1, or a lane that asks for a part of the warp, which is not emulated.
int perform(const WarpOperation &operation, const Lanes &lanes);

} // namespace mtp::emulator

#endif // MTP_RUNTIME_EMULATOR_WARPOPERATION_H
