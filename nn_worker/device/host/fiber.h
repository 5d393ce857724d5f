// A Fiber is a separate stack to which a thread can switch and from which it can switch back, for
// x86-64. Each switch is reported to AddressSanitizer or ThreadSanitizer, if the program uses one
// of them. Below the stack are 64 KiB of guard pages, so an overflow is a segmentation fault.
//
// Thread-compatible. Different threads may resume a fiber, one after another; code on it must not
// keep the address of a thread-local variable across Suspend.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_FIBER_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_FIBER_H_

#include <cstddef>

namespace satrap::host {

class Fiber {
 public:
  // `body` must never return.
  Fiber(void (*body)(void* argument), void* argument);
  // The fiber must not be running. Objects on its stack are not destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the fiber until it calls Suspend.
  void Resume();
  // Goes back to the caller of Resume. REQUIRES: called on this fiber
  void Suspend();

 private:
  static void Start(Fiber* fiber);

  void (*const body_)(void*);
  void* const argument_;
  char* stack_;  // the closed pages, then the stack
  void* stack_pointer_ = nullptr;
  void* resumer_stack_pointer_ = nullptr;
  // State that the sanitizers keep for the two stacks.
  void* fake_stack_ = nullptr;
  void* resumer_fake_stack_ = nullptr;
  const void* resumer_bottom_ = nullptr;
  size_t resumer_bytes_ = 0;
  void* tsan_fiber_ = nullptr;
  void* tsan_resumer_ = nullptr;
};

}  // namespace satrap::host

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_FIBER_H_
