// The flag that an NN worker has beside those of every role (common/role/role_flags.h):
//
//   nn_worker_cuda --card=1 ...     the card of this machine that it trains on; default: 0
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_NN_WORKER_CARD_FLAG_H_
#define SATRAP_NN_WORKER_CARD_FLAG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace satrap {

// Removes `--card=N` from `*args` and returns N; 0 without it. INVALID_ARGUMENT if it is no number from
// 0 on, or given twice.
absl::StatusOr<int> TakeCardFlag(std::vector<std::string>* args);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CARD_FLAG_H_
