// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Machine.h - one launch at a time -----------------------------------===//
#ifndef MTP_RUNTIME_EMULATOR_MACHINE_H
#define MTP_RUNTIME_EMULATOR_MACHINE_H

#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/Fiber.h"
#include "runtime/emulator/Shadow.h"

#include <memory>
#include <optional>

namespace mtp::emulator {

/// The fibers and shadows of one thread of the process. Nothing on the stack of
/// a fiber owns memory: a fiber that failed is dropped.
class Machine {
public:
  Machine() = default;
  Machine(const Machine &) = delete;
  Machine &operator=(const Machine &) = delete;
  /// Throws RuntimeError.
  void run(const KernelDescription &kernel, MtpKernel code,
           const Launch &launch, const std::vector<char *> &parameters);

private:
  enum class State { Idle, Ready, AtBarrier, AtWarp, Done, Failed };
  struct Thread : MtpEmulatedThread {
    Thread(Machine &machine, uint32_t number);
    Machine &machine;
    uint32_t number;
    State state = State::Idle;
    int64_t site = 0;
    void *operands = nullptr;
    Fiber fiber;
  };
  /// Memory that a parameter is the address of.
  struct Region {
    char *base = nullptr;
    int64_t bytes = -1;
    Shadow *shadow = nullptr; ///< null: nothing in it is written
    int64_t offset = 0;       ///< of the base in the shadow
  };
  enum class Trouble {
    None,
    Outside,
    Misaligned,
    Conflict,
    LeftBarrier,
    LeftWarp,
    PartOfWarp
  };
  struct Failure {
    Trouble trouble = Trouble::None;
    emulator::Conflict conflict = emulator::Conflict::None;
    uint32_t thread = 0, other = 0;
    bool otherBlock = false;
    int64_t site = -1, otherSite = -1, offset = 0, extent = 0;
  };

  static void body(void *thread);
  static void access(MtpEmulatedThread *thread, int64_t site, void *address);
  static void barrier(MtpEmulatedThread *thread, int64_t site);
  static void warp(MtpEmulatedThread *thread, int64_t site, void *operands);

  void prepare();
  void openRegions();
  void number(Thread &thread, uint32_t number) const;
  void stop(Thread &thread, State state, int64_t site);
  void failIn(Thread &thread, const Failure &failure);
  void watch(Thread &thread, const Site &site, int64_t number, Shadow &shadow,
             int64_t offset);
  void runBlock();
  void runWarp(uint32_t first);
  void meetInWarp(uint32_t first);
  bool meetAtBarrier();
  void check() const;
  std::string describe(const Failure &failure) const;
  std::string place(int64_t site) const;

  const KernelDescription *kernel = nullptr;
  MtpKernel code = nullptr;
  const Launch *shape = nullptr;
  char *const *parameters = nullptr;
  size_t parameterCount = 0;
  uint32_t count = 0; ///< threads of a block
  std::array<int64_t, 3> block{};
  uint32_t phase = 0, firstPhase = 0;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<char> shared;
  std::vector<Shadow> arrays; ///< of shared memory
  std::vector<Shadow> groups; ///< of written memory
  std::vector<Region> regions;
  Failure failure;
};

} // namespace mtp::emulator

#endif // MTP_RUNTIME_EMULATOR_MACHINE_H
