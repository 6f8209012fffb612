// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/emulator/Machine.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

using namespace mtp;
using namespace mtp::emulator;

/// Of a fiber. A kernel keeps some hundred bytes there; sanitized code of the
/// emulator needs more.
static constexpr size_t kStackBytes = 256 << 10;

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Machine::Thread::Thread(Machine &machine, uint32_t number)
    : MtpEmulatedThread(), machine(machine), number(number),
      fiber(&Machine::body, this, kStackBytes) {
  math = mathTable();
  MtpEmulatedThread::access = &Machine::access;
  MtpEmulatedThread::barrier = &Machine::barrier;
  MtpEmulatedThread::warp = &Machine::warp;
  MtpEmulatedThread::async = &Machine::async;
}

/// Runs one thread of each block; all of a block one after the other, if they
/// never meet.
void Machine::body(void *argument) {
  auto &thread = *static_cast<Thread *>(argument);
  Machine &machine = thread.machine;
  auto run = [&] {
    machine.code(reinterpret_cast<const MtpRank *>(
                     static_cast<MtpEmulatedThread *>(&thread)),
                 machine.parameters, 0, 0);
  };
  while (true) {
    if (machine.kernel->meets) {
      run();
      if (!thread.copies.empty())
        machine.failIn(thread, Trouble::LeftCopy, thread.copies.front().site);
    } else {
      for (uint32_t number = 0; number < machine.count; ++number) {
        machine.number(thread, number);
        run();
      }
    }
    machine.stop(thread, State::Done, -1);
  }
}

void Machine::number(Thread &thread, uint32_t number) const {
  thread.number = number;
  int64_t rest = number;
  for (int dim = 0; dim < 3; ++dim) {
    thread.thread[dim] = rest % shape->block[dim];
    rest /= shape->block[dim];
  }
}

void Machine::stop(Thread &thread, State state, int64_t site) {
  thread.state = state;
  thread.site = site;
  thread.fiber.yield();
}

void Machine::failIn(Thread &thread) {
  stop(thread, State::Failed, failure.site);
  std::abort(); // nobody resumes it
}

void Machine::failIn(Thread &thread, Trouble trouble, int64_t site) {
  failure.trouble = trouble;
  failure.thread = thread.number;
  failure.site = site;
  failIn(thread);
}

//===----------------------------------------------------------------------===//
// What kernels call
//===----------------------------------------------------------------------===//

bool Machine::watch(const Thread &thread, int64_t site, Shadow &shadow,
                    int64_t offset, int64_t bytes, Use use) {
  if (use == Use::Atomic)
    return true;
  Moment now{phase, firstPhase, thread.number};
  Conflict conflict = use == Use::Read ? shadow.read(offset, bytes, now)
                      : use == Use::Write
                          ? shadow.write(offset, bytes, now)
                          : shadow.beginCopy(offset, bytes, now);
  if (conflict == Conflict::None)
    return true;
  failure.trouble = Trouble::Conflict;
  failure.conflict = conflict;
  failure.thread = thread.number;
  failure.other = shadow.otherThread();
  failure.otherBlock = shadow.otherBlock();
  failure.site = site;
  failure.offset = offset;
  failure.bytes = bytes;
  return false;
}

const SharedArray *Machine::arrayAt(const char *at) const {
  int64_t offset = at - shared.data();
  for (const SharedArray &array : kernel->arrays)
    if (offset >= array.begin && offset < array.begin + array.bytes)
      return &array;
  return nullptr;
}

bool Machine::isAligned(const Thread &thread, int64_t number, const char *at) {
  const Site &site = kernel->sites[static_cast<size_t>(number)];
  if (reinterpret_cast<uintptr_t>(at) % static_cast<size_t>(site.bytes) == 0)
    return true;
  failure.trouble = Trouble::Misaligned;
  failure.thread = thread.number;
  failure.site = number;
  return false;
}

bool Machine::inspect(const Thread &thread, int64_t number, const char *at,
                      int64_t bytes, Use use) {
  const Site &site = kernel->sites[static_cast<size_t>(number)];
  auto refuse = [&](int64_t offset, int64_t extent) {
    failure.trouble = Trouble::Outside;
    failure.thread = thread.number;
    failure.site = number;
    failure.offset = offset;
    failure.bytes = bytes;
    failure.extent = extent;
    return false;
  };
  auto inArray = [&](const SharedArray &array) {
    int64_t offset = at - (shared.data() + array.begin);
    if (offset < 0 || offset > array.bytes - bytes)
      return refuse(offset, array.bytes);
    auto index = static_cast<size_t>(&array - kernel->arrays.data());
    return watch(thread, number, arrays[index], offset, bytes, use);
  };
  if (site.memory == Site::Memory::Array)
    return inArray(kernel->arrays[static_cast<size_t>(site.index)]);
  if (site.memory == Site::Memory::Parameter) {
    const Region &region = regions[static_cast<size_t>(site.index)];
    int64_t offset = at - region.base;
    if (region.bytes >= 0 && (offset < 0 || offset > region.bytes - bytes))
      return refuse(offset, region.bytes);
    return !region.shadow || watch(thread, number, *region.shadow,
                                   offset + region.offset, bytes, use);
  }
  for (const Region &region : regions)
    if (region.shadow && at >= region.base &&
        at - region.base <= region.bytes - bytes)
      return watch(thread, number, *region.shadow,
                   at - region.base + region.offset, bytes, use);
  const SharedArray *array = arrayAt(at);
  return !array || inArray(*array);
}

void Machine::access(MtpEmulatedThread *self, int64_t number, void *address) {
  auto &thread = static_cast<Thread &>(*self);
  Machine &machine = thread.machine;
  const Site &site = machine.kernel->sites[static_cast<size_t>(number)];
  Use use = site.kind == Site::Kind::Load    ? Use::Read
            : site.kind == Site::Kind::Store ? Use::Write
                                             : Use::Atomic;
  auto *at = static_cast<const char *>(address);
  if (!machine.isAligned(thread, number, at) ||
      !machine.inspect(thread, number, at, site.bytes, use))
    machine.failIn(thread);
}

void Machine::barrier(MtpEmulatedThread *self, int64_t site) {
  auto &thread = static_cast<Thread &>(*self);
  thread.machine.stop(thread, State::AtBarrier, site);
}

void Machine::warp(MtpEmulatedThread *self, int64_t site, void *operands) {
  auto &thread = static_cast<Thread &>(*self);
  thread.operands = static_cast<uint64_t *>(operands);
  thread.machine.stop(thread, State::AtWarp, site);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void Machine::check() const {
  if (failure.trouble != Trouble::None)
    fail(exits::Internal, "emulator", describe(failure));
}

/// Each lane reads what it gets.
bool Machine::inspectMatrices(uint32_t first, const MatrixLoad &load) {
  int64_t site = threads[first]->site;
  auto row = [&](int64_t number) {
    return reinterpret_cast<const char *>(
        threads[first + static_cast<uint32_t>(number)]->operands[0]);
  };
  for (int64_t i = 0; i < 8 * load.count; ++i)
    if (!isAligned(*threads[first + static_cast<uint32_t>(i)], site, row(i)))
      return false;
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    for (int64_t matrix = 0; matrix < load.count; ++matrix) {
      int64_t g = lane / 4, t = 2 * (lane % 4);
      auto reads = [&](int64_t number, int64_t column, int64_t bytes) {
        return inspect(*threads[first + lane], site,
                       row(8 * matrix + number) + 2 * column, bytes, Use::Read);
      };
      if (load.transposed ? !reads(t, g, 2) || !reads(t + 1, g, 2)
                          : !reads(g, t, 4))
        return false;
    }
  return true;
}

/// All lanes are at one operation.
void Machine::meetInWarp(uint32_t first) {
  int64_t site = threads[first]->site;
  const WarpOperation &operation =
      kernel->sites[static_cast<size_t>(site)].operation;
  if (auto *load = std::get_if<MatrixLoad>(&operation))
    if (!inspectMatrices(first, *load))
      return;
  Lanes lanes;
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    lanes[lane] = threads[first + lane]->operands;
  int refused = perform(operation, lanes);
  if (refused < 0)
    return;
  failure.trouble = Trouble::PartOfWarp;
  failure.thread = first + static_cast<uint32_t>(refused);
  failure.site = site;
}

/// Runs a warp until all of its threads wait at a barrier or are done.
void Machine::runWarp(uint32_t first) {
  uint32_t end = std::min(first + kWarp, count);
  while (true) {
    const Thread *waiting = nullptr;
    for (uint32_t i = first; i < end; ++i) {
      Thread &thread = *threads[i];
      if (thread.state == State::Ready)
        thread.fiber.resume();
      check();
      if (thread.state == State::AtWarp && !waiting)
        waiting = &thread;
    }
    if (!waiting)
      return;
    for (uint32_t i = first; i < first + kWarp; ++i) {
      if (i < end && threads[i]->state == State::AtWarp &&
          threads[i]->site == waiting->site)
        continue;
      failure.trouble = Trouble::LeftWarp;
      failure.thread = i;
      failure.site = waiting->site;
      failure.other = waiting->number;
      failure.otherSite =
          i < end && threads[i]->state != State::Done ? threads[i]->site : -1;
      check();
    }
    meetInWarp(first);
    check();
    for (uint32_t i = first; i < end; ++i)
      threads[i]->state = State::Ready;
  }
}

/// False if all threads are done.
bool Machine::meetAtBarrier() {
  const Thread *waiting = nullptr;
  for (uint32_t i = 0; i < count && !waiting; ++i)
    if (threads[i]->state == State::AtBarrier)
      waiting = threads[i].get();
  if (!waiting)
    return false;
  for (uint32_t i = 0; i < count; ++i) {
    Thread &thread = *threads[i];
    if (thread.state != State::AtBarrier || thread.site != waiting->site) {
      failure.trouble = Trouble::LeftBarrier;
      failure.thread = i;
      failure.site = waiting->site;
      failure.other = waiting->number;
      failure.otherSite = thread.state == State::Done ? -1 : thread.site;
      check();
    }
    thread.state = State::Ready;
  }
  if (++phase == Stamp::kPhases)
    fail(exits::Internal, "emulator",
         "kernel " + kernel->symbol +
             " has more barriers than the emulator counts");
  return true;
}

void Machine::runBlock() {
  uint32_t used = kernel->meets ? count : 1;
  // Barriers of a block: far fewer than half of all phases.
  if (++phase > Stamp::kPhases / 2) {
    phase = 1;
    for (Shadow &shadow : groups)
      shadow.clear();
    for (Shadow &shadow : arrays)
      shadow.clear();
  }
  firstPhase = phase;
  for (uint32_t i = 0; i < used; ++i) {
    std::copy(block.begin(), block.end(), threads[i]->block);
    threads[i]->state = State::Ready;
    threads[i]->copies.clear();
    threads[i]->groups = 0;
  }
  if (!kernel->meets) {
    threads[0]->fiber.resume();
    check();
    return;
  }
  do
    for (uint32_t first = 0; first < count; first += kWarp)
      runWarp(first);
  while (meetAtBarrier());
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Parameters whose memory overlaps share a shadow, if one is written.
void Machine::openRegions() {
  regions.assign(parameterCount, Region());
  groups.clear();
  std::vector<size_t> order;
  for (size_t i = 0; i < parameterCount; ++i) {
    regions[i].base = parameters[i];
    regions[i].bytes = kernel->parameters[i].bytes;
    int64_t extent = i < shape->extents.size() ? shape->extents[i] : -1;
    if (extent >= 0 && (regions[i].bytes < 0 || extent < regions[i].bytes))
      regions[i].bytes = extent;
    if (regions[i].bytes > 0)
      order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return regions[a].base < regions[b].base;
  });
  struct Group {
    size_t first, end;
    bool written;
    int64_t granule;
    char *base, *limit;
  };
  std::vector<Group> found;
  for (size_t k = 0; k < order.size(); ++k) {
    const Region &region = regions[order[k]];
    const KernelParameter &parameter = kernel->parameters[order[k]];
    if (found.empty() || region.base >= found.back().limit)
      found.push_back({k, k, false, 16, region.base, region.base});
    Group &group = found.back();
    group.end = k + 1;
    group.written |= parameter.written;
    group.granule = std::gcd(std::gcd(group.granule, parameter.granule),
                             region.base - group.base);
    group.limit = std::max(group.limit, region.base + region.bytes);
  }
  groups.reserve(found.size());
  for (const Group &group : found) {
    if (!group.written)
      continue;
    groups.emplace_back(group.limit - group.base, group.granule, false);
    for (size_t k = group.first; k < group.end; ++k) {
      regions[order[k]].shadow = &groups.back();
      regions[order[k]].offset = regions[order[k]].base - group.base;
    }
  }
}

void Machine::prepare() {
  failure = Failure();
  phase = 0;
  uint32_t used = kernel->meets ? count : 1;
  while (threads.size() < used)
    threads.push_back(
        std::make_unique<Thread>(*this, static_cast<uint32_t>(threads.size())));
  // Shared memory begins at a multiple of 16 and has no contents.
  shared.assign(static_cast<size_t>(kernel->sharedBytes) + 16, 0x5a);
  arrays.clear();
  for (const SharedArray &array : kernel->arrays)
    arrays.emplace_back(array.bytes, array.granule, true);
  for (uint32_t i = 0; i < used; ++i) {
    Thread &thread = *threads[i];
    if (thread.state != State::Idle && thread.state != State::Done)
      thread.fiber.restart();
    thread.state = State::Idle;
    number(thread, i);
    std::copy(shape->block.begin(), shape->block.end(), thread.blockSize);
    std::copy(shape->grid.begin(), shape->grid.end(), thread.gridSize);
    thread.shared = shared.data();
  }
  openRegions();
}

void Machine::run(const KernelDescription &description, MtpKernel function,
                  const Launch &launch, const std::vector<char *> &values) {
  kernel = &description;
  code = function;
  shape = &launch;
  parameters = values.data();
  parameterCount = values.size();
  int64_t size = 1;
  for (int dim = 0; dim < 3; ++dim) {
    if (launch.block[dim] < 1 || launch.block[dim] > kMaxThreads ||
        launch.grid[dim] < 1)
      fail(exits::Internal, "emulator",
           "kernel " + kernel->symbol + " is launched with " +
               std::to_string(launch.grid[dim]) + " blocks of " +
               std::to_string(launch.block[dim]) +
               " threads in a dimension, which no GPU takes");
    size *= launch.block[dim];
  }
  if (size > kMaxThreads || values.size() != kernel->parameters.size())
    fail(exits::Internal, "emulator",
         "kernel " + kernel->symbol + " is launched with " +
             std::to_string(size) +
             " threads a block, at most 1024 are "
             "possible, and " +
             std::to_string(values.size()) + " parameters for its " +
             std::to_string(kernel->parameters.size()));
  for (size_t i = 0; i < values.size(); ++i)
    if (kernel->parameters[i].bytes > 0 &&
        reinterpret_cast<uintptr_t>(values[i]) %
                static_cast<size_t>(kernel->parameters[i].align) !=
            0)
      fail(exits::Internal, "emulator",
           "parameter " + std::to_string(i) + " of kernel " + kernel->symbol +
               " is not aligned to " +
               std::to_string(kernel->parameters[i].align) +
               " bytes, as its code assumes");
  count = static_cast<uint32_t>(size);
  prepare();
  for (block[2] = 0; block[2] < launch.grid[2]; ++block[2])
    for (block[1] = 0; block[1] < launch.grid[1]; ++block[1])
      for (block[0] = 0; block[0] < launch.grid[0]; ++block[0])
        runBlock();
}
