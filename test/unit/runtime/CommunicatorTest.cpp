// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CommunicatorTest.cpp - the suite on communicators of the CPU -------===//
#include "test/unit/runtime/CommunicatorSuite.h"

std::vector<mtp::test::Implementation> mtp::test::communicators() {
  return {{"threads", makeThreadCommunicators, false},
          {"threadsSpinning", makeThreadCommunicators, true}};
}
