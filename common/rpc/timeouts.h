// How long the two sides of a call wait. All waits are in one struct so that a simulation can
// shorten them.

#ifndef SATRAP_COMMON_RPC_TIMEOUTS_H_
#define SATRAP_COMMON_RPC_TIMEOUTS_H_

#include <cstddef>
#include <cstdint>

namespace satrap::rpc {

struct RpcTimeouts {
  // The sender makes another attempt when an attempt has had no answer for this long, plus the time
  // allowed for the attempt's payload (TransferMs). This must be longer than hold_ms, so that WAIT
  // arrives in time.
  int64_t attempt_timeout_ms = 10000;
  // The receiver answers WAIT to a call that is still running after this long.
  int64_t hold_ms = 5000;
  // The sender gives up on the peer after this long without a sign of life (reliable_call.h).
  int64_t silence_timeout_ms = 30000;

  // The time allowed for a payload, which is what it takes on the slowest network for which an
  // attempt is meant to succeed: 1 MiB/s.
  static constexpr int64_t TransferMs(size_t payload_bytes) {
    return static_cast<int64_t>(payload_bytes / 1024) * 1000 / 1024;
  }
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_TIMEOUTS_H_
