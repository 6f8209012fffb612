// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MtpOps.td - all ops of the dialect ----------------------------------===//
#ifndef MTP_OPS_TD
#define MTP_OPS_TD

include "dialects/mtp/MtpModuleOps.td"
include "dialects/mtp/MtpElementwiseOps.td"
include "dialects/mtp/MtpShapeOps.td"
include "dialects/mtp/MtpContractionOps.td"
include "dialects/mtp/MtpReductionOps.td"
include "dialects/mtp/MtpConversionOps.td"

#endif // MTP_OPS_TD
