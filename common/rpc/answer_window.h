// An AnswerWindow receives the calls that one sender makes by one method on one stream. It runs
// each call exactly once, however often the network repeats, delays and reorders its attempts
// (docs/consistency.md).
//
// The sender numbers its calls from 1. Each attempt carries the oldest number that is still open at
// the sender (call_numbers.h). The window keeps the answers from the largest such number on. What
// happens to an attempt depends on its number:
//   - a number that was never seen runs;
//   - a number that was never seen, but comes without its payload, is answered {outcome: RESEND}
//     and leaves no trace, so that the next attempt, with the payload, runs;
//   - a repeat of a running call gets the answer when the call has finished;
//   - a repeat of an answered call gets the kept answer;
//   - a number below the oldest open one is answered {outcome: OLD} and does nothing.
// An attempt that has waited hold_us is answered {outcome: WAIT}. This is not the answer of the
// call: the call keeps running, and the sender repeats it, from then on without its payload.
//
//   if (window->Admit(number, oldest_open, std::move(respond)) == Admission::kHandled) return;
//   ...do the work, now or later, then:
//   window->Finish(number, answer);
//
// Answers are kept from the sender's oldest open call to its newest one, so a sender limits that
// distance. With kUntilDelivered, a window keeps an answer only until an attempt takes it, and runs
// a later repeat again. This is for calls that change nothing and have large answers: with
// kUntilClosed, one open call would keep the answers of all later calls in memory. Errors are kept
// and returned like other answers.
//
// Thread-safe. Responders are called outside the lock, by the thread that calls Admit or Finish, or
// on the executor when an attempt has waited hold_us.

#ifndef SATRAP_COMMON_RPC_ANSWER_WINDOW_H_
#define SATRAP_COMMON_RPC_ANSWER_WINDOW_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/rpc/rpc.h"
#include "common/thread/executor.h"
#include "common/thread/mutex.h"

namespace satrap::rpc {

enum class Admission {
  kRun,      // the caller runs the call and calls Finish once
  kHandled,  // there is nothing to do
};

// How long a window keeps the answer of a call.
enum class Keeping {
  kUntilClosed,     // until the sender has closed the number: the call runs once
  kUntilDelivered,  // until it was given to an attempt: a repeat after that runs the call again
};

class AnswerWindow {
 public:
  // `executor` is not owned and must outlive the window. Destroying the window destroys the
  // responders of running calls without calling them.
  AnswerWindow(Executor* executor, int64_t hold_us, Keeping keeping = Keeping::kUntilClosed);
  ~AnswerWindow();
  AnswerWindow(const AnswerWindow&) = delete;
  AnswerWindow& operator=(const AnswerWindow&) = delete;

  // Call this when one attempt of call `number` has arrived. `respond` is called once: now, at
  // Finish, or after hold_us. Number 0, which CallNumbers never assigns, is answered
  // INVALID_ARGUMENT. `without_payload`: the sender believes that an earlier attempt has brought
  // the payload.
  Admission Admit(uint64_t number, uint64_t oldest_open, Callback respond,
                  bool without_payload = false);

  // Gives the answer of a call that was admitted to run. It goes to all attempts that wait for it
  // and is kept as `keeping` says, unless the sender has closed the number. REQUIRES: once for each
  // kRun
  void Finish(uint64_t number, absl::StatusOr<Message> answer);

  // The number of kept answers, and the number of running calls.
  size_t num_kept() const;
  size_t num_running() const;

 private:
  struct Rep;
  const std::shared_ptr<Rep> rep_;  // shared with the executor's timers
};

// The windows of one method: one for each (sender, stream), made on first use. The caller limits
// the number of senders (call_receiver.h).
//
// Thread-safe.
class AnswerWindows {
 public:
  // The arguments are those of AnswerWindow.
  AnswerWindows(Executor* executor, int64_t hold_us, Keeping keeping = Keeping::kUntilClosed);

  // Never null. The window lives as long as this object.
  AnswerWindow* Get(uint32_t sender, int stream);

 private:
  Executor* const executor_;
  const int64_t hold_us_;
  const Keeping keeping_;
  Mutex mutex_;
  absl::flat_hash_map<std::pair<uint32_t, int>, std::unique_ptr<AnswerWindow>> windows_
      GUARDED_BY(mutex_);
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_ANSWER_WINDOW_H_
