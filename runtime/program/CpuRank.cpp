// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CpuRank.cpp - runs the program of an artifact ----------------------===//
#include "runtime/program/CpuRank.h"
#include "runtime/kernels/Parallel.h"
#include "runtime/support/Checked.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

using namespace mtp;

double CpuRank::step(int entry) {
  Program &program = programs[entry];
  comm->resetCounters();
  world.crew->barrier(index, turn++);
  auto begin = std::chrono::steady_clock::now();
  execute(program);
  std::chrono::duration<double, std::milli> time =
      std::chrono::steady_clock::now() - begin;
  ++abi.step;
  checkFault(std::atomic_ref(fault).exchange(0, std::memory_order_relaxed));
  return time.count();
}

void CpuRank::runKernel(const Step &step) {
  int64_t pieces = std::min<int64_t>(world.options.threadsPerRank,
                                     ceilDiv(step.count, step.grain));
  char *const *buffers = step.buffers.data();
  if (pieces <= 1)
    return step.kernel(&abi, buffers, 0, step.count);
  // Counts are far below 2^63 / threads: verified sizes bound them.
  parallelFor(static_cast<int>(pieces), pieces, [&](int64_t piece, int) {
    int64_t quotient = step.count / pieces, rest = step.count % pieces;
    int64_t begin = piece * quotient + std::min(piece, rest);
    step.kernel(&abi, buffers, begin, begin + quotient + (piece < rest));
  });
}

/// A step that is no border of a loop.
void CpuRank::perform(const Step &step) {
  std::string error;
  switch (step.kind) {
  case Instruction::Kind::Kernel:
    if (step.count > 0)
      runKernel(step);
    return;
  case Instruction::Kind::Library:
    if (!step.library->run(&abi, step.buffers.data(), error))
      failInput(step.what + ": " + error);
    return;
  case Instruction::Kind::Start:
    comm->start(step.index, step.buffers[0], step.buffers[1]);
    return;
  default:
    comm->done(step.index);
  }
}

void CpuRank::execute(Program &program) {
  std::vector<int64_t> left; // trips of open loops
  for (size_t i = 0; i < program.steps.size(); ++i) {
    Step &step = program.steps[i];
    world.crew->note(index, &step.what);
    world.crew->checkStopped();
    comm->progress();
    if (step.kind == Instruction::Kind::LoopBegin) {
      if (step.count == 0)
        i = step.other;
      else
        left.push_back(step.count);
    } else if (step.kind == Instruction::Kind::LoopEnd) {
      if (--left.back() > 0)
        i = step.other;
      else
        left.pop_back();
    } else if (world.options.profile) {
      auto begin = std::chrono::steady_clock::now();
      perform(step);
      step.seconds += std::chrono::duration<double>(
                          std::chrono::steady_clock::now() - begin)
                          .count();
    } else {
      perform(step);
    }
  }
  // Who asked for this step may be gone.
  world.crew->checkStopped();
}

std::vector<double> CpuRank::stepSeconds(int entry) const {
  std::vector<double> seconds;
  for (const Step &step : programs[entry].steps)
    seconds.push_back(step.seconds);
  return seconds;
}

void CpuRank::setInputs(int entry,
                        const std::vector<const HostTensor *> &inputs) {
  Program &program = programs[entry];
  for (size_t i = 0; i < inputs.size(); ++i) {
    AlignedBuffer &block = program.inputs[i];
    if (world.options.poison)
      poison(inputs[i]->type, block.data(), static_cast<int64_t>(block.size()));
    program.inputMaps[i].cut(inputs[i]->bytes.data(), block.data());
  }
  if (world.options.poison) {
    poisonArena(arena.data(), static_cast<int64_t>(arena.size()));
    for (AlignedBuffer &output : program.outputs)
      poisonArena(output.data(), static_cast<int64_t>(output.size()));
  }
}

void CpuRank::getOutputs(int entry, const std::vector<HostTensor *> &outputs) {
  const Program &program = programs[entry];
  for (size_t i = 0; i < outputs.size(); ++i)
    if (program.outputMaps[i].writesOutput())
      program.outputMaps[i].assemble(program.outputs[i].data(),
                                     outputs[i]->bytes.data());
}

void CpuRank::writeUpdated(int64_t index, const char *bytes, size_t size) {
  std::memcpy(parameters.updatedAddress(index), bytes, size);
}

std::set<std::string> CpuRank::implementations() const {
  std::set<std::string> result;
  for (const auto &[key, kernel] : prepared)
    result.insert(artifact.librarySites[key.first].kind + ": " +
                  kernel->implementation());
  return result;
}
