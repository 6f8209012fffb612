// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Rank.h - one rank: its memory and the steps it runs ----------------===//
#ifndef MTP_RUNTIME_PROGRAM_RANK_H
#define MTP_RUNTIME_PROGRAM_RANK_H

#include "runtime/io/HostTensor.h"
#include "runtime/program/RankParameters.h"
#include "runtime/program/World.h"
#include "runtime/session/Inputs.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace mtp {

/// All methods are called by the thread of this rank; they throw RuntimeError,
/// RankStopped or std::bad_alloc.
class Rank {
public:
  Rank(World &world, int index, std::unique_ptr<Communicator> communicator);

  /// Loads weights, prepares library kernels, takes memory.
  void load();
  /// Cuts this rank's blocks out of whole tensors, one for each input.
  void setInputs(int entry, const std::vector<const HostTensor *> &inputs);
  /// One step of `entry`; milliseconds. All ranks begin together.
  double step(int entry);
  /// Writes this rank's part of the whole tensors, one for each output.
  void getOutputs(int entry, const std::vector<HostTensor *> &outputs) const;

  /// Writes this rank's block of an updated parameter into the whole piece, if
  /// the rank has the coordinates `at` on the axes that the block is partial
  /// over and is the first on those that don't cut it.
  void readStored(int64_t parameter, const std::vector<int64_t> &at,
                  char *piece) const;
  /// Replaces this rank's block by that of `whole`, the initializer's tensor.
  /// Of ranks whose blocks are summed the first gets it, others zero.
  void writeStored(int64_t parameter, const HostTensor &whole);

  /// Seconds of each step of an entry's program so far, if times are taken.
  std::vector<double> stepSeconds(int entry) const;

  int64_t arenaBytes() const { return arenaPassed; }
  int64_t libraryBytes() const;
  Communicator &communicator() { return *comm; }
  /// "matmul: oneDNN brg:avx512_core", each once.
  std::set<std::string> implementations() const;

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

  void checkSources();
  void prepareLibrary();
  LibraryKernel *prepareCall(const Instruction &call, const std::string &where);
  void loadOthers();
  void allocate();
  void buildPrograms();
  char *address(Program &program, const BufferRef &ref);
  void runKernel(const Step &step);
  void execute(Program &program);
  void perform(const Step &step);

  World &world;
  const Artifact &artifact;
  int index;
  std::vector<int64_t> coordinates;
  std::unique_ptr<Communicator> comm;
  RankParameters parameters;
  std::vector<int64_t> rankValues;
  MtpRank abi{};
  int64_t fault = 0;
  uint32_t turn = 0;   ///< barriers so far
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

#endif // MTP_RUNTIME_PROGRAM_RANK_H
