// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-opt.cpp - inspect modules and run passes ------------------------===//

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"
#include "passes/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<mtp::MtpDialect, mtp::spmd::SpmdDialect>();
  mlir::registerAllPasses();
  mtp::registerMtpPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "mtp-opt: inspects modules and runs passes\n", registry));
}
