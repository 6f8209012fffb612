// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Kernels of the runtime's tests; TestArtifact.h says what each computes. */
#include "runtime/abi/Abi.h"

static void multiply(const MtpRank *rank, char *const *buffers, int64_t begin,
                     int64_t end) {
  (void)rank;
  const float *x = (const float *)buffers[0], *w = (const float *)buffers[1];
  float *y = (float *)buffers[2];
  for (int64_t i = begin; i < end; ++i)
    y[i] = x[i] * w[i];
}

static void lookUp(const MtpRank *rank, char *const *buffers, int64_t begin,
                   int64_t end) {
  const int64_t *index = (const int64_t *)buffers[0];
  const float *table = (const float *)buffers[1];
  float *y = (float *)buffers[2];
  for (int64_t i = begin; i < end; ++i) {
    if (index[i] < 0 || index[i] >= 4)
      __atomic_store_n(rank->fault, 1, __ATOMIC_RELAXED);
    else
      y[i] = table[index[i]];
  }
}

static void addOne(const MtpRank *rank, char *const *buffers, int64_t begin,
                   int64_t end) {
  (void)rank;
  float *y = (float *)buffers[0];
  for (int64_t i = begin; i < end; ++i)
    y[i] += 1;
}

static void hang(const MtpRank *rank, char *const *buffers, int64_t begin,
                 int64_t end) {
  (void)begin;
  (void)end;
  const int64_t *coordinate = (const int64_t *)buffers[0];
  /* Only the second rank. */
  while (*coordinate == 1 && rank->step >= 0)
    __asm__ volatile("" ::: "memory");
}

static void exponent(const MtpRank *rank, char *const *buffers, int64_t begin,
                     int64_t end) {
  const float *x = (const float *)buffers[0];
  float *y = (float *)buffers[1];
  for (int64_t i = begin; i < end; ++i)
    y[i] = (float)rank->math->exp(x[i]) + (float)rank->rankValues[0];
}

__attribute__((visibility("default"))) const MtpKernelTable *mtp_kernels(void) {
  static const MtpKernel kernels[] = {multiply, lookUp, addOne, hang, exponent};
  static const MtpKernelTable table = {MTP_ABI_VERSION, 5, kernels};
  return &table;
}
