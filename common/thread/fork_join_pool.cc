#include "common/thread/fork_join_pool.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/base/optimization.h"
#include "common/base/check.h"
#include "common/numeric/denormals.h"
#include "common/thread/mutex.h"

namespace satrap {
namespace {

// A helper spins this many times, about 5 us, before it sleeps.
constexpr int kSpins = 200;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// Each Run increments `generation`. A helper enters a Run by incrementing `inside` under the mutex,
// claims parts from `next` without the mutex, and leaves by decrementing `inside`. The caller ends
// a Run by clearing `open` and waiting for `inside` to become 0, so no helper ever calls a function
// that no longer exists.
struct ForkJoinPool::Rep {
  explicit Rep(int threads) : num_threads(threads) {}

  void Work(absl::FunctionRef<void(int64_t, int)> part, int thread) {
    for (;;) {
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= parts) return;
      part(i, thread);
    }
  }

  void HelperLoop(int thread) {
    SetFlushToZero();
    int64_t seen = 0;
    for (;;) {
      for (int i = 0; i < kSpins && generation.load(std::memory_order_acquire) == seen; ++i) {
        Pause();
      }
      // The loop above only saves a helper from going to sleep. What the helper does is decided
      // here, under the mutex. A helper that has missed a whole Run finds open == nullptr and waits
      // for the next Run.
      absl::FunctionRef<void(int64_t, int)>* job = nullptr;
      {
        MutexLock lock(&mutex);
        while (!stop && generation.load(std::memory_order_relaxed) == seen) wake.Wait(&mutex);
        if (stop) return;
        seen = generation.load(std::memory_order_relaxed);
        job = open;
        if (job != nullptr) ++inside;
      }
      if (job == nullptr) continue;
      Work(*job, thread);
      MutexLock lock(&mutex);
      if (--inside == 0) done.NotifyOne();
    }
  }

  const int num_threads;
  std::vector<std::thread> helpers;
  std::atomic<int64_t> generation{0};
  alignas(64) std::atomic<int64_t> next{0};
  int64_t parts = 0;  // written while no helper is inside

  Mutex mutex;
  CondVar wake;
  CondVar done;
  absl::FunctionRef<void(int64_t, int)>* open GUARDED_BY(mutex) = nullptr;
  int inside GUARDED_BY(mutex) = 0;
  bool stop GUARDED_BY(mutex) = false;
};

ForkJoinPool::ForkJoinPool(int num_threads) : rep_(new Rep(num_threads)) {
  CHECK(num_threads >= 1);
  for (int thread = 1; thread < num_threads; ++thread) {
    rep_->helpers.emplace_back([this, thread] { rep_->HelperLoop(thread); });
  }
}

ForkJoinPool::~ForkJoinPool() {
  {
    MutexLock lock(&rep_->mutex);
    rep_->stop = true;
    rep_->generation.fetch_add(1, std::memory_order_release);
    rep_->wake.NotifyAll();
  }
  for (std::thread& helper : rep_->helpers) helper.join();
}

int ForkJoinPool::num_threads() const { return rep_->num_threads; }

void ForkJoinPool::Run(int64_t parts, absl::FunctionRef<void(int64_t part, int thread)> part) {
  // The caller runs parts, too, so it must round as the helpers do, whatever its own mode is.
  const ScopedFlushToZero flush_to_zero;
  if (parts <= 1 || rep_->num_threads == 1) {
    for (int64_t i = 0; i < parts; ++i) part(i, 0);
    return;
  }
  {
    MutexLock lock(&rep_->mutex);
    rep_->parts = parts;
    rep_->next.store(0, std::memory_order_relaxed);
    rep_->open = &part;
    rep_->generation.fetch_add(1, std::memory_order_release);
    rep_->wake.NotifyAll();
  }
  // When Work returns, every part has been claimed, but helpers may still be running theirs. Once
  // `open` is null, no more helpers enter.
  rep_->Work(part, 0);
  MutexLock lock(&rep_->mutex);
  rep_->open = nullptr;
  while (rep_->inside > 0) rep_->done.Wait(&rep_->mutex);
}

}  // namespace satrap
