// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Emulated kernels (runtime/abi/EmulatorAbi.h) of the tests of device
   "cuda-emulated": the code of one thread each. */
#include "runtime/abi/EmulatorAbi.h"
#include "runtime/abi/GpuAbi.h"

static int64_t number(const MtpEmulatedThread *thread) {
  return thread->block[0] * thread->blockSize[0] + thread->thread[0];
}

/* rank, ids, table -> y: y = table[id] * (step + 1) + seed + rankValues[0].
   Whether an id lies in the table is not looked at. */
static void lookUp(const MtpRank *rank, char *const *p, int64_t begin,
                   int64_t end) {
  (void)begin;
  (void)end;
  MtpEmulatedThread *thread = (MtpEmulatedThread *)rank;
  int64_t i = number(thread);
  const MtpGpuRank *record = (const MtpGpuRank *)p[0];
  int64_t *id = (int64_t *)p[1] + i;
  float *entry, *y = (float *)p[3] + i;
  thread->access(thread, 0, id);
  entry = (float *)p[2] + *id;
  thread->access(thread, 1, entry);
  thread->access(thread, 2, y);
  *y = *entry * (float)(record->step + 1) +
       (float)(record->seed + record->rankValues[0]);
}

/* out, in, count: out op= in, of `more` elements too many. */
static void reduce(const MtpRank *rank, char *const *p, int64_t more, int max) {
  MtpEmulatedThread *thread = (MtpEmulatedThread *)rank;
  int64_t count = (int64_t)(uintptr_t)p[2] + more;
  for (int64_t i = number(thread); i < count;
       i += thread->gridSize[0] * thread->blockSize[0]) {
    float *out = (float *)p[0] + i, *in = (float *)p[1] + i;
    thread->access(thread, 0, in);
    thread->access(thread, 1, out);
    thread->access(thread, 2, out);
    *out = max ? (*in > *out ? *in : *out) : *out + *in;
  }
}
static void reduceSum(const MtpRank *rank, char *const *p, int64_t begin,
                      int64_t end) {
  (void)begin;
  (void)end;
  reduce(rank, p, 0, 0);
}
static void reduceMax(const MtpRank *rank, char *const *p, int64_t begin,
                      int64_t end) {
  (void)begin;
  (void)end;
  reduce(rank, p, 0, 1);
}
static void reduceTooMany(const MtpRank *rank, char *const *p, int64_t begin,
                          int64_t end) {
  (void)begin;
  (void)end;
  reduce(rank, p, 1, 1);
}

#define PARAMETER(bytes, written, granule)                                     \
  "{\"bytes\": " bytes ", \"written\": " written ", \"granule\": " granule     \
  ", \"align\": " granule "}"
#define SITE(kind, index, bytes, where)                                        \
  "{\"kind\": \"" kind "\", \"memory\": \"parameter\", \"index\": " index      \
  ", \"bytes\": " bytes ", \"mode\": \"\", \"where\": \"" where "\"}"
#define KERNEL(symbol, parameters, sites)                                      \
  "{\"symbol\": \"" symbol "\", \"shared\": 0, \"arrays\": [], "               \
  "\"parameters\": [" parameters "], \"sites\": [" sites "]}"
#define REDUCTION(symbol)                                                      \
  KERNEL(symbol,                                                               \
         PARAMETER("-1", "true", "4") ", " PARAMETER(                          \
             "-1", "false", "4") ", " PARAMETER("-1", "false", "1"),           \
         SITE("load", "1", "4", "the term") ", " SITE(                         \
             "load", "0", "4", "the sum") ", " SITE("store", "0", "4",         \
                                                    "the store"))

static void description(const MtpRank *rank, char *const *p, int64_t begin,
                        int64_t end) {
  static const char text[] = "{\"kernels\": [" KERNEL(
      "look_up",
      PARAMETER("-1", "false", "8") ", " PARAMETER(
          "16", "false", "8") ", " PARAMETER("16", "false",
                                             "4") ", " PARAMETER("8", "true",
                                                                 "4"),
      SITE("load", "1", "8", "the id") ", " SITE("load", "2", "4", "the look-up") ", " SITE(
          "store", "3", "4",
          "the store")) ", " REDUCTION("mtp_reduce_sum_f32") ", " REDUCTION("mt"
                                                                            "p_"
                                                                            "re"
                                                                            "du"
                                                                            "ce"
                                                                            "_m"
                                                                            "ax"
                                                                            "_f"
                                                                            "3"
                                                                            "2") ", " REDUCTION("mtp_reduce_min_f32") "]}";
  (void)rank;
  (void)begin;
  (void)end;
  *(const char **)p[0] = text;
}

__attribute__((visibility("default"))) const MtpKernelTable *mtp_kernels(void) {
  static const MtpKernel kernels[] = {lookUp, reduceSum, reduceMax,
                                      reduceTooMany, description};
  static const MtpKernelTable table = {MTP_ABI_VERSION, 5, kernels};
  return &table;
}
