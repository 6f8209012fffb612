// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ConversionPrograms.h - every change of layout ----------------------===//
#ifndef MTP_TEST_FUZZ_CONVERSIONPROGRAMS_H
#define MTP_TEST_FUZZ_CONVERSIONPROGRAMS_H

#include "dialects/mtp/MtpDialect.h"

#include "test/fuzz/GradientPrograms.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>
#include <vector>

namespace mtp::fuzz {

/// One conversion of one argument.
struct ConversionTrial {
  unsigned argument = 0;
  std::string op, row,
      text; ///< "mtp.all_gather", "S(1)", "tp = S(1), dp = R to .."
};

/// A module that brings the arguments of `values` (a function that returns
/// nothing) into every layout that a conversion op starts from, converts, and
/// returns the value. Result `<trial>.0` equals the argument.
mlir::OwningOpRef<mlir::ModuleOp>
buildConversions(mlir::func::FuncOp values, const MeshShape &mesh,
                 std::vector<ConversionTrial> &trials);

/// The same for float values, with a loss of each trial's result and the
/// gradient
/// "<trial>.0" with respect to the trial's own copy of the value: the conjugate
/// of every conversion. Extrema have none.
GradientProgram buildConversionGradients(mlir::func::FuncOp values,
                                         const MeshShape &mesh,
                                         std::vector<ConversionTrial> &trials);

} // namespace mtp::fuzz

#endif // MTP_TEST_FUZZ_CONVERSIONPROGRAMS_H
