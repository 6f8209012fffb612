// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MtpDialect.cpp - the graph dialect ---------------------------------===//

#include "dialects/mtp/Gradient.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mtp;

#include "dialects/mtp/MtpDialect.cpp.inc"
#include "dialects/mtp/MtpEnums.cpp.inc"
#include "dialects/mtp/MtpInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/mtp/MtpAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/mtp/MtpOps.cpp.inc"

void MtpDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/mtp/MtpAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/mtp/MtpOps.cpp.inc"
      >();
  registerGradients(getContext());
}
