// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuRankLoad.cpp - what a rank on a GPU does before a step ----------===//
#include "runtime/cuda/GpuRank.h"

#include <algorithm>
#include <numeric>
#include <span>

using namespace mtp;
using namespace mtp::cuda;

void GpuRank::load() {
  static const std::string loading = "loading weights",
                           connecting = "connecting GPUs";
  world.crew->note(index, &loading);
  device().makeCurrent();
  checkSources();
  stream = device().makeStream();
  layOut();
  allocate();
  loadParameters();
  const Module &module = gpu.moduleOf(index);
  for (const GpuKernel &kernel : artifact.gpu.kernels)
    functions.push_back(
        loadFunction(device(), module, kernel.symbol, kernel.sharedBytes));
  bool communicates = artifact.axes.ranks() > 1;
  if (communicates)
    reductions = Reductions(device(), module, artifact.collectiveSites);
  if (!artifact.librarySites.empty())
    products = std::make_unique<Products>(gpu.libraries.blas, device(),
                                          world.crew, gpu.choices);
  Processes *processes = world.options.processes.get();
  if (index != 0 && processes)
    gpu.choices->receive(*processes, *world.crew);
  else if (index != 0)
    gpu.choices->await(*world.crew);
  buildPrograms();
  if (index == 0)
    gpu.choices->finish();
  if (index == 0 && processes)
    gpu.choices->send(*processes, *world.crew);
  finish();
  world.crew->note(index, &connecting);
  GpuCommContext context{gpu.libraries,
                         device(),
                         reductions,
                         world.crew,
                         gpu.places,
                         compute(),
                         world.options.processes};
  comm = gpu.loopback || !communicates
             ? makeLoopbackCommunicator(context, artifact.axes,
                                        artifact.collectiveSites, index)
             : makeNcclCommunicator(context, artifact.axes,
                                    artifact.collectiveSites, index);
  counted.resize(artifact.entries.size());
  if (!gpu.loopback)
    runner = std::make_unique<StepRunner>(std::vector<GpuRank *>{this});
}

Address GpuRank::place(int64_t bytes) {
  auto at = static_cast<Address>(blockBytes);
  blockBytes += deviceAligned(std::max<int64_t>(bytes, 1));
  return at;
}

/// Offsets of everything but the arena in one allocation.
void GpuRank::layOut() {
  recordAt = place(sizeof(MtpGpuRank));
  faultAt = place(sizeof(int64_t));
  countsAt = place((kMostCounted + 1) * sizeof(uint32_t));
  rankValuesAt =
      place(static_cast<int64_t>(rankValues.size() * sizeof(int64_t)));
  std::vector<bool> used(artifact.parameters.size(), false);
  for (size_t i = 0; i < used.size(); ++i)
    used[i] = artifact.parameters[i].updated;
  for (const Entry &entry : artifact.entries)
    for (const Instruction &step : entry.program)
      for (const BufferRef &ref : step.buffers)
        if (ref.space == BufferRef::Space::Parameter)
          used[ref.index] = true;
  for (size_t i = 0; i < used.size(); ++i) {
    BlockMap map(artifact.parameters[i].layout, artifact.axes, coordinates);
    parameterAt.push_back(used[i] ? place(map.bytes()) : 0);
  }
  for (const Entry &entry : artifact.entries) {
    arenaPassed = std::max(arenaPassed, entry.arenaBytes);
    Program &program = programs.emplace_back();
    auto add = [&](const TensorLayout &layout, std::vector<BlockMap> &maps,
                   std::vector<Address> &addresses) {
      maps.emplace_back(layout, artifact.axes, coordinates);
      addresses.push_back(place(maps.back().bytes()));
    };
    for (const Input &input : entry.inputs)
      add(input.layout, program.inputMaps, program.inputs);
    for (const Output &output : entry.outputs)
      add(output.layout, program.outputMaps, program.outputs);
  }
}

void GpuRank::allocate() {
  arena = device().allocate(arenaPassed, "the arena");
  blocks = device().allocate(blockBytes, "parameters, inputs and outputs");
  pinnedMemory = device().allocatePinned(sizeof(Pinned));
  pinned() = {};
  Address base = blocks.get();
  for (Address *at : {&recordAt, &faultAt, &countsAt, &rankValuesAt})
    *at += base;
  for (Address &at : parameterAt)
    at = at ? at + base : 0; // the first block is the record
  for (Program &program : programs)
    for (std::vector<Address> *list : {&program.inputs, &program.outputs})
      for (Address &at : *list)
        at += base;
  auto values = reinterpret_cast<const int64_t *>(pointerTo(rankValuesAt));
  auto fault = reinterpret_cast<int64_t *>(pointerTo(faultAt));
  pinned().record = {values, 0, world.options.seed, fault};
  // Fresh memory holds anything; padding of inputs and outputs is read by
  // kernels that then select what is valid.
  check(driver,
        driver.fill(base, 0, static_cast<size_t>(blockBytes), compute()),
        "clearing memory");
  // Products are timed on the arena before a step has written it. Bytes of
  // ones are NaN: what reads a value that no step has computed is seen.
  if (arenaPassed > 0)
    check(driver,
          driver.fill(arena.get(), 0xff, static_cast<size_t>(arenaPassed),
                      compute()),
          "filling memory");
  std::vector<uint32_t> counts(kMostCounted + 1);
  std::iota(counts.begin(), counts.end(), 0u);
  check(driver,
        driver.copyToDevice(countsAt, counts.data(),
                            counts.size() * sizeof(uint32_t), compute()),
        "copying numbers to a device");
  if (!rankValues.empty())
    check(driver,
          driver.copyToDevice(rankValuesAt, rankValues.data(),
                              rankValues.size() * sizeof(int64_t), compute()),
          "copying rank values to a device");
  finish();
}

/// One block after the other passes through host memory.
void GpuRank::loadParameters() {
  for (size_t i = 0; i < parameterAt.size(); ++i) {
    if (!parameterAt[i])
      continue;
    world.crew->checkStopped();
    auto index = static_cast<int64_t>(i);
    const char *bytes = parameters.load(index);
    int64_t size =
        BlockMap(artifact.parameters[i].layout, artifact.axes, coordinates)
            .bytes();
    if (size > 0)
      check(driver,
            driver.copyToDevice(parameterAt[i], bytes,
                                static_cast<size_t>(size), compute()),
            "copying a parameter to a device");
    finish();
    parameters.release(index);
  }
}

Address GpuRank::address(int entry, const BufferRef &ref) const {
  const Program &program = programs[static_cast<size_t>(entry)];
  auto offset = static_cast<Address>(ref.offset);
  switch (ref.space) {
  case BufferRef::Space::Arena:
    return arena.get() + offset;
  case BufferRef::Space::Parameter:
    return parameterAt[static_cast<size_t>(ref.index)] + offset;
  case BufferRef::Space::Input:
    return program.inputs[static_cast<size_t>(ref.index)] + offset;
  case BufferRef::Space::Output:
    return program.outputs[static_cast<size_t>(ref.index)] + offset;
  case BufferRef::Space::RankValue:
    return rankValuesAt + static_cast<Address>(ref.index) * sizeof(int64_t) +
           offset;
  }
  return 0;
}

GpuRank::Step GpuRank::buildStep(int entry, const Instruction &instruction) {
  Step step;
  step.instruction = &instruction;
  step.what = describe(instruction);
  for (const BufferRef &ref : instruction.buffers)
    step.buffers.push_back(address(entry, ref));
  if (instruction.kind == Instruction::Kind::Kernel) {
    step.function = functions[static_cast<size_t>(instruction.index)];
    // Its rank, then its buffers; a result may be read, too.
    step.touched.push_back({recordAt, sizeof(MtpGpuRank), false});
    size_t first =
        instruction.buffers.size() - static_cast<size_t>(instruction.results);
    for (size_t i = 0; i < step.buffers.size(); ++i)
      step.touched.push_back(
          {step.buffers[i], static_cast<uint64_t>(instruction.buffers[i].bytes),
           i >= first});
  }
  return step;
}

/// The product of a step; null if what follows computes it faster.
const Products::Call *GpuRank::prepareProduct(int entry, size_t position) {
  const Step &step = programs[static_cast<size_t>(entry)].steps[position];
  const Instruction &instruction = *step.instruction;
  auto count = static_cast<size_t>(instruction.otherwise);
  std::span<const Step> rest(&step + 1, count);
  Products::Otherwise otherwise;
  otherwise.enqueue = [this, rest] {
    for (const Step &other : rest)
      perform(other);
  };
  for (const Step &other : rest)
    otherwise.key += std::to_string(static_cast<int>(other.instruction->kind)) +
                     ":" + std::to_string(other.instruction->index) + " ";
  return products->prepare(
      artifact.librarySites[static_cast<size_t>(instruction.index)],
      step.buffers, artifact.precision == "tf32", index == 0,
      artifact.entries[static_cast<size_t>(entry)].name + " '" +
          instruction.name + "'",
      compute(), count ? &otherwise : nullptr);
}

void GpuRank::buildPrograms() {
  for (size_t e = 0; e < artifact.entries.size(); ++e) {
    std::vector<Step> &steps = programs[e].steps;
    for (const Instruction &instruction : artifact.entries[e].program)
      steps.push_back(buildStep(static_cast<int>(e), instruction));
    // From the end: what a call stands for follows it.
    for (size_t i = steps.size(); i-- > 0;) {
      world.crew->checkStopped();
      if (steps[i].instruction->kind == Instruction::Kind::Library)
        steps[i].product = prepareProduct(static_cast<int>(e), i);
    }
  }
}
