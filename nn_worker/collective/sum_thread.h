// Runs the sums of a Collective on a separate thread, one at a time, for implementations whose
// calls block. The first sum starts the thread.
//
// Thread-compatible. A PendingSum may be used by a thread other than the one that called Start.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_SUM_THREAD_H_
#define SATRAP_NN_WORKER_COLLECTIVE_SUM_THREAD_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn_worker/collective/collective.h"

namespace satrap {

class SumThread {
 public:
  using Sum = std::function<absl::Status(absl::Span<float>)>;

  // `sum` blocks until the sum has ended.
  explicit SumThread(Sum sum);
  // REQUIRES: every sum has ended
  ~SumThread();
  SumThread(const SumThread&) = delete;
  SumThread& operator=(const SumThread&) = delete;

  // REQUIRES: the last sum has ended
  std::unique_ptr<PendingSum> Start(absl::Span<float> values);

 private:
  class Pending;
  struct State;
  static void Run(State* state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

// A sum that has already ended with `status`. A collective of a single rank returns it.
std::unique_ptr<PendingSum> EndedSum(absl::Status status);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_SUM_THREAD_H_
