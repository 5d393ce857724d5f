// If JobConfig.gradient_clip_norm is set, an embedding PS answers an Update with the squares of its
// rows' gradients in the step (UpdateAnswerHeader in proto/hot.proto). Their sum is sent exactly,
// so the embedding worker's total has the same bits for any number of PSs.

#ifndef SATRAP_COMMON_RPC_SQUARES_H_
#define SATRAP_COMMON_RPC_SQUARES_H_

#include "absl/status/status.h"
#include "common/numeric/exact_sum.h"
#include "common/rpc/rpc.h"

namespace satrap::rpc {

Message AnswerOfSquares(const ExactSum& squares);

// Adds the squares in `answer` to *total. INVALID_ARGUMENT if the answer has none.
absl::Status AddSquares(const Message& answer, ExactSum* total);

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_SQUARES_H_
