// What the engines that receive numbered calls share: the options of their CallReceivers, and the
// answer that says only that a call is done.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_RPC_RECEIVERS_H_
#define SATRAP_COMMON_RPC_RECEIVERS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "common/rpc/answer_window.h"
#include "common/rpc/call_receiver.h"
#include "common/rpc/header.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {

// Options of a receiver of the process `name` ("embedding_ps 3") in the run of `envelope`, for
// calls of the senders 0 .. num_senders - 1.
inline CallReceiver::Options ReceiverOptions(std::string name, const Envelope& envelope,
                                             int num_senders, const RpcTimeouts& timeouts,
                                             Keeping keeping = Keeping::kUntilClosed) {
  return {std::move(name), envelope, static_cast<uint32_t>(num_senders), timeouts.hold_ms * 1000,
          keeping};
}

// An Answer that has only the outcome DONE.
template <typename Answer>
Message Done() {
  Answer answer;
  answer.set_outcome(OUTCOME_DONE);
  return MessageOf(answer);
}

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_RECEIVERS_H_
