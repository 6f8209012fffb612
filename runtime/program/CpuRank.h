// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CpuRank.h - a rank that is a thread of this process ----------------===//
#ifndef MTP_RUNTIME_PROGRAM_CPURANK_H
#define MTP_RUNTIME_PROGRAM_CPURANK_H

#include "runtime/kernels/LibraryKernel.h"
#include "runtime/loader/ObjectLoader.h"
#include "runtime/program/Rank.h"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace mtp {

/// The code of an artifact in this process, and what its ranks pack.
struct CpuWorld : World {
  /// Opens files and loads the object; throws RuntimeError.
  CpuWorld(Artifact given, const WorldOptions &options);

  std::vector<std::unique_ptr<Rank>> makeRanks() override;

  /// A number for the bytes at `offset` of the block of `parameter` that rank
  /// `owner` holds: equal for equal bytes.
  uint64_t constantKey(int64_t parameter, int owner, int64_t offset) {
    std::lock_guard lock(keyMutex);
    return keys.try_emplace({parameter, owner, offset}, keys.size() + 1)
        .first->second;
  }

  LoadedObject object;
  /// Packed constants by the owner of their block: ranks that hold the same
  /// block share a copy, others don't wait for each other.
  std::vector<PackCache> packs;

private:
  std::mutex keyMutex;
  std::map<std::tuple<int64_t, int, int64_t>, uint64_t> keys;
};

class CpuRank : public Rank {
public:
  CpuRank(CpuWorld &world, int index,
          std::unique_ptr<Communicator> communicator);

  void load() override;
  void setInputs(int entry,
                 const std::vector<const HostTensor *> &inputs) override;
  double step(int entry) override;
  void getOutputs(int entry, const std::vector<HostTensor *> &outputs) override;
  std::vector<double> stepSeconds(int entry) const override;
  int64_t arenaBytes() const override { return arenaPassed; }
  int64_t libraryBytes() const override;
  const std::vector<Communicator::Counter> &counters() const override {
    return comm->counters();
  }
  std::set<std::string> implementations() const override;

protected:
  const char *readUpdated(int64_t parameter) override {
    return parameters.address(parameter);
  }
  void writeUpdated(int64_t parameter, const char *bytes, size_t size) override;

private:
  struct Step {
    Instruction::Kind kind;
    int64_t index = 0, count = 1, grain = 1;
    size_t other = 0; ///< of LoopBegin its end, of LoopEnd its begin
    MtpKernel kernel = nullptr;
    LibraryKernel *library = nullptr;
    std::vector<char *> buffers;
    std::string what; ///< "kernel 'name'"
    double seconds = 0;
  };
  struct Program {
    std::vector<Step> steps;
    std::vector<BlockMap> inputMaps, outputMaps;
    std::vector<AlignedBuffer> inputs, outputs;
  };

  void prepareLibrary();
  LibraryKernel *prepareCall(const Instruction &call, const std::string &where);
  void loadOthers();
  void allocate();
  void buildPrograms();
  char *address(Program &program, const BufferRef &ref);
  void runKernel(const Step &step);
  void execute(Program &program);
  void perform(const Step &step);

  CpuWorld &cpu;
  std::unique_ptr<Communicator> comm;
  MtpRank abi{};
  int64_t fault = 0;
  AlignedBuffer arena; ///< serves every entry
  int64_t arenaPassed = 0;
  std::shared_ptr<Scratch> scratch = std::make_shared<Scratch>();
  std::vector<std::unique_ptr<LibraryKernel>> kernels;
  /// Kernels by site and constant operands; what is equal is prepared once.
  std::map<std::pair<int64_t, std::vector<uint64_t>>, LibraryKernel *> prepared;
  /// The kernel of each library instruction, by entry and position.
  std::map<std::pair<size_t, size_t>, LibraryKernel *> libraryAt;
  std::vector<bool> keep;        ///< parameters that are read after loading
  std::vector<Program> programs; ///< one for each entry
};

} // namespace mtp

#endif // MTP_RUNTIME_PROGRAM_CPURANK_H
