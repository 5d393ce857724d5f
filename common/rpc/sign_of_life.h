// A mark on the error of a failed attempt. It tells a ReliableCall that the peer was alive during
// the attempt. Channels whose attempts consist of several exchanges set it
// (common/chunk/chunked_channel.h). The mark of MarkAnswerBegun (rpc.h) says in addition that the
// attempt needs more time. If an error has both marks, the mark of this file says when the peer
// gave its last sign.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_RPC_SIGN_OF_LIFE_H_
#define SATRAP_COMMON_RPC_SIGN_OF_LIFE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/optional.h"

namespace satrap::rpc {

// Returns `lost`, the error of an attempt, with the mark: the peer gave its last sign of life
// `ago_us` microseconds before the attempt ended. REQUIRES: `lost` is not OK; ago_us >= 0
absl::Status MarkSignOfLife(absl::Status lost, int64_t ago_us);
// The microseconds that the mark states; nullopt if there is no mark.
absl::optional<int64_t> SignOfLifeAgoUs(const absl::Status& status);

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_SIGN_OF_LIFE_H_
