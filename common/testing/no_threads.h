// While an object of this class lives, no thread can be started in this process, because a new
// thread's stack would be larger than the address space. Existing threads continue.
//
// The object changes the whole process, so there must be at most one at a time.

#ifndef SATRAP_COMMON_TESTING_NO_THREADS_H_
#define SATRAP_COMMON_TESTING_NO_THREADS_H_

#include <pthread.h>

#include <cstddef>

#include "common/base/check.h"

namespace satrap {

class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t attributes;
    CHECK(pthread_getattr_default_np(&attributes) == 0);
    CHECK(pthread_attr_getstacksize(&attributes, &stack_bytes_) == 0);
    pthread_attr_destroy(&attributes);
    SetStack(size_t{1} << 60);
  }
  ~NoThreads() { SetStack(stack_bytes_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  static void SetStack(size_t bytes) {
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, bytes) == 0);
    CHECK(pthread_setattr_default_np(&attributes) == 0);
    pthread_attr_destroy(&attributes);
  }

  size_t stack_bytes_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_TESTING_NO_THREADS_H_
