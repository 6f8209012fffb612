// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/abi/Abi.h"
__attribute__((visibility("default"))) int another = 1;
__attribute__((visibility("default"))) const MtpKernelTable *mtp_kernels(void) {
  static const MtpKernelTable table = {MTP_ABI_VERSION, 0, 0};
  return another ? &table : 0;
}
