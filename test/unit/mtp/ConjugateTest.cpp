// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ConjugateTest.cpp - every conversion and its conjugate -------------===//

#include "dialects/mtp/MtpDialect.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mtp;

namespace {
struct Row {
  Kind from, to;
  StringRef conjugate;
};

/// All conversions of the dialect by name.
std::map<std::string, Row> conversions(MLIRContext &context) {
  context.loadDialect<MtpDialect>();
  std::map<std::string, Row> rows;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (auto *conversion = name.getInterface<ConversionOpInterface>())
      rows[name.getStringRef().str()] = {conversion->fromKind(),
                                         conversion->toKind(),
                                         conversion->getConjugateName()};
  return rows;
}
} // namespace

/// a -> b has the conjugate dual(b) -> dual(a), and the conjugate of the
/// conjugate is the op.
TEST(Conjugates, AreThoseOfTheStates) {
  MLIRContext context;
  auto rows = conversions(context);
  EXPECT_EQ(rows.size(), 18u);
  for (auto &[name, row] : rows) {
    if (row.from == Kind::PMax || row.from == Kind::PMin)
      continue; // behind stop-gradient only
    auto conjugate = rows.find(row.conjugate.str());
    ASSERT_NE(conjugate, rows.end()) << name;
    EXPECT_EQ(conjugate->second.from, dual(row.to)) << name;
    EXPECT_EQ(conjugate->second.to, dual(row.from)) << name;
    EXPECT_EQ(conjugate->second.conjugate, name);
  }
}

/// The name that two states give is the op with these states.
TEST(Conjugates, NamesFollowFromStates) {
  MLIRContext context;
  for (auto &[name, row] : conversions(context)) {
    if (name != "mtp.permute") {
      EXPECT_EQ(conversionName(row.from, row.to), name);
    }
  }
}

TEST(Conjugates, DualOfTheDualIsTheState) {
  for (Kind kind : {Kind::I, Kind::R, Kind::S, Kind::PSum})
    EXPECT_EQ(dual(dual(kind)), kind);
}
