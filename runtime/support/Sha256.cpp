// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/Sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

using namespace mtp;

namespace {

alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void compressPortable(uint32_t *state, const uint8_t *data, size_t blocks) {
  for (; blocks; --blocks, data += 64) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i)
      w[i] = uint32_t(data[4 * i]) << 24 | uint32_t(data[4 * i + 1]) << 16 |
             uint32_t(data[4 * i + 2]) << 8 | data[4 * i + 3];
    for (int i = 16; i < 64; ++i) {
      uint32_t s0 =
          std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      uint32_t s1 =
          std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t v[8];
    std::copy(state, state + 8, v);
    for (int i = 0; i < 64; ++i) {
      uint32_t s1 =
          std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25);
      uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
      uint32_t t1 = v[7] + s1 + choice + kRound[i] + w[i];
      uint32_t s0 =
          std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22);
      uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
      uint32_t t2 = s0 + majority;
      v[7] = v[6];
      v[6] = v[5];
      v[5] = v[4];
      v[4] = v[3] + t1;
      v[3] = v[2];
      v[2] = v[1];
      v[1] = v[0];
      v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; ++i)
      state[i] += v[i];
  }
}

#if defined(__x86_64__)
bool hasShaInstructions() {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & (1u << 29)))
    return false;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 19)) && (c & (1u << 9));
}

/// The state is kept as the instructions want it: ABEF and CDGH.
__attribute__((target("sha,sse4.1,ssse3"))) void
compressSha(uint32_t *state, const uint8_t *data, size_t blocks) {
  const __m128i swap =
      _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  __m128i low = _mm_loadu_si128(reinterpret_cast<__m128i *>(state));
  __m128i high = _mm_loadu_si128(reinterpret_cast<__m128i *>(state + 4));
  low = _mm_shuffle_epi32(low, 0xB1);
  high = _mm_shuffle_epi32(high, 0x1B);
  __m128i abef = _mm_alignr_epi8(low, high, 8);
  __m128i cdgh = _mm_blend_epi16(high, low, 0xF0);
  for (; blocks; --blocks, data += 64) {
    __m128i abefBefore = abef, cdghBefore = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(
          _mm_loadu_si128(reinterpret_cast<const __m128i *>(data + 16 * i)),
          swap);
    for (int i = 0; i < 16; ++i) {
      __m128i words = w[i & 3];
      if (i >= 4) {
        // w[t] = w[t-16] + s0(w[t-15]) + w[t-7] + s1(w[t-2]), four at a time.
        __m128i sum = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
        sum = _mm_add_epi32(sum,
                            _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
        words = _mm_sha256msg2_epu32(sum, w[(i + 3) & 3]);
        w[i & 3] = words;
      }
      __m128i input = _mm_add_epi32(
          words,
          _mm_load_si128(reinterpret_cast<const __m128i *>(kRound + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, input);
      input = _mm_shuffle_epi32(input, 0x0E);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, input);
    }
    abef = _mm_add_epi32(abef, abefBefore);
    cdgh = _mm_add_epi32(cdgh, cdghBefore);
  }
  __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i *>(state),
                   _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i *>(state + 4),
                   _mm_alignr_epi8(dchg, feba, 8));
}
#endif

void compress(uint32_t *state, const uint8_t *data, size_t blocks) {
#if defined(__x86_64__)
  static const bool fast = hasShaInstructions();
  if (fast)
    return compressSha(state, data, blocks);
#endif
  compressPortable(state, data, blocks);
}

} // namespace

Sha256::Sha256() {
  static constexpr uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                          0xa54ff53a, 0x510e527f, 0x9b05688c,
                                          0x1f83d9ab, 0x5be0cd19};
  std::copy(initial, initial + 8, state);
}

void Sha256::update(const void *bytes, size_t size) {
  const auto *data = static_cast<const uint8_t *>(bytes);
  total += size;
  if (filled) {
    size_t part = std::min(size, sizeof(block) - filled);
    std::memcpy(block + filled, data, part);
    filled += part;
    data += part;
    size -= part;
    if (filled < sizeof(block))
      return;
    compress(state, block, 1);
    filled = 0;
  }
  compress(state, data, size / 64);
  data += size / 64 * 64;
  filled = size % 64;
  if (filled)
    std::memcpy(block, data, filled);
}

std::array<uint8_t, 32> Sha256::digest() {
  uint64_t bits = total * 8;
  uint8_t tail[72] = {0x80};
  size_t padding = filled < 56 ? 56 - filled : 120 - filled;
  for (int i = 0; i < 8; ++i)
    tail[padding + i] = uint8_t(bits >> (56 - 8 * i));
  update(tail, padding + 8);
  std::array<uint8_t, 32> result;
  for (int i = 0; i < 32; ++i)
    result[i] = uint8_t(state[i / 4] >> (24 - 8 * (i % 4)));
  return result;
}

std::string Sha256::hexDigest() {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest()) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string Sha256::hex(const void *bytes, size_t size) {
  Sha256 hash;
  hash.update(bytes, size);
  return hash.hexDigest();
}
