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
  /// An asynchronous copy that is under way. What it reads is taken at its
  /// begin, and must still be there at its end.
  struct Copy {
    char *to = nullptr;
    const char *from = nullptr;
    int64_t bytes = 0; ///< that are read; the rest of the site's are zero
    int64_t site = 0, readSite = 0;
    int64_t group = 0;
    std::array<char, 16> contents{};
  };
  struct Thread : MtpEmulatedThread {
    Thread(Machine &machine, uint32_t number);
    Machine &machine;
    uint32_t number;
    State state = State::Idle;
    int64_t site = 0;
    uint64_t *operands = nullptr;
    Fiber fiber;
    std::vector<Copy> copies;
    int64_t groups = 0; ///< that have been committed
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
    PartOfWarp,
    NotShared,    ///< a copy to somewhere else
    LeftCopy,     ///< the thread ends while a copy is under way
    SourceChanged ///< of a copy
  };
  struct Failure {
    Trouble trouble = Trouble::None;
    emulator::Conflict conflict = emulator::Conflict::None;
    uint32_t thread = 0, other = 0;
    bool otherBlock = false;
    int64_t site = -1, otherSite = -1, offset = 0, bytes = 0, extent = 0;
  };

  static void body(void *thread);
  static void access(MtpEmulatedThread *thread, int64_t site, void *address);
  static void barrier(MtpEmulatedThread *thread, int64_t site);
  static void warp(MtpEmulatedThread *thread, int64_t site, void *operands);
  static void async(MtpEmulatedThread *thread, int64_t site, void *operands);

  void prepare();
  void openRegions();
  void number(Thread &thread, uint32_t number) const;
  void stop(Thread &thread, State state, int64_t site);
  [[noreturn]] void failIn(Thread &thread);
  [[noreturn]] void failIn(Thread &thread, Trouble trouble, int64_t site);
  /// What a site does to memory; false after a failure.
  enum class Use { Read, Write, BeginCopy, Atomic };
  bool inspect(const Thread &thread, int64_t site, const char *at,
               int64_t bytes, Use use);
  /// Addresses are multiples of the site's bytes.
  bool isAligned(const Thread &thread, int64_t site, const char *at);
  bool watch(const Thread &thread, int64_t site, Shadow &shadow, int64_t offset,
             int64_t bytes, Use use);
  /// The array of shared memory that has an address; null if none.
  const SharedArray *arrayAt(const char *at) const;
  void begin(Thread &thread, int64_t site, const uint64_t *operands);
  void end(Thread &thread, const Copy &copy);
  void wait(Thread &thread, int64_t left);
  void runBlock();
  void runWarp(uint32_t first);
  void meetInWarp(uint32_t first);
  bool inspectMatrices(uint32_t first, const MatrixLoad &load);
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
