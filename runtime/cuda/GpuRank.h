// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuRank.h - a rank on a GPU ----------------------------------------===//
//
// Everything that a step uses is there before the first one: one arena, the
// blocks of parameters, inputs and outputs, workspace and staging, kernels and
// products. A step allocates nothing and waits for nothing until it is over.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_GPURANK_H
#define MTP_RUNTIME_CUDA_GPURANK_H

#include "runtime/abi/GpuAbi.h"
#include "runtime/cuda/GpuWorld.h"
#include "runtime/cuda/StepRunner.h"

namespace mtp::cuda {

class GpuRank : public Rank {
public:
  GpuRank(GpuWorld &world, int index);
  ~GpuRank() override;

  void load() override;
  void setInputs(int entry,
                 const std::vector<const HostTensor *> &inputs) override;
  double step(int entry) override;
  void getOutputs(int entry, const std::vector<HostTensor *> &outputs) override;
  void close() noexcept override;
  std::vector<double> stepSeconds(int entry) const override {
    return std::vector<double>(artifact.entries[entry].program.size(), 0);
  }
  int64_t arenaBytes() const override { return arenaPassed; }
  int64_t libraryBytes() const override;
  const std::vector<Communicator::Counter> &counters() const override {
    return lastCounters;
  }
  std::set<std::string> implementations() const override;

  // For the runner that drives this rank, on the thread of which the device is
  // current.

  /// The instruction at `position`, but borders of loops: gives its work to the
  /// streams. Of a collective's start what comes before advance().
  void enqueue(int entry, size_t position);
  /// The instructions behind the one at `position` that it stands for: they are
  /// not given.
  size_t replaced(int entry, size_t position) const;
  /// Before and after the instructions of a step, outside of what is captured.
  void beginStep();
  void endStep();
  void beginInstructions();
  /// The collectives that the instructions have begun since then are those of
  /// every step of `entry`.
  void endInstructions(int entry);
  /// Those of the step that runs now.
  void countStep(int entry) { lastCounters = counted[entry]; }

  const Artifact &program() const { return artifact; }
  bool captures() const { return world.options.capture; }
  int number() const { return index; }
  const Device &device() const { return gpu.deviceOf(index); }
  StreamHandle *compute() const { return stream.get(); }
  GpuCommunicator &communicator() { return *comm; }
  Crew &crew() { return *world.crew; }
  /// Collectives that have finished in this step.
  uint32_t progress() const;

protected:
  const char *readUpdated(int64_t parameter) override;
  void writeUpdated(int64_t parameter, const char *bytes, size_t size) override;

private:
  /// One instruction with the addresses of its buffers.
  struct Step {
    const Instruction *instruction;
    std::vector<Address> buffers;
    std::vector<Touched> touched; ///< by a kernel
    FunctionHandle *function = nullptr;
    const Products::Call *product = nullptr; ///< null: the other form runs
    std::string what;                        ///< "kernel 'name'"
  };
  struct Program {
    std::vector<Step> steps;
    std::vector<BlockMap> inputMaps, outputMaps;
    std::vector<Address> inputs, outputs;
  };
  /// What the device writes for the host, and the host for the device.
  struct Pinned {
    MtpGpuRank record;
    int64_t fault;
    uint32_t progress;
  };

  /// Collectives beyond these count as the last of them.
  static constexpr size_t kMostCounted = 4095;

  void allocate();
  void layOut();
  void loadParameters();
  void buildPrograms();
  Step buildStep(int entry, const Instruction &instruction);
  const Products::Call *prepareProduct(int entry, size_t position);
  Address address(int entry, const BufferRef &ref) const;
  void launch(const Step &step) const;
  void perform(const Step &step) const;
  void drain() noexcept;
  Address place(int64_t bytes);
  Pinned &pinned() const { return *static_cast<Pinned *>(pinnedMemory.get()); }
  /// Waits for everything that this rank's stream was given.
  void finish() { finishStream(driver, stream.get(), *world.crew); }

  GpuWorld &gpu;
  const DriverApi &driver;
  DeviceMemory arena, blocks;
  PinnedMemory pinnedMemory;
  int64_t arenaPassed = 0, blockBytes = 0;
  std::vector<Address> parameterAt; ///< 0: nothing reads it
  Address rankValuesAt = 0, recordAt = 0, faultAt = 0, countsAt = 0;
  Stream stream;
  Reductions reductions;
  std::unique_ptr<Products> products;
  std::vector<FunctionHandle *> functions; ///< as GpuCode::kernels
  std::vector<Program> programs;           ///< one for each entry
  std::unique_ptr<GpuCommunicator> comm;
  std::unique_ptr<StepRunner> runner; ///< null where rank 0 drives
  std::vector<std::vector<Communicator::Counter>> counted; ///< by entry
  std::vector<Communicator::Counter> lastCounters;
  std::vector<char> updated; ///< of readUpdated
  uint64_t steps = 0;
};

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_GPURANK_H
