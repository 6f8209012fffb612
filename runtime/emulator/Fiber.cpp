// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/emulator/Fiber.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MTP_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define MTP_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MTP_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define MTP_TSAN 1
#endif

#ifdef MTP_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef MTP_TSAN
#include <sanitizer/tsan_interface.h>
#endif

using namespace mtp::emulator;

//===----------------------------------------------------------------------===//
// Switch
//===----------------------------------------------------------------------===//

#if defined(__x86_64__)

// Saves the state of the caller in *from and goes on where `to` was saved. The
// registers are those that a call keeps.
extern "C" void mtpSwitchStack(void **from, void *to);
asm(R"(
.text
.globl mtpSwitchStack
.hidden mtpSwitchStack
.type mtpSwitchStack, @function
mtpSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size mtpSwitchStack, .-mtpSwitchStack
.globl mtpEnterStack
.hidden mtpEnterStack
.type mtpEnterStack, @function
mtpEnterStack:
  movq %r12, %rdi
  callq *%r13
  ud2
.size mtpEnterStack, .-mtpEnterStack
)");
extern "C" void mtpEnterStack();

static void *makeState(char *top, void (*entry)(void *), void *argument) {
  auto *word = reinterpret_cast<uintptr_t *>(top);
  *--word = 0; // so that a call in mtpEnterStack finds the stack aligned
  *--word = 0;
  *--word = reinterpret_cast<uintptr_t>(&mtpEnterStack);
  *--word = 0;                                     // rbp
  *--word = 0;                                     // rbx
  *--word = reinterpret_cast<uintptr_t>(argument); // r12
  *--word = reinterpret_cast<uintptr_t>(entry);    // r13
  *--word = 0;                                     // r14
  *--word = 0;                                     // r15
  return word;
}
static void switchTo(void **from, void **to) { mtpSwitchStack(from, *to); }
static void freeState(void *) {}

#elif defined(__aarch64__)

extern "C" void mtpSwitchStack(void **from, void *to);
asm(R"(
.text
.globl mtpSwitchStack
.hidden mtpSwitchStack
.type mtpSwitchStack, %function
mtpSwitchStack:
  sub sp, sp, #176
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #176
  ret
.size mtpSwitchStack, .-mtpSwitchStack
.globl mtpEnterStack
.hidden mtpEnterStack
.type mtpEnterStack, %function
mtpEnterStack:
  mov x0, x19
  blr x20
  brk #0
.size mtpEnterStack, .-mtpEnterStack
)");
extern "C" void mtpEnterStack();

static void *makeState(char *top, void (*entry)(void *), void *argument) {
  auto *word = reinterpret_cast<uintptr_t *>(top - 176);
  std::memset(word, 0, 176);
  word[0] = reinterpret_cast<uintptr_t>(argument);
  word[1] = reinterpret_cast<uintptr_t>(entry);
  word[11] = reinterpret_cast<uintptr_t>(&mtpEnterStack);
  return word;
}
static void switchTo(void **from, void **to) { mtpSwitchStack(from, *to); }
static void freeState(void *) {}

#else

#include <ucontext.h>

namespace {
struct Start {
  ucontext_t context;
  void (*entry)(void *);
  void *argument;
};
} // namespace

static void enterContext(unsigned high, unsigned low) {
  auto *start = reinterpret_cast<Start *>((uintptr_t(high) << 32) | low);
  start->entry(start->argument);
  std::abort();
}

static void *makeState(char *top, void (*entry)(void *), void *argument) {
  auto *start = new Start{{}, entry, argument};
  getcontext(&start->context);
  // The stack's lowest address is not needed to switch; a part that surely
  // exists is named.
  start->context.uc_stack.ss_sp = top - (32 << 10);
  start->context.uc_stack.ss_size = 32 << 10;
  auto number = reinterpret_cast<uint64_t>(start);
  makecontext(&start->context, reinterpret_cast<void (*)()>(enterContext), 2,
              unsigned(number >> 32), unsigned(number));
  return start;
}
static void switchTo(void **from, void **to) {
  if (!*from)
    *from = new Start{};
  swapcontext(&static_cast<Start *>(*from)->context,
              &static_cast<Start *>(*to)->context);
}
static void freeState(void *state) { delete static_cast<Start *>(state); }

#endif

//===----------------------------------------------------------------------===//
// Fibers
//===----------------------------------------------------------------------===//

Fiber::Fiber(Body body, void *argument, size_t stackBytes)
    : body(body), argument(argument) {
  guard = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size = (stackBytes + guard - 1) / guard * guard + guard;
  void *mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw std::bad_alloc();
  memory = static_cast<char *>(mapped);
  if (mprotect(memory, guard, PROT_NONE) != 0) {
    munmap(memory, size);
    throw std::bad_alloc();
  }
  prepare();
}

Fiber::~Fiber() {
  freeState(own);
  freeState(owner);
#ifdef MTP_TSAN
  __tsan_destroy_fiber(watched.own);
#endif
  munmap(memory, size);
}

void Fiber::prepare() {
  own = makeState(memory + size, &Fiber::enter, this);
#ifdef MTP_TSAN
  watched.own = __tsan_create_fiber(0);
#endif
}

void Fiber::restart() {
  freeState(own);
#ifdef MTP_TSAN
  __tsan_destroy_fiber(watched.own);
#endif
  watched.fakeStack = nullptr;
  prepare();
}

void Fiber::enter(void *self) {
  auto *fiber = static_cast<Fiber *>(self);
#ifdef MTP_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &fiber->watched.ownerStack,
                                  &fiber->watched.ownerSize);
#endif
  fiber->body(fiber->argument);
  std::abort();
}

void Fiber::resume() {
#ifdef MTP_ASAN
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, memory + guard, size - guard);
#endif
#ifdef MTP_TSAN
  watched.owner = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(watched.own, 0);
#endif
  switchTo(&owner, &own);
#ifdef MTP_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void Fiber::yield() {
#ifdef MTP_ASAN
  __sanitizer_start_switch_fiber(&watched.fakeStack, watched.ownerStack,
                                 watched.ownerSize);
#endif
#ifdef MTP_TSAN
  __tsan_switch_to_fiber(watched.owner, 0);
#endif
  switchTo(&own, &owner);
#ifdef MTP_ASAN
  __sanitizer_finish_switch_fiber(watched.fakeStack, &watched.ownerStack,
                                  &watched.ownerSize);
#endif
}
