// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Guard.h"

#include "llvm/Support/ErrorHandling.h"

#include <csignal>
#include <gtest/gtest.h>

using namespace mtp;

TEST(Guard, RunsTheBody) {
  std::string error;
  bool ran = false;
  EXPECT_TRUE(runGuarded([&] { ran = true; }, error));
  EXPECT_TRUE(ran);
  EXPECT_EQ(error, "");
}

TEST(Guard, ExceptionsAreErrors) {
  std::string error;
  EXPECT_FALSE(
      runGuarded([] { throw std::runtime_error("no such thing"); }, error));
  EXPECT_NE(error.find("no such thing"), std::string::npos);
  EXPECT_FALSE(runGuarded([] { throw std::bad_alloc(); }, error));
  EXPECT_NE(error.find("memory"), std::string::npos);
}

TEST(Guard, FatalErrorsOfLlvmAreErrors) {
  std::string error;
  for (bool crash : {false, true}) {
    EXPECT_FALSE(runGuarded(
        [&] { llvm::report_fatal_error("cannot select", crash); }, error));
    EXPECT_NE(error.find("cannot select"), std::string::npos);
  }
  EXPECT_TRUE(runGuarded([] {}, error = ""));
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(Guard, CrashesAreErrors) {
  std::string error;
  EXPECT_FALSE(runGuarded([] { raise(SIGSEGV); }, error));
  EXPECT_NE(error.find("signal 11"), std::string::npos) << error;
  EXPECT_FALSE(runGuarded([] { abort(); }, error));
  struct sigaction action;
  ASSERT_EQ(sigaction(SIGSEGV, nullptr, &action), 0);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}
#endif

TEST(Guard, DeepRecursionFits) {
  std::string error;
  std::function<int(int)> deep = [&](int depth) {
    volatile char frame[256] = {};
    return depth ? deep(depth - 1) + frame[0] : 0;
  };
  EXPECT_TRUE(runGuarded([&] { EXPECT_EQ(deep(50000), 0); }, error));
}
