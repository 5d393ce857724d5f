// A ReliableCall is one call that is repeated under one number, one attempt at a time, until it is
// answered. An AnswerWindow at the receiver makes sure that the call happens only once.
//
// What happens after an attempt:
//   - an answer {outcome: WAIT}: the next attempt follows, at once and without limit;
//   - an answer {outcome: RESEND}: the next attempt follows, at once, with the payload;
//   - UNAVAILABLE or DEADLINE_EXCEEDED: the next attempt follows, after a short pause, until the
//     peer has given no sign of life for silence_timeout_ms; then that error is the result;
//   - any other answer, including {outcome: OLD}, and any other error are the result.
//
// The payload. A receiver that has answered WAIT has the payload, so from the first WAIT on only
// the header is sent, however long the call takes. Before the first WAIT the payload goes with
// every attempt, because after a lost attempt it is unknown whether the receiver got it. Losses are
// rare, and usually the request is lost, so asking the receiver first would only add a round trip.
// A receiver that does not know the number (it was restarted) answers RESEND. INTERNAL is the
// result if it answers RESEND to an attempt that had the payload.
//
// Silence. WAIT and RESEND are signs of life. So is an attempt whose answer had begun to arrive
// when its deadline passed (AnswerHadBegun, rpc.h): the peer is alive but the transfer is slow, so
// the attempts that follow get twice the time. For an attempt that failed, a channel may also say
// how long before the attempt's end the peer gave a sign of life (sign_of_life.h). Silence then
// counts from that sign, and the attempts that follow get no more time. A large payload adds to an
// attempt's time as well (RpcTimeouts::TransferMs). Time in which this process itself was suspended
// (with its machine, or by a debugger) is not the peer's silence. Such time is noticed when an
// attempt takes longer than attempt_timeout_ms, or a pause takes longer than planned; the excess is
// not counted. So no single lost attempt ends a call, however much time its payload was given.
//
// The call uses only the executor and the channel, so it runs on a simulated clock as well as on a
// real one. The channel ends each attempt in time. If the channel reports one attempt twice, first
// as lost and then as answered, the answer counts while the call is open.
//
// Thread-safe.

#ifndef SATRAP_COMMON_RPC_RELIABLE_CALL_H_
#define SATRAP_COMMON_RPC_RELIABLE_CALL_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "common/thread/executor.h"
#include "common/thread/mutex.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {

class ReliableCall : public std::enable_shared_from_this<ReliableCall> {
 public:
  // Makes the request of each attempt: the same call under the same number, with the oldest open
  // number of that moment. Without `with_payload` it leaves the payload out and says so
  // (CallId.without_payload).
  using RequestMaker = std::function<Message(bool with_payload)>;

  // `done` runs once, on a thread of the executor or the channel, never inside Start or Cancel.
  // `executor` and `channel` are not owned and must outlive the call. The call keeps itself alive
  // from Start until `done` has run. REQUIRES: owned by a shared_ptr; the header of answers to
  // `method` has the same field 1 as CallOutcome (proto/hot.proto)
  ReliableCall(Executor* executor, Channel* channel, const Method& method,
               const RpcTimeouts& timeouts, RequestMaker make_request, Callback done);

  // Makes the first attempt before it returns. REQUIRES: called once
  void Start();

  // No further attempt begins, and `done` gets CANCELLED on the executor unless it has its result
  // already. The peer may or may not have seen the call. Idempotent.
  void Cancel();

 private:
  void MakeAttempt();
  void OnOutcome(int64_t attempt, absl::StatusOr<Message> outcome);
  // Records a lost attempt and returns whether the peer has been silent for too long.
  bool IsSilentAfter(const absl::Status& lost) REQUIRES(mutex_);
  // The time since `due_us`, beyond the usual lateness of timers, does not count as silence.
  void DiscountStandstill(int64_t due_us) REQUIRES(mutex_);
  absl::Status SilenceError(const absl::Status& last) const;
  void Repeat(bool at_once) REQUIRES(mutex_);
  void PostDone(Callback done, absl::StatusOr<Message> result);

  Executor* const executor_;
  Channel* const channel_;
  const Method method_;
  const RpcTimeouts timeouts_;
  const RequestMaker make_request_;

  Mutex mutex_;
  Callback done_ GUARDED_BY(mutex_);  // null once the call has its result
  bool starting_ GUARDED_BY(mutex_) = true;
  bool receiver_has_payload_ GUARDED_BY(mutex_) = false;
  bool attempt_has_payload_ GUARDED_BY(mutex_) = false;
  int64_t attempt_ GUARDED_BY(mutex_) = 0;         // the number of the current or next attempt
  int64_t attempt_timeout_ms_ GUARDED_BY(mutex_);  // without the payload's TransferMs
  // The time at which the pause before this attempt should end or, once the attempt has begun, the
  // time at which it will have taken RpcTimeouts::attempt_timeout_ms. Time from kUsualLatenessUs
  // after this point on does not count as the peer's silence.
  int64_t due_us_ GUARDED_BY(mutex_);
  int64_t last_sign_us_ GUARDED_BY(mutex_);
  int64_t pause_us_ GUARDED_BY(mutex_);
};

// The outcome that an answer's header states; DONE if it states none.
Outcome OutcomeOf(const Message& answer);

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_RELIABLE_CALL_H_
