// A reliable call is one call that is repeated under one number, one attempt at a time, until it is
// answered. With an AnswerWindow at the receiver it happens once.
//
// What an attempt's outcome does:
//   - an answer {outcome: WAIT}: the next attempt, at once and without limit;
//   - UNAVAILABLE or DEADLINE_EXCEEDED: the next attempt, after a short pause, until the peer has
//     given no sign of life for silence_timeout_ms; then that error is the result;
//   - any other answer, {outcome: OLD} among them, and any other error: it is the result.
//
// Only the executor and the channel are used, so it runs on a simulated clock as on a real one.
// That attempts end in time is the channel's promise. If a channel reports an attempt after it made
// the next one, an answer still counts while the call is open; the first one is the result.
//
// Thread-safe.

#ifndef SATRAP_COMMON_RPC_RELIABLE_CALL_H_
#define SATRAP_COMMON_RPC_RELIABLE_CALL_H_

#include <functional>
#include <memory>

#include "common/executor.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {

// Ends an open call from outside.
class CallHandle {
 public:
  virtual ~CallHandle() = default;

  // No further attempt begins, and `done` gets CANCELLED on the executor unless it has its result
  // already. The peer may or may not have seen the call. Idempotent.
  virtual void Cancel() = 0;
};

// Makes the request of each attempt: the same call under the same number, with the oldest open
// number of that moment.
using RequestMaker = std::function<Message()>;

// Makes the first attempt, inside this call, and sees to the others. `done` runs once, on a thread
// of the executor or the channel, never inside this call. The call keeps itself alive until then:
// the handle may be dropped. `executor` and `channel` are not owned and must outlive the call.
// REQUIRES: the header of answers to `method` has field 1 as in CallOutcome (proto/hot.proto)
std::shared_ptr<CallHandle> StartReliableCall(Executor* executor, Channel* channel,
                                              const Method& method, const RpcTimeouts& timeouts,
                                              RequestMaker make_request, Callback done);

// The outcome that an answer's header states; DONE if it states none.
Outcome OutcomeOf(const Message& answer);

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_RELIABLE_CALL_H_
