// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Sha256.h - SHA-256 (FIPS 180-4) ------------------------------------===//
#ifndef MTP_RUNTIME_SUPPORT_SHA256_H
#define MTP_RUNTIME_SUPPORT_SHA256_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace mtp {

/// Streaming hash; uses the processor's SHA instructions where it has them.
class Sha256 {
public:
  Sha256();
  void update(const void *bytes, size_t size);
  /// Ends the message; the object can't be used any further.
  std::array<uint8_t, 32> digest();
  std::string hexDigest();

  static std::string hex(const void *bytes, size_t size);

private:
  uint32_t state[8];
  uint8_t block[64];
  size_t filled = 0;
  uint64_t total = 0;
};

} // namespace mtp

#endif // MTP_RUNTIME_SUPPORT_SHA256_H
