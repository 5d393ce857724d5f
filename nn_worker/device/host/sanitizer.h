// Functions of AddressSanitizer and ThreadSanitizer that the host's device calls. They are weak
// symbols, which are null in a program without that sanitizer, so that one source serves all
// builds.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_SANITIZER_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_SANITIZER_H_

#include <cstddef>

// NOLINTBEGIN(bugprone-reserved-identifier): the names are theirs
extern "C" {

__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fake_stack_save,
                                                          const void* bottom, size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fake_stack_save,
                                                           const void** bottom_old,
                                                           size_t* size_old);
__attribute__((weak)) void __asan_poison_memory_region(const volatile void* begin, size_t size);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* begin, size_t size);
__attribute__((weak)) void* __tsan_get_current_fiber();
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_SANITIZER_H_
