// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/program/Rank.h"
#include "runtime/session/Assembly.h"
#include "runtime/support/Error.h"

using namespace mtp;

Rank::Rank(World &world, int index)
    : world(world), artifact(world.artifact), index(index),
      coordinates(artifact.axes.coordinates(index)),
      parameters(artifact, world.files, index) {
  for (const RankValue &value : artifact.rankValues) {
    if (value.kind == RankValue::Kind::Coordinate) {
      rankValues.push_back(coordinates[value.sharding.axes[0]]);
      continue;
    }
    Block block =
        blockOf(value.extent, value.sharding, artifact.axes, coordinates);
    rankValues.push_back(value.kind == RankValue::Kind::Offset ? block.offset
                                                               : block.valid);
  }
}

void Rank::checkSources() {
  if (!world.options.checkSources)
    return;
  // Each rank of this host checks its share; a failure of one stops all.
  const std::vector<size_t> &hashed = world.files.hashed();
  const Processes *processes = world.options.processes.get();
  auto first =
      static_cast<size_t>(processes ? processes->placeOnThisHost() : index);
  auto ranks = static_cast<size_t>(processes ? processes->onThisHost()
                                             : world.crew->ranks());
  for (size_t i = first; i < hashed.size(); i += ranks) {
    world.crew->checkStopped();
    world.files.checkHash(hashed[i]);
  }
}

void Rank::checkFault(int64_t found) const {
  if (found == 0)
    return;
  bool known =
      found >= 1 && found <= static_cast<int64_t>(artifact.faults.size());
  failInput(known ? artifact.faults[found - 1]
                  : "a kernel met invalid data (fault " +
                        std::to_string(found) + ")");
}

void Rank::readStored(int64_t index, const std::vector<int64_t> &at,
                      char *piece) {
  const Parameter &parameter = artifact.parameters[index];
  if (auto map = writtenBlock(parameter.layout, artifact.axes, this->index,
                              parameter.partial, at))
    map->assemble(readUpdated(index), piece);
}

void Rank::writeStored(int64_t index, const HostTensor &whole) {
  Parameter from = artifact.parameters[index];
  from.source.type = whole.type;
  bool isFirst = true;
  for (int axis : from.partial)
    isFirst &= coordinates[axis] == 0;
  LoadedBlock block = loadBlock(from, isFirst ? whole.bytes.data() : nullptr,
                                artifact.axes, coordinates);
  if (!block.owned.empty())
    writeUpdated(index, block.data, block.owned.size());
}

std::string mtp::describe(const Instruction &instruction) {
  static const char *const kinds[] = {"kernel", "library call", "start",
                                      "done",   "loop",         "loop end"};
  return std::string(kinds[static_cast<size_t>(instruction.kind)]) + " '" +
         instruction.name + "'";
}

std::vector<size_t> mtp::loopPartners(const std::vector<Instruction> &program) {
  std::vector<size_t> partners(program.size(), 0), loops;
  for (size_t i = 0; i < program.size(); ++i) {
    if (program[i].kind == Instruction::Kind::LoopBegin)
      loops.push_back(i);
    if (program[i].kind != Instruction::Kind::LoopEnd)
      continue;
    partners[i] = loops.back();
    partners[loops.back()] = i;
    loops.pop_back();
  }
  return partners;
}
