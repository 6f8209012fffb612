// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Passes.td - all passes of mtp ---------------------------------------===//
#ifndef MTP_PASSES_TD
#define MTP_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // MTP_PASSES_TD
