// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/MeshSpec.h"

#include <gtest/gtest.h>

using namespace mtp;

TEST(MeshSpec, ReadsAxesSlowestFirst) {
  Mesh mesh;
  std::string error;
  ASSERT_TRUE(parseMesh("dp=2,tp=4", mesh, error)) << error;
  ASSERT_EQ(mesh.axes.size(), 2u);
  EXPECT_EQ(mesh.axes[0].name, "dp");
  EXPECT_EQ(mesh.axes[1].size, 4);
  EXPECT_EQ(mesh.ranks(), 8);
  EXPECT_TRUE(parseMesh("_a9=1", mesh, error)) << error;
  EXPECT_TRUE(parseMesh("tp=1024", mesh, error)) << error;
}

TEST(MeshSpec, NamesWhatIsWrong) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "no axis"},
      {"tp", "NAME=SIZE"},
      {"=2", "not a name"},
      {"2p=2", "not a name"},
      {"tp=2,", "'' is not of the form"},
      {"tp=2,,dp=2", "'' is not of the form"},
      {"tp=2,tp=2", "axis 'tp' is given twice"},
      {"tp=0", "size 0"},
      {"tp=-2", "negative"},
      {"tp=", "not a size"},
      {"tp=2x", "not a size"},
      {"tp= 2", "not a size"},
      {"tp=+2", "not a size"},
      {"tp=1025", "more than 1024 ranks"},
      {"dp=64,tp=32", "more than 1024 ranks"},
      {"tp=99999999999999999999999", "more than 1024 ranks"},
      {"dp=4294967296,tp=4294967296", "more than 1024 ranks"},
  };
  for (auto [text, part] : cases) {
    Mesh mesh;
    std::string error;
    EXPECT_FALSE(parseMesh(text, mesh, error)) << text;
    EXPECT_NE(error.find(part), std::string::npos) << text << ": " << error;
  }
}
