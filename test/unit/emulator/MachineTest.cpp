// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MachineTest.cpp - fibers, shadows, blocks of threads ---------------===//
//
// Kernels are functions of this file, in the form that compiled ones have.
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Machine.h"
#include "runtime/support/Error.h"

#include <functional>
#include <gtest/gtest.h>

using namespace mtp;
using namespace mtp::emulator;

//===----------------------------------------------------------------------===//
// Fibers
//===----------------------------------------------------------------------===//

namespace {

struct Counter {
  Fiber *fiber = nullptr;
  int count = 0;
  double sum = 0;
  static void body(void *self) {
    auto &counter = *static_cast<Counter *>(self);
    double own = 0.5; // in a register or on the stack across switches
    while (true) {
      ++counter.count;
      own += counter.count;
      counter.sum = own;
      counter.fiber->yield();
    }
  }
};

} // namespace

TEST(Fibers, KeepWhatTheyHaveBetweenSwitches) {
  std::vector<Counter> counters(20);
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (Counter &counter : counters) {
    fibers.push_back(
        std::make_unique<Fiber>(&Counter::body, &counter, 64 << 10));
    counter.fiber = fibers.back().get();
  }
  for (int round = 1; round <= 100; ++round)
    for (auto &fiber : fibers)
      fiber->resume();
  for (Counter &counter : counters) {
    EXPECT_EQ(counter.count, 100);
    EXPECT_EQ(counter.sum, 5050.5);
  }
  fibers[3]->restart();
  fibers[3]->resume();
  EXPECT_EQ(counters[3].count, 101);
  EXPECT_EQ(counters[3].sum, 101.5) << "its body began again";
}

//===----------------------------------------------------------------------===//
// Shadows
//===----------------------------------------------------------------------===//

TEST(Shadows, BarriersOrderThreadsOfABlockOnly) {
  Shadow shadow(64, 4, /*shared=*/false);
  EXPECT_EQ(shadow.write(0, 4, {1, 1, 0}), Conflict::None);
  EXPECT_EQ(shadow.read(0, 4, {1, 1, 0}), Conflict::None) << "its own";
  EXPECT_EQ(shadow.read(0, 4, {1, 1, 1}), Conflict::ReadAfterWrite);
  EXPECT_EQ(shadow.otherThread(), 0u);
  EXPECT_EQ(shadow.read(0, 4, {2, 1, 1}), Conflict::None) << "a barrier";
  EXPECT_EQ(shadow.write(0, 4, {2, 1, 2}), Conflict::WriteAfterRead);
  EXPECT_EQ(shadow.write(0, 4, {3, 1, 2}), Conflict::None);
  EXPECT_EQ(shadow.write(0, 4, {3, 1, 4}), Conflict::WriteWrite);
  EXPECT_EQ(shadow.read(0, 4, {4, 4, 2}), Conflict::ReadAfterWrite)
      << "another block";
  EXPECT_TRUE(shadow.otherBlock());
  EXPECT_EQ(shadow.read(2, 4, {4, 4, 2}), Conflict::ReadAfterWrite)
      << "in part";
  EXPECT_EQ(shadow.read(4, 4, {1, 1, 0}), Conflict::None);
  EXPECT_EQ(shadow.read(4, 4, {5, 5, 0}), Conflict::None);
  EXPECT_EQ(shadow.write(4, 4, {6, 5, 0}), Conflict::WriteAfterRead)
      << "an earlier block read it";
}

TEST(Shadows, ReadersOfOnePhaseAreRemembered) {
  Shadow shadow(4, 4, /*shared=*/false);
  for (uint32_t thread : {5u, 6u})
    EXPECT_EQ(shadow.read(0, 4, {1, 1, thread}), Conflict::None);
  EXPECT_EQ(shadow.write(0, 4, {1, 1, 6}), Conflict::WriteAfterRead);
  EXPECT_EQ(shadow.otherThread(), Stamp::kSeveral);
  EXPECT_EQ(shadow.write(0, 4, {2, 1, 6}), Conflict::None);
}

TEST(Shadows, SharedMemoryBeginsWithoutContents) {
  Shadow shadow(8, 4, /*shared=*/true);
  EXPECT_EQ(shadow.read(0, 4, {1, 1, 0}), Conflict::Uninitialised);
  EXPECT_EQ(shadow.write(0, 4, {1, 1, 0}), Conflict::None);
  EXPECT_EQ(shadow.read(0, 4, {2, 1, 3}), Conflict::None);
  EXPECT_EQ(shadow.read(0, 4, {3, 3, 0}), Conflict::Uninitialised)
      << "of the next block";
  EXPECT_EQ(shadow.write(0, 4, {3, 3, 7}), Conflict::None)
      << "that has its own memory";
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

namespace {

// Sites of the kernels below.
constexpr int64_t Load = 0, Store = 1, SharedLoad = 2, SharedStore = 3,
                  Barrier = 4, OtherBarrier = 5, Exchange = 6, Ballot = 7,
                  OtherExchange = 8, CopyLoad = 9, Copy = 10, Commit = 11,
                  Wait = 12;

/// One thread of a kernel, with the operations that compiled code calls.
struct Code {
  MtpEmulatedThread *self;
  char *const *parameters;
  int64_t id() const { return self->thread[0]; }
  void barrier(int64_t site) { self->barrier(self, site); }
  float load(int64_t site, float *at) {
    self->access(self, site, at);
    return *at;
  }
  void store(int64_t site, float *at, float value) {
    self->access(self, site, at);
    *at = value;
  }
  uint64_t warp(int64_t site, uint64_t value, int64_t second,
                int64_t third = 32) {
    struct {
      uint64_t value;
      int64_t second, third;
    } operands{value, second, third};
    self->warp(self, site, &operands);
    return operands.value;
  }
  /// Copies a float of the buffer to shared memory; `bytes` are read.
  void copy(int64_t to, int64_t from, uint64_t bytes = 4) {
    uint64_t operands[] = {reinterpret_cast<uint64_t>(shared() + to),
                           reinterpret_cast<uint64_t>(buffer(0) + from), bytes,
                           CopyLoad};
    self->async(self, Copy, operands);
  }
  void commit() { self->async(self, Commit, nullptr); }
  void wait(uint64_t groups) { self->async(self, Wait, &groups); }
  float *shared() { return reinterpret_cast<float *>(self->shared); }
  float *buffer(int i) { return reinterpret_cast<float *>(parameters[i]); }
};

/// The test's kernel; a kernel is a plain function.
std::function<void(Code)> body;
void entry(const MtpRank *thread, char *const *parameters, int64_t, int64_t) {
  body({reinterpret_cast<MtpEmulatedThread *>(const_cast<MtpRank *>(thread)),
        parameters});
}

/// A buffer of 64 floats, a shared array of 64 floats.
KernelDescription describe() {
  KernelDescription kernel;
  kernel.symbol = "tested";
  kernel.parameters = {{256, true, 4, 16}};
  kernel.arrays = {{0, 256, 4}};
  kernel.sharedBytes = 256;
  kernel.meets = true;
  using Kind = Site::Kind;
  using Memory = Site::Memory;
  WarpOperation none, shuffle = Shuffle::Xor, vote = Vote::Ballot,
                      third = Shuffle::Index;
  kernel.sites = {
      {Kind::Load, Memory::Parameter, 0, 4, none, "the load"},
      {Kind::Store, Memory::Parameter, 0, 4, none, "the store"},
      {Kind::Load, Memory::Array, 0, 4, none, "the shared load"},
      {Kind::Store, Memory::Array, 0, 4, none, "the shared store"},
      {Kind::Barrier, Memory::Any, 0, 0, none, "the barrier"},
      {Kind::Barrier, Memory::Any, 0, 0, none, "the other barrier"},
      {Kind::Warp, Memory::Any, 0, 0, shuffle, "the shuffle"},
      {Kind::Warp, Memory::Any, 0, 0, vote, "the vote"},
      {Kind::Warp, Memory::Any, 0, 0, third, "the other shuffle"},
      {Kind::Load, Memory::Parameter, 0, 4, none, "the copy's load"},
      {Kind::Copy, Memory::Array, 0, 4, none, "the copy"},
      {Kind::Commit, Memory::Any, 0, 0, none, "the commit"},
      {Kind::Wait, Memory::Any, 0, 0, none, "the wait"}};
  return kernel;
}

/// "" or what the emulator says of a launch of 2 blocks of 64 threads.
std::string run(std::function<void(Code)> kernel, float *buffer,
                bool meets = true) {
  static Machine machine;
  KernelDescription description = describe();
  description.meets = meets;
  body = std::move(kernel);
  try {
    machine.run(description, entry, {{2, 1, 1}, {64, 1, 1}},
                {reinterpret_cast<char *>(buffer)});
  } catch (const RuntimeError &error) {
    return error.what();
  }
  return "";
}

struct alignas(16) Floats {
  float data[64 + 4] = {};
};

} // namespace

TEST(Blocks, ThreadsExchangeThroughSharedMemory) {
  Floats out;
  EXPECT_EQ(run(
                [](Code c) {
                  c.store(SharedStore, c.shared() + c.id(), float(c.id()));
                  c.barrier(Barrier);
                  float x = c.load(SharedLoad, c.shared() + (63 - c.id()));
                  if (c.self->block[0] == 1)
                    c.store(Store, c.buffer(0) + c.id(), x);
                },
                out.data),
            "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out.data[i], 63 - i);
}

TEST(Blocks, WarpsShuffleAndVote) {
  Floats out;
  EXPECT_EQ(run(
                [](Code c) {
                  auto x = static_cast<uint64_t>(c.id());
                  for (int64_t mask : {16, 8, 4, 2, 1})
                    x += c.warp(Exchange, x, mask);
                  uint64_t votes = c.warp(Ballot, c.id() % 32 == 5, 0xffffffff);
                  uint64_t third = c.warp(OtherExchange, uint64_t(c.id()), 3);
                  if (c.self->block[0] == 0)
                    c.store(Store, c.buffer(0) + c.id(),
                            float(x + votes + third));
                },
                out.data),
            "");
  for (int i = 0; i < 64; ++i) {
    int first = i / 32 * 32, sum = 32 * first + 31 * 16;
    EXPECT_EQ(out.data[i], float(sum + 32 + first + 3));
  }
}

TEST(Blocks, FindWhatAGpuWouldHide) {
  Floats out;
  auto expect = [&](const std::string &text, auto kernel, bool meets = true) {
    EXPECT_EQ(run(kernel, out.data, meets), text);
  };
  std::string first = "kernel tested, block (0, 0, 0), thread ";
  expect(first + "1, at the barrier: the thread is at the end of the kernel "
                 "while thread 0 waits for it at the barrier",
         [](Code c) {
           if (c.id() != 1)
             c.barrier(Barrier);
         });
  expect(first + "40, at the barrier: the thread is at the other barrier while "
                 "thread 0 waits for it at the barrier",
         [](Code c) { c.barrier(c.id() == 40 ? OtherBarrier : Barrier); });
  expect(first + "33, at the shuffle: the thread is at the barrier while "
                 "thread 32 waits for its whole warp",
         [](Code c) {
           if (c.id() != 33)
             c.warp(Exchange, 0, 1);
           c.barrier(Barrier);
         });
  expect(first + "7, at the load: 4 bytes at offset 256 of parameter 0 are "
                 "outside of its 256 bytes",
         [](Code c) { c.load(Load, c.buffer(0) + (c.id() == 7 ? 64 : 0)); });
  expect(first + "2, at the shared store: 4 bytes at offset -4 of shared array "
                 "0 are outside of its 256 bytes",
         [](Code c) {
           c.store(SharedStore, c.shared() + (c.id() == 2 ? -1 : c.id()), 0);
         });
  expect(first + "0, at the shared load: 4 bytes at offset 4 of shared array 0 "
                 "are read, but no thread of the block wrote them",
         [](Code c) { c.load(SharedLoad, c.shared() + 1); });
  expect(first + "1, at the shared load: 4 bytes at offset 0 of shared array 0 "
                 "are read, and thread 0 wrote there with no barrier between",
         [](Code c) {
           c.store(SharedStore, c.shared() + c.id(), 0);
           c.load(SharedLoad, c.shared() + std::max<int64_t>(c.id() - 1, 0));
         });
  expect(first + "1, at the shared store: 4 bytes at offset 0 of shared array "
                 "0 are written, and thread 0 wrote there with no barrier "
                 "between",
         [](Code c) { c.store(SharedStore, c.shared() + c.id() / 2, 0); });
  expect(
      "kernel tested, block (1, 0, 0), thread 0, at the store: 4 bytes at "
      "offset 0 of parameter 0 are written, and thread 0 of another block "
      "wrote there with no barrier between",
      [](Code c) { c.store(Store, c.buffer(0) + c.id(), 0); },
      /*meets=*/false);
  expect(first + "3, at the load: the address of 4 bytes is not a multiple of "
                 "that",
         [](Code c) {
           char *address = c.parameters[0] + (c.id() == 3 ? 2 : 0);
           c.self->access(c.self, Load, address);
         });
  // A machine that stopped in the middle of a block begins afresh.
  expect("", [](Code c) { c.barrier(Barrier); });
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

TEST(Copies, AreThereAfterAWaitAndABarrier) {
  Floats out;
  for (int i = 0; i < 64; ++i)
    out.data[i] = float(i + 1);
  static float seen[64];
  EXPECT_EQ(run(
                [](Code c) {
                  c.copy(c.id(), 63 - c.id(), c.id() == 9 ? 0 : 4);
                  c.commit();
                  c.wait(0);
                  float own = c.load(SharedLoad, c.shared() + c.id());
                  c.barrier(Barrier);
                  float next =
                      c.load(SharedLoad, c.shared() + (c.id() + 1) % 64);
                  seen[c.id()] = own + 100 * next;
                },
                out.data),
            "");
  auto value = [](int i) { return i == 9 ? 0 : float(64 - i); };
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(seen[i], value(i) + 100 * value((i + 1) % 64))
        << "nothing read: zero";
}

TEST(Copies, AreWaitedForByGroups) {
  Floats out;
  out.data[1] = 1;
  out.data[2] = 2;
  EXPECT_EQ(run(
                [](Code c) {
                  if (c.id() == 0) {
                    c.copy(0, 1);
                    c.commit();
                    c.copy(1, 2);
                    c.commit();
                    c.wait(1);
                    float first = c.load(SharedLoad, c.shared());
                    c.wait(0);
                    float second = c.load(SharedLoad, c.shared() + 1);
                    if (first != 1 || second != 2)
                      c.load(Load, c.buffer(0) + 64); // outside
                  }
                },
                out.data),
            "");
}

TEST(Copies, AreWatched) {
  Floats out;
  auto expect = [&](const std::string &text, auto kernel) {
    EXPECT_EQ(run(kernel, out.data),
              "kernel tested, block (0, 0, 0), thread " + text);
  };
  auto alone = [](auto rest) {
    return [rest](Code c) {
      if (c.id() == 0) {
        c.copy(3, 0);
        rest(c);
      }
    };
  };
  std::string early = "4 bytes at offset 12 of shared array 0 are ";
  std::string late =
      " while an asynchronous copy to there has not been waited for";
  expect("0, at the shared load: " + early + "read" + late, alone([](Code c) {
           c.commit();
           c.wait(1); // one may still be under way
           c.load(SharedLoad, c.shared() + 3);
         }));
  expect("0, at the shared load: " + early + "read" + late, alone([](Code c) {
           c.wait(0); // what is not committed isn't waited for
           c.load(SharedLoad, c.shared() + 3);
         }));
  expect("0, at the shared store: " + early + "written" + late,
         alone([](Code c) { c.store(SharedStore, c.shared() + 3, 1); }));
  expect("0, at the copy: " + early + "written" + late,
         alone([](Code c) { c.copy(3, 1); }));
  expect("0, at the copy: the thread ends and has not waited for this copy",
         alone([](Code c) { c.commit(); }));
  expect("0, at the copy's load: what the copy reads changed before it was "
         "waited for",
         alone([](Code c) {
           c.commit();
           c.store(Store, c.buffer(0), c.buffer(0)[0] + 1);
           c.wait(0);
         }));
  expect("1, at the shared load: " + early +
             "read, and thread 0 wrote there with no barrier between",
         [](Code c) {
           if (c.id() == 0) {
             c.copy(3, 0);
             c.commit();
             c.wait(0);
           }
           if (c.id() == 1)
             c.load(SharedLoad, c.shared() + 3);
         });
  expect("0, at the copy's load: 4 bytes at offset 256 of parameter 0 are "
         "outside of its 256 bytes",
         [](Code c) { c.copy(c.id(), 64); });
  expect("0, at the copy: the copy is not to an array of shared memory",
         [](Code c) { c.copy(-1, 0); });
  // What was under way when a block ended in an error is forgotten.
  EXPECT_EQ(run(
                [](Code c) {
                  c.store(SharedStore, c.shared() + c.id(), 0);
                  c.barrier(Barrier);
                },
                out.data),
            "");
}

TEST(Blocks, RefuseLaunchesThatNoGpuTakes) {
  Machine machine;
  KernelDescription description = describe();
  body = [](Code) {};
  Floats out;
  std::vector<char *> one{reinterpret_cast<char *>(out.data)};
  auto error = [&](Launch launch, const std::vector<char *> &parameters) {
    try {
      machine.run(description, entry, launch, parameters);
    } catch (const RuntimeError &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error({{1, 1, 1}, {64, 1, 1}}, one), "");
  EXPECT_NE(error({{1, 1, 1}, {64, 32, 1}}, one), "");
  EXPECT_NE(error({{0, 1, 1}, {64, 1, 1}}, one), "");
  EXPECT_NE(error({{1, 1, 1}, {64, 1, 1}}, {}), "");
  EXPECT_NE(error({{1, 1, 1}, {64, 1, 1}}, {one[0] + 4}), "") << "alignment";
}
