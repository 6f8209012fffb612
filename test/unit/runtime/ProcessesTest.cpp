// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ProcessesTest.cpp - the suite on processes, under mpirun -----------===//
//
//   mpirun -n 4 processes-tests
//
// Each process is one rank. All run the same tests in the same order and meet
// at the end of each.
//
//===----------------------------------------------------------------------===//
#include "runtime/processes/ProcessCommunicator.h"
#include "test/unit/runtime/CommunicatorSuite.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

using namespace mtp;

namespace {

std::shared_ptr<Processes> processes;
int64_t sessions = 0;

constexpr double kPatience = 60;

std::vector<std::unique_ptr<Communicator>>
makeHere(std::shared_ptr<Crew> crew, const Mesh &mesh,
         const std::vector<CollectiveSite> &sites) {
  int64_t epoch = sessions++;
  std::vector<std::unique_ptr<Communicator>> here;
  if (processes->rank() < mesh.ranks())
    here.push_back(
        makeProcessCommunicator(crew, processes, mesh, sites, epoch));
  return here;
}

/// All get the failure of the first rank that has one.
Error meetOthers(const Error &error) {
  struct Word {
    int code;
    char text[1024];
  };
  Word mine{};
  mine.code = error.exitCode;
  snprintf(mine.text, sizeof(mine.text), "%s", error.message.c_str());
  std::vector<Word> all;
  Error broken;
  if (!processes->exchange(mine, all, kPatience, "to end a test", broken))
    return broken;
  for (const Word &word : all)
    if (word.code)
      return {word.code, "communication", word.text, {}};
  return {};
}

/// One process lists the tests; the others say what failed.
class FailurePrinter : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult &result) override {
    if (result.failed())
      fprintf(stderr, "rank %d: %s:%d: %s\n", processes->rank(),
              result.file_name(), result.line_number(), result.summary());
  }
};

TEST(Processes, WhatProcess0HasGoesToAll) {
  for (size_t size : {size_t(0), size_t(1), size_t(5) << 20}) {
    std::string bytes;
    if (processes->isFirst())
      for (size_t i = 0; i < size; ++i)
        bytes += static_cast<char>(i * 7);
    Error error;
    ASSERT_TRUE(processes->share(bytes, kPatience, "to share", error));
    ASSERT_EQ(bytes.size(), size);
    for (size_t i = 0; i < size; i += 1000)
      ASSERT_EQ(bytes[i], static_cast<char>(i * 7));
  }
}

TEST(Processes, BlocksAreCollected) {
  for (int from = 0; from < processes->size(); ++from) {
    std::vector<int> block(3000);
    if (processes->rank() == from)
      std::iota(block.begin(), block.end(), from);
    Error error;
    ASSERT_TRUE(processes->collect(from, reinterpret_cast<char *>(block.data()),
                                   block.size() * sizeof(int), kPatience,
                                   "to collect", error));
    if (processes->isFirst() || processes->rank() == from)
      ASSERT_EQ(block[2999], from + 2999);
  }
}

TEST(Processes, AProcessThatDoesNotComeIsNamed) {
  int last = processes->size() - 1;
  std::vector<int> all;
  Error error;
  if (processes->rank() != last) {
    EXPECT_FALSE(
        processes->exchange(processes->rank(), all, 0.2, "to test", error));
    EXPECT_EQ(error.exitCode, 4);
    EXPECT_NE(error.message.find("missing: rank " + std::to_string(last)),
              std::string::npos)
        << error.message;
    // What it sends all the same would be taken for the next meeting.
    ProcessGroup &group = processes->messages();
    int late = 0;
    auto ticket = group.receive(last, Processes::Meeting, &late, sizeof(late));
    while (group.ask(ticket) == ProcessGroup::State::UnderWay)
      std::this_thread::yield();
    EXPECT_EQ(late, last);
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    EXPECT_TRUE(processes->exchange(last, all, kPatience, "to test", error));
  }
}

} // namespace

std::vector<mtp::test::Implementation> mtp::test::communicators() {
  return {{"processes", makeHere, false, true, processes->size(), meetOthers}};
}

int main(int argc, char **argv) {
  Error error;
  processes = joinProcesses(error);
  if (!processes) {
    fprintf(stderr, "%s\n", error.message.c_str());
    return error.exitCode;
  }
  testing::InitGoogleTest(&argc, argv);
  testing::TestEventListeners &listeners =
      testing::UnitTest::GetInstance()->listeners();
  if (!processes->isFirst()) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  int code = RUN_ALL_TESTS();
  int worst = code;
  std::vector<int> codes;
  if (processes->exchange(code, codes, kPatience, "to end", error))
    worst = *std::max_element(codes.begin(), codes.end());
  return processes->conclude(error   ? error
                             : worst ? Error{worst, "test", "a test failed", {}}
                                     : Error(),
                             kPatience, [](const Error &) {});
}
