#include "nn_worker/device/host/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#include "common/base/check.h"
#include "nn_worker/device/host/sanitizer.h"

// Saves the stack pointer and the registers that a call preserves, and loads those of the other
// stack. swapcontext would do the same but would need a system call each time, for the signal mask.
extern "C" void SatrapSwitchStack(void** save, void* load);
extern "C" void SatrapStartFiber();

asm(R"(
.text
.p2align 4
.globl SatrapSwitchStack
.type SatrapSwitchStack, @function
SatrapSwitchStack:
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
.size SatrapSwitchStack, .-SatrapSwitchStack

.p2align 4
.globl SatrapStartFiber
.type SatrapStartFiber, @function
SatrapStartFiber:
  movq %rbx, %rdi
  call *%r12
  ud2
.size SatrapStartFiber, .-SatrapStartFiber
)");

namespace satrap::host {
namespace {

// The size of the guard pages below each stack. It is larger than the largest frame of a function,
// because a larger frame could reach beyond the guard without touching it.
constexpr size_t kGuardBytes = 64 * 1024;
// Kernels need little of this. Composing the message of a failed check, and a sanitizer's frames,
// need most of it. Pages that are never touched cost nothing.
constexpr size_t kStackBytes = 128 * 1024;

}  // namespace

Fiber::Fiber(void (*body)(void* argument), void* argument)
    : body_(body),
      argument_(argument),
      stack_(static_cast<char*>(mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
  CHECK(stack_ != MAP_FAILED) << "no memory for the stack of a kernel's thread";
  CHECK(mprotect(stack_, kGuardBytes, PROT_NONE) == 0);
  // Builds the stack in the state in which SatrapSwitchStack leaves a stack: six registers, where
  // rbx and r12 hold the arguments of SatrapStartFiber, and the address of SatrapStartFiber as the
  // return address. When SatrapStartFiber makes its call, the stack is aligned to 16.
  void** top = reinterpret_cast<void**>(stack_ + kGuardBytes + kStackBytes);
  *--top = nullptr;
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&SatrapStartFiber);
  *--top = nullptr;                                 // rbp: the end of a debugger's backtrace
  *--top = this;                                    // rbx
  *--top = reinterpret_cast<void*>(&Fiber::Start);  // r12
  for (int i = 0; i < 3; ++i) *--top = nullptr;     // r13, r14, r15
  stack_pointer_ = top;
  if (__tsan_create_fiber != nullptr) tsan_fiber_ = __tsan_create_fiber(0);
}

Fiber::~Fiber() {
  if (tsan_fiber_ != nullptr) __tsan_destroy_fiber(tsan_fiber_);
  // AddressSanitizer has poisoned frames that were left on the stack. Without this call, the next
  // memory mapped here would be poisoned, too.
  if (__asan_unpoison_memory_region != nullptr) {
    __asan_unpoison_memory_region(stack_, kGuardBytes + kStackBytes);
  }
  munmap(stack_, kGuardBytes + kStackBytes);
}

void Fiber::Start(Fiber* fiber) {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(nullptr, &fiber->resumer_bottom_, &fiber->resumer_bytes_);
  }
  fiber->body_(fiber->argument_);
}

void Fiber::Resume() {
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&resumer_fake_stack_, stack_ + kGuardBytes, kStackBytes);
  }
  if (tsan_fiber_ != nullptr) {
    tsan_resumer_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_fiber_, 0);
  }
  SatrapSwitchStack(&resumer_stack_pointer_, stack_pointer_);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(resumer_fake_stack_, nullptr, nullptr);
  }
}

void Fiber::Suspend() {
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&fake_stack_, resumer_bottom_, resumer_bytes_);
  }
  if (tsan_fiber_ != nullptr) __tsan_switch_to_fiber(tsan_resumer_, 0);
  SatrapSwitchStack(&stack_pointer_, resumer_stack_pointer_);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(fake_stack_, &resumer_bottom_, &resumer_bytes_);
  }
}

}  // namespace satrap::host
