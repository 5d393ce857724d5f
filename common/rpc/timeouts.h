// How long the parties of a call wait. One struct, so that a simulation can shorten all of them.

#ifndef SATRAP_COMMON_RPC_TIMEOUTS_H_
#define SATRAP_COMMON_RPC_TIMEOUTS_H_

#include <cstdint>

namespace satrap::rpc {

struct RpcTimeouts {
  // The sender makes another attempt when one has had no answer for so long. Longer than hold_ms:
  // a held call is answered WAIT in time.
  int64_t attempt_timeout_ms = 10000;
  // The receiver answers a call that is still running WAIT after so long.
  int64_t hold_ms = 5000;
  // The sender gives the peer up when no attempt has had an answer for so long. WAIT is an answer.
  int64_t silence_timeout_ms = 30000;
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_TIMEOUTS_H_
