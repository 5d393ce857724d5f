// Leases the splits of each train epoch to loaders, in unordered runs. The splits of an epoch are
// handed out in order, each once, to the loader that asks next. Splits that were completely
// consumed according to the ledger of the generation's cut are left out. Repeated calls do not get
// here, because the engine's AnswerWindow answers them.
//
// Not thread-safe: the lock of the coordinator's engine guards it.

#ifndef SATRAP_DEPLOY_COORDINATOR_SPLITS_SPLIT_LEASES_H_
#define SATRAP_DEPLOY_COORDINATOR_SPLITS_SPLIT_LEASES_H_

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/ledger/ledger.h"

namespace satrap {

class SplitLeases {
 public:
  SplitLeases() = default;
  explicit SplitLeases(Ledger consumed) : consumed_(std::move(consumed)) {}

  // Returns the next split of `epoch`, or nullopt if none is left. `num_splits` is the caller's
  // number of splits. If the epoch's first caller gave another number, returns INVALID_ARGUMENT and
  // leases no split.
  absl::StatusOr<absl::optional<uint32_t>> Lease(uint32_t epoch, uint32_t num_splits);

 private:
  struct Epoch {
    uint32_t num_splits;
    uint32_t next_split;
  };
  const Ledger consumed_;
  absl::flat_hash_map<uint32_t, Epoch> epochs_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_SPLITS_SPLIT_LEASES_H_
