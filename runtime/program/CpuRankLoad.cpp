// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CpuRankLoad.cpp - what a rank does before its first step -----------===//
#include "runtime/kernels/Parallel.h"
#include "runtime/processes/ProcessCommunicator.h"
#include "runtime/program/CpuRank.h"
#include "runtime/support/Error.h"

#include <algorithm>

using namespace mtp;

CpuRank::CpuRank(CpuWorld &world, int index,
                 std::unique_ptr<Communicator> communicator)
    : Rank(world, index), cpu(world), comm(std::move(communicator)),
      keep(artifact.parameters.size(), false) {
  abi.abiVersion = MTP_ABI_VERSION;
  abi.math = mathTable();
  abi.rankValues = rankValues.data();
  abi.seed = world.options.seed;
  abi.fault = &fault;
}

CpuWorld::CpuWorld(Artifact given, const WorldOptions &options)
    : World(std::move(given), options), object(artifact), packs(crew->ranks()) {
  std::string().swap(artifact.object);
}

std::vector<std::unique_ptr<Rank>> CpuWorld::makeRanks() {
  std::vector<std::unique_ptr<Communicator>> communicators;
  if (options.processes)
    communicators.push_back(makeProcessCommunicator(
        crew, options.processes, artifact.axes, artifact.collectiveSites));
  else
    communicators =
        makeThreadCommunicators(crew, artifact.axes, artifact.collectiveSites);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (size_t i = 0; i < here.size(); ++i)
    ranks.push_back(
        std::make_unique<CpuRank>(*this, here[i], std::move(communicators[i])));
  return ranks;
}

void CpuRank::load() {
  static const std::string loading = "loading weights";
  world.crew->note(index, &loading);
  setLibraryThreads(world.options.threadsPerRank);
  checkSources();
  prepareLibrary();
  loadOthers();
  allocate();
  buildPrograms();
}

void CpuRank::prepareLibrary() {
  // How many calls still have to look at a parameter.
  std::vector<int64_t> waiting(artifact.parameters.size(), 0);
  auto forEachParameter = [](const Instruction &step, auto &&use) {
    for (const BufferRef &ref : step.buffers)
      if (ref.space == BufferRef::Space::Parameter)
        use(ref.index);
  };
  for (size_t i = 0; i < keep.size(); ++i)
    keep[i] = artifact.parameters[i].updated;
  for (const Entry &entry : artifact.entries)
    for (const Instruction &step : entry.program)
      forEachParameter(step, [&](int64_t parameter) {
        if (step.kind == Instruction::Kind::Library)
          ++waiting[parameter];
        else
          keep[parameter] = true;
      });
  for (size_t e = 0; e < artifact.entries.size(); ++e) {
    const Entry &entry = artifact.entries[e];
    for (size_t i = 0; i < entry.program.size(); ++i) {
      const Instruction &step = entry.program[i];
      if (step.kind != Instruction::Kind::Library)
        continue;
      world.crew->checkStopped();
      libraryAt[{e, i}] =
          prepareCall(step, entry.name + " '" + step.name + "'");
      forEachParameter(step, [&](int64_t parameter) {
        if (--waiting[parameter] == 0 && !keep[parameter])
          parameters.release(parameter);
      });
    }
  }
}

LibraryKernel *CpuRank::prepareCall(const Instruction &call,
                                    const std::string &where) {
  PrepareContext context;
  context.threads = world.options.threadsPerRank;
  context.scratch = scratch;
  context.rankValueCount = static_cast<int64_t>(rankValues.size());
  context.packs = &cpu.packs[index];
  bool first = true;
  for (const BufferRef &ref : call.buffers) {
    if (ref.space != BufferRef::Space::Parameter ||
        artifact.parameters[ref.index].updated) {
      context.constant.push_back(nullptr);
      context.constantKeys.push_back(0);
      continue;
    }
    int owner = parameters.owner(ref.index);
    context.constant.push_back(parameters.load(ref.index) + ref.offset);
    context.constantKeys.push_back(
        cpu.constantKey(ref.index, owner, ref.offset));
    if (first)
      context.packs = &cpu.packs[owner];
    first = false;
  }
  LibraryKernel *&kernel = prepared[{call.index, context.constantKeys}];
  if (!kernel) {
    std::string error;
    kernels.push_back(prepareLibraryKernel(artifact.librarySites[call.index],
                                           context, error));
    kernel = kernels.back().get();
    if (!kernel)
      fail(exits::BadInput, "artifact", where + ": " + error);
  }
  for (size_t i = 0; i < call.buffers.size(); ++i)
    if (call.buffers[i].space == BufferRef::Space::Parameter &&
        kernel->keepsConstant(static_cast<int>(i)))
      keep[call.buffers[i].index] = true;
  return kernel;
}

void CpuRank::loadOthers() {
  for (size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i])
      continue;
    world.crew->checkStopped();
    parameters.load(static_cast<int64_t>(i));
  }
}

void CpuRank::allocate() {
  for (const Entry &entry : artifact.entries)
    arenaPassed = std::max(arenaPassed, entry.arenaBytes);
  arena = AlignedBuffer(static_cast<size_t>(arenaPassed));
  for (const Entry &entry : artifact.entries) {
    Program &program = programs.emplace_back();
    auto add = [&](const TensorLayout &layout, std::vector<BlockMap> &maps,
                   std::vector<AlignedBuffer> &buffers) {
      maps.emplace_back(layout, artifact.axes, coordinates);
      buffers.emplace_back(static_cast<size_t>(maps.back().bytes()));
    };
    for (const Input &input : entry.inputs)
      add(input.layout, program.inputMaps, program.inputs);
    for (const Output &output : entry.outputs)
      add(output.layout, program.outputMaps, program.outputs);
  }
}

char *CpuRank::address(Program &program, const BufferRef &ref) {
  switch (ref.space) {
  case BufferRef::Space::Arena:
    return arena.data() + ref.offset;
  case BufferRef::Space::Parameter: {
    // Kernels take char *, and write updated parameters only.
    const char *data = parameters.address(ref.index);
    return data ? const_cast<char *>(data) + ref.offset : nullptr;
  }
  case BufferRef::Space::Input:
    return program.inputs[ref.index].data() + ref.offset;
  case BufferRef::Space::Output:
    return program.outputs[ref.index].data() + ref.offset;
  case BufferRef::Space::RankValue:
    return reinterpret_cast<char *>(&rankValues[ref.index]) + ref.offset;
  }
  return nullptr;
}

void CpuRank::buildPrograms() {
  for (size_t e = 0; e < artifact.entries.size(); ++e) {
    Program &program = programs[e];
    const auto &instructions = artifact.entries[e].program;
    std::vector<size_t> partners = loopPartners(instructions);
    for (size_t i = 0; i < instructions.size(); ++i) {
      const Instruction &from = instructions[i];
      Step step;
      step.kind = from.kind;
      step.index = from.index;
      step.count = from.count;
      step.grain = from.grain;
      step.what = describe(from);
      step.other = partners[i];
      for (const BufferRef &ref : from.buffers)
        step.buffers.push_back(address(program, ref));
      if (from.kind == Instruction::Kind::Kernel)
        step.kernel = cpu.object.kernel(from.index);
      if (from.kind == Instruction::Kind::Library)
        step.library = libraryAt[{e, i}];
      program.steps.push_back(std::move(step));
    }
  }
}

int64_t CpuRank::libraryBytes() const {
  int64_t bytes = static_cast<int64_t>(scratch->size());
  for (const auto &kernel : kernels)
    bytes += kernel->packedBytes();
  return bytes;
}
