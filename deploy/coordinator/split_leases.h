// Which splits of which train epoch have been dealt, in unordered runs: those of an epoch are dealt
// in order, each once, to whoever asks. That a repeated call does not take a second split is its
// AnswerWindow's business.
//
// Not thread-safe: the coordinator's engine locks.

#ifndef SATRAP_DEPLOY_COORDINATOR_SPLIT_LEASES_H_
#define SATRAP_DEPLOY_COORDINATOR_SPLIT_LEASES_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace satrap {

class SplitLeases {
 public:
  // The next split of `epoch`, nothing if none is left. INVALID_ARGUMENT, with nothing dealt, if
  // `num_splits`, as this loader counts them, is not what the epoch's first caller counted.
  absl::StatusOr<absl::optional<uint32_t>> Lease(uint32_t epoch, uint32_t num_splits);

 private:
  struct Epoch {
    uint32_t num_splits;
    uint32_t next_split;
  };
  absl::flat_hash_map<uint32_t, Epoch> epochs_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_SPLIT_LEASES_H_
