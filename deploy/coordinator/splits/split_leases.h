// The splits of each train epoch that have been leased, in unordered runs. The splits of an epoch
// are dealt in order, each once, to whichever loader asks next. Splits that were consumed whole
// according to the ledger of the generation's cut are left out. Repeated calls do not get here: the
// engine's AnswerWindow answers them.
//
// Not thread-safe: the coordinator's engine locks.

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

  // Returns the next split of `epoch`, or nothing if none is left. INVALID_ARGUMENT, and nothing is
  // dealt, if `num_splits`, the caller's count, differs from that of the epoch's first caller.
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
