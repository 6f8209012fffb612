// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuRank.cpp - the steps of a rank on a GPU -------------------------===//
#include "runtime/cuda/GpuRank.h"

#include <chrono>
#include <thread>

using namespace mtp;
using namespace mtp::cuda;

GpuRank::GpuRank(GpuWorld &world, int index)
    : Rank(world, index), gpu(world), driver(world.libraries.driver) {}

GpuRank::~GpuRank() {
  // What members give back is given to the device that is current.
  try {
    device().makeCurrent();
  } catch (const RuntimeError &) {
  }
}

void GpuRank::beginInstructions() {
  comm->resetCounters();
  comm->countProgress({&pinned().progress, countsAt, kMostCounted});
}

void GpuRank::endInstructions(int entry) {
  counted[static_cast<size_t>(entry)] = comm->counters();
}

uint32_t GpuRank::progress() const {
  return __atomic_load_n(&pinned().progress, __ATOMIC_RELAXED);
}

void GpuRank::beginStep() {
  // The last step is over: nothing reads or writes pinned memory now.
  __atomic_store_n(&pinned().progress, 0u, __ATOMIC_RELAXED);
  check(driver,
        driver.copyToDevice(recordAt, &pinned().record, sizeof(MtpGpuRank),
                            compute()),
        "beginning a step");
}

void GpuRank::endStep() {
  check(driver,
        driver.copyToHost(&pinned().fault, faultAt, sizeof(int64_t), compute()),
        "ending a step");
}

double GpuRank::step(int entry) {
  world.crew->barrier(index, turn++);
  auto begin = std::chrono::steady_clock::now();
  ++steps;
  if (gpu.loopback && index == 0 && !runner)
    runner = std::make_unique<StepRunner>(gpu.ranks);
  if (runner) {
    runner->run(entry);
    gpu.stepsDriven.fetch_add(1, std::memory_order_release);
  } else {
    // Rank 0 drives this one, too.
    while (gpu.stepsDriven.load(std::memory_order_acquire) < steps) {
      world.crew->checkStopped();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  std::chrono::duration<double, std::milli> time =
      std::chrono::steady_clock::now() - begin;
  ++pinned().record.step;
  checkFault(pinned().fault);
  return time.count();
}

void GpuRank::launch(const Step &step) const {
  const GpuKernel &kernel = artifact.gpu.kernels[step.instruction->index];
  Address record = recordAt;
  std::vector<void *> parameters = {&record};
  for (const Address &buffer : step.buffers)
    parameters.push_back(const_cast<Address *>(&buffer));
  if (driver.touches)
    driver.touches(step.touched.data(), step.touched.size());
  auto size = [](int64_t value) { return static_cast<unsigned>(value); };
  check(driver,
        driver.launch(step.function, size(kernel.grid[0]), size(kernel.grid[1]),
                      size(kernel.grid[2]), size(kernel.block[0]),
                      size(kernel.block[1]), size(kernel.block[2]),
                      size(kernel.sharedBytes), compute(), parameters.data(),
                      nullptr),
        step.what.c_str());
}

/// A kernel or a product.
void GpuRank::perform(const Step &step) const {
  if (step.product)
    products->enqueue(*step.product, compute());
  else if (step.function && step.instruction->count > 0)
    launch(step);
}

size_t GpuRank::replaced(int entry, size_t position) const {
  const Step &step = programs[static_cast<size_t>(entry)].steps[position];
  return step.product ? static_cast<size_t>(step.instruction->otherwise) : 0;
}

void GpuRank::enqueue(int entry, size_t position) {
  const Step &step = programs[static_cast<size_t>(entry)].steps[position];
  world.crew->note(index, &step.what);
  switch (step.instruction->kind) {
  case Instruction::Kind::Kernel:
  case Instruction::Kind::Library:
    return perform(step);
  case Instruction::Kind::Start:
    return comm->start(step.instruction->index, pointerTo(step.buffers[0]),
                       pointerTo(step.buffers[1]));
  case Instruction::Kind::Done:
    return comm->done(step.instruction->index);
  default:
    return; // the runner goes round loops
  }
}

void GpuRank::setInputs(int entry,
                        const std::vector<const HostTensor *> &inputs) {
  Program &program = programs[static_cast<size_t>(entry)];
  std::vector<AlignedBuffer> cut;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const BlockMap &map = program.inputMaps[i];
    AlignedBuffer &block = cut.emplace_back(static_cast<size_t>(map.bytes()));
    if (world.options.poison)
      poison(inputs[i]->type, block.data(), map.bytes());
    map.cut(inputs[i]->bytes.data(), block.data());
    if (map.bytes() > 0)
      check(driver,
            driver.copyToDevice(program.inputs[i], block.data(),
                                static_cast<size_t>(map.bytes()), compute()),
            "copying an input to a device");
  }
  if (world.options.poison) {
    auto fill = [&](Address address, int64_t bytes) {
      // Bytes of ones are NaN in every float type.
      if (bytes > 0)
        check(driver,
              driver.fill(address, 0xff, static_cast<size_t>(bytes), compute()),
              "filling memory");
    };
    fill(arena.get(), arenaPassed);
    for (size_t i = 0; i < program.outputs.size(); ++i)
      fill(program.outputs[i], program.outputMaps[i].bytes());
  }
  finish();
}

void GpuRank::getOutputs(int entry, const std::vector<HostTensor *> &outputs) {
  Program &program = programs[static_cast<size_t>(entry)];
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BlockMap &map = program.outputMaps[i];
    if (!map.writesOutput() || map.bytes() == 0)
      continue;
    AlignedBuffer block(static_cast<size_t>(map.bytes()));
    check(driver,
          driver.copyToHost(block.data(), program.outputs[i],
                            static_cast<size_t>(map.bytes()), compute()),
          "copying an output from a device");
    finish();
    map.assemble(block.data(), outputs[i]->bytes.data());
  }
}

const char *GpuRank::readUpdated(int64_t parameter) {
  BlockMap map(artifact.parameters[parameter].layout, artifact.axes,
               coordinates);
  updated.resize(static_cast<size_t>(map.bytes()));
  check(driver,
        driver.copyToHost(updated.data(), parameterAt[parameter],
                          updated.size(), compute()),
        "copying a parameter from a device");
  finish();
  return updated.data();
}

void GpuRank::writeUpdated(int64_t parameter, const char *bytes, size_t size) {
  check(driver,
        driver.copyToDevice(parameterAt[parameter], bytes, size, compute()),
        "copying a parameter to a device");
  finish();
}

int64_t GpuRank::libraryBytes() const {
  return (products ? products->workspaceBytes() : 0) + comm->stagingBytes();
}

std::set<std::string> GpuRank::implementations() const {
  std::set<std::string> names;
  if (products)
    names = products->implementations();
  names.insert("device: " + device().name());
  return names;
}

void GpuRank::close() noexcept {
  try {
    device().makeCurrent();
  } catch (const RuntimeError &) {
    return; // the device is lost, and all that it was given with it
  }
  // Graphs hold on to communicators, communicators to streams; and what streams
  // still do touches memory. A rank may have stopped because of another one.
  runner.reset();
  if (comm)
    comm->close(world.crew->stopped());
  drain();
}

/// Waits until the streams are done, but not beyond the deadline.
void GpuRank::drain() noexcept {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  for (StreamHandle *handle :
       {stream.get(), comm ? comm->commStream() : nullptr})
    while (handle && driver.streamQuery(handle) == driver::NotReady &&
           std::chrono::duration<double>(Clock::now() - begin).count() <
               world.crew->deadline())
      std::this_thread::sleep_for(std::chrono::microseconds(50));
}
