// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/Table.h"
#include "tools/common/Text.h"

#include <gtest/gtest.h>

using namespace mtp;

TEST(Table, FoldsRowsThatDifferInTheNumbersOfTheirNames) {
  Table table({{"weight"}, {"shape"}});
  table.add({"wte", "[9, 4]"});
  for (int layer = 0; layer < 12; ++layer)
    table.add({"h." + std::to_string(layer) + ".mlp.c_fc2.weight", "[4, 8]"});
  table.add({"h.12.mlp.c_fc2.weight", "[4, 9]"});
  EXPECT_EQ(table.text(), "  weight                          shape\n"
                          "  wte                             [9, 4]\n"
                          "  h.{0..11}.mlp.c_fc2.weight x12  [4, 8]\n"
                          "  h.12.mlp.c_fc2.weight           [4, 9]\n");
}

TEST(Table, NamesNumbersThatLeaveGaps) {
  EXPECT_EQ(foldNames({"a3", "a0", "a7"}), "a{0,3,7}");
  EXPECT_EQ(foldNames({"a0", "a2", "a4", "a6", "a8"}), "a{0…8}");
  EXPECT_EQ(foldNames({"h.0.w1", "h.1.w1"}), "h.{0..1}.w1");
  EXPECT_EQ(foldNames({"007"}), "007");
  EXPECT_EQ(foldNames({"a.0.1", "a.0.2"}), "a.0.{1..2}");
  EXPECT_EQ(foldNames({"p/o", "p_1/o", "p_2/o"}), "p[_{1..2}]/o");
  EXPECT_EQ(foldNames({"n99999999999999999999", "n88888888888888888888"}),
            "n…");
}

TEST(Table, FoldsReasonsThatNameTheLayer) {
  Table table({{"where"}, {"bytes", true}, {"why", false, true}});
  table.add({"Add_1", "6 KiB", "'MatMul_0' is a sum"});
  table.add({"Add_9", "6 KiB", "'MatMul_8' is a sum"});
  table.add({"Add_9", "7 KiB", "'MatMul_8' is a sum"});
  EXPECT_EQ(table.text(), "  where         bytes  why\n"
                          "  Add_{1,9} x2  6 KiB  'MatMul_{0,8}' is a sum\n"
                          "  Add_9         7 KiB  'MatMul_8' is a sum\n");
}

TEST(Text, ShortensInTheMiddle) {
  EXPECT_EQ(shortened("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shortened("abcdefghijk", 5), "ab…jk");
  EXPECT_EQ(displayWidth("…é"), 2u);
}

TEST(Text, WritesBytesAndTimes) {
  EXPECT_EQ(bytesText(0), "0 B");
  EXPECT_EQ(bytesText(999), "999 B");
  EXPECT_EQ(bytesText(24576), "24 KiB");
  EXPECT_EQ(bytesText(int64_t(3) << 39), "1.5 TiB");
  EXPECT_EQ(timeText(0.03124), "0.0312 ms");
  EXPECT_EQ(timeText(1234.5), "1234 ms");
  EXPECT_EQ(timeText(12345.6), "12.3 s");
}

TEST(Text, ReadsOnlyWholeNumbers) {
  EXPECT_EQ(parseInteger("-7"), -7);
  for (const char *text : {"", " 1", "1 ", "1x", "0x1", "9223372036854775808"})
    EXPECT_FALSE(parseInteger(text)) << text;
  EXPECT_EQ(parseNumber("1e-3"), 1e-3);
  for (const char *text : {"", "nan", "inf", "1e999", "1.0s"})
    EXPECT_FALSE(parseNumber(text)) << text;
}
