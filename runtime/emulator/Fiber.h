// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Fiber.h - stacks that one thread switches between ------------------===//
//
// The owner resumes a fiber, which runs until it yields to its owner:
//
//   owner    resume() ------------------ resume() ----
//   fiber             body ... yield()            ... body goes on
//
// A switch saves the registers that a call keeps and changes the stack, some
// nanoseconds; on other processors than x86-64 and arm64 it is ucontext's.
// Sanitizers are told of every switch.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_EMULATOR_FIBER_H
#define MTP_RUNTIME_EMULATOR_FIBER_H

#include <cstddef>

namespace mtp::emulator {

class Fiber {
public:
  using Body = void (*)(void *argument);

  /// `body` must not return and must not throw. Takes `stackBytes` (rounded up
  /// to pages) and a page that may not be touched. Throws std::bad_alloc.
  Fiber(Body body, void *argument, size_t stackBytes);
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;
  ~Fiber();

  /// Called by the owner: runs the body until it yields.
  void resume();
  /// Called by the body.
  void yield();
  /// Called by the owner: the body begins again at the next resume. What its
  /// stack held is lost; no destructor runs.
  void restart();

private:
  static void enter(void *self);
  void prepare();

  Body body;
  void *argument;
  char *memory = nullptr; ///< lowest page is the guard
  size_t size = 0, guard = 0;
  void *own = nullptr;   ///< state of the body
  void *owner = nullptr; ///< state of the owner
  /// What the sanitizers, if any, know of the two stacks.
  struct Watched {
    void *fakeStack = nullptr;
    const void *ownerStack = nullptr;
    size_t ownerSize = 0;
    void *own = nullptr, *owner = nullptr;
  };
  [[maybe_unused]] Watched watched;
};

} // namespace mtp::emulator

#endif // MTP_RUNTIME_EMULATOR_FIBER_H
