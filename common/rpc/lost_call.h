// Tells whether the error of a call leaves open whether the peer has received the call. If so, the
// caller may repeat the call. Every layer that repeats calls decides by this function.
//
// Thread-safe: a function of its argument.

#ifndef SATRAP_COMMON_RPC_LOST_CALL_H_
#define SATRAP_COMMON_RPC_LOST_CALL_H_

#include "absl/status/status.h"

namespace satrap::rpc {

// UNAVAILABLE and DEADLINE_EXCEEDED, which Channel::Call (rpc.h) returns if no answer has come.
// Errors of files never have these codes (common/file/file_error.h).
inline bool IsLost(const absl::Status& error) {
  return absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error);
}

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_LOST_CALL_H_
