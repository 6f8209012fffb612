// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CallMemory.h - buffers of one call, guarded ------------------------===//
#ifndef MTP_TEST_UNIT_CODEGEN_CALLMEMORY_H
#define MTP_TEST_UNIT_CODEGEN_CALLMEMORY_H

#include "test/unit/codegen/Interpreter.h"

#include <memory>

namespace mtp::test {

/// Row-major tensors in memory, aligned to 64 bytes, guard bytes behind each.
class CallMemory {
public:
  /// A tensor with the given contents, or with bytes that mean nothing.
  void add(mlir::Type tensorType, const Tensor &contents);
  void add(mlir::Type tensorType);
  Tensor read(size_t buffer, mlir::Type tensorType) const;
  /// Throws std::runtime_error if anything was written behind a buffer.
  void checkGuards() const;

  std::vector<char *> buffers;

private:
  static constexpr int64_t kGuard = 64;
  void allocate(mlir::Type tensorType, char fill);
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<int64_t> sizes;
};

} // namespace mtp::test

#endif // MTP_TEST_UNIT_CODEGEN_CALLMEMORY_H
