// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RuleTables.h - what rules are, and what they ought to accept -------===//
#ifndef MTP_TEST_FUZZ_RULETABLES_H
#define MTP_TEST_FUZZ_RULETABLES_H

#include "dialects/mtp/MtpDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <string>

namespace mtp::fuzz {

/// Lines `name: text` of a file by name; `#` starts a comment.
std::map<std::string, std::string> readTable(const std::string &path);

/// The rule of a seed's op and its cases in one line.
std::string describeRule(mlir::func::FuncOp seed);

/// Counts of a check of layouts.
struct LayoutCounts {
  int64_t accepted = 0, refused = 0;
  std::map<std::string, int64_t>
      reasons; ///< of refusals, without operand numbers
};

/// Gives the op of `seed` every combination of states on one axis of two ranks
/// and compares the verifier with `expected`, a line of layouts.txt. Refusals
/// have to name the axis and a reason. Returns the first difference, or "".
std::string checkLayouts(mlir::func::FuncOp seed, const std::string &expected,
                         LayoutCounts &counts);

/// The states that a conversion op goes between and its conjugate's name.
struct ConversionRow {
  Kind from, to;
  Transfer transfer;
  std::string conjugate;
};
std::map<std::string, ConversionRow> conversionRows(mlir::MLIRContext &context);

/// a -> b has the conjugate dual(b) -> dual(a), the conjugate of the conjugate
/// is the op, and what ranks do follows from the states. Returns the first
/// violation, or "".
std::string checkConversions(const std::map<std::string, ConversionRow> &rows);

} // namespace mtp::fuzz

#endif // MTP_TEST_FUZZ_RULETABLES_H
