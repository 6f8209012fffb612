// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Diagnostics.h"

#include "mlir/IR/Location.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mtp;

TEST(Diagnostics, NameTheNodeAndCollect) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  DiagnosticCollector collector(&context);
  Location node = NameLoc::get(StringAttr::get(&context, "h.0.attn"));
  Location line = FileLineColLoc::get(&context, "a.mlir", 3, 8);
  emitError(node) << "has no rule";
  emitError(FusedLoc::get(&context, {line, node})) << "again";
  emitError(line) << "is odd";
  emitWarning(node) << "is slow";
  emitRemark(node) << "is seen";
  EXPECT_TRUE(collector.hasErrors());
  EXPECT_EQ(collector.takeErrors(), "node 'h.0.attn': has no rule\nnode "
                                    "'h.0.attn': again\na.mlir:3:8: is odd");
  EXPECT_EQ(collector.nodes, std::vector<std::string>{"h.0.attn"});
  EXPECT_EQ(collector.warnings,
            std::vector<std::string>{"node 'h.0.attn': is slow"});
  EXPECT_FALSE(collector.hasErrors());
}

TEST(Diagnostics, ManyErrorsAreCounted) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  DiagnosticCollector collector(&context);
  for (int i = 0; i < 25; ++i)
    emitError(UnknownLoc::get(&context)) << "e" << i;
  std::string text = collector.takeErrors();
  EXPECT_NE(text.find("e19\nand 5 more"), std::string::npos);
}
