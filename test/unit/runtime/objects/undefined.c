// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/abi/Abi.h"
extern const MtpKernelTable *elsewhere(void)
    __attribute__((visibility("default")));
__attribute__((visibility("default"))) const MtpKernelTable *mtp_kernels(void) {
  return elsewhere();
}
