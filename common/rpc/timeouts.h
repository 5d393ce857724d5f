// How long the parties of a call wait. One struct, so that a simulation can shorten all of them.

#ifndef SATRAP_COMMON_RPC_TIMEOUTS_H_
#define SATRAP_COMMON_RPC_TIMEOUTS_H_

#include <cstddef>
#include <cstdint>

namespace satrap::rpc {

struct RpcTimeouts {
  // The sender makes another attempt when one has had no answer for this long, plus the time that
  // its payload may take (TransferMs). Longer than hold_ms: a held call is answered WAIT in time.
  int64_t attempt_timeout_ms = 10000;
  // The receiver answers WAIT to a call that is still running after this long.
  int64_t hold_ms = 5000;
  // The sender gives the peer up when it has had no sign of life for this long (reliable_call.h).
  int64_t silence_timeout_ms = 30000;

  // The time that a payload may take on the slowest network for which an attempt is meant to
  // succeed: 1 MiB/s.
  static constexpr int64_t TransferMs(size_t payload_bytes) {
    return static_cast<int64_t>(payload_bytes / 1024) * 1000 / 1024;
  }
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_TIMEOUTS_H_
