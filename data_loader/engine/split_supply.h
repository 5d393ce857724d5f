// A SplitSupply decides which split a loader reads next. Implementations: StaticSplits below, for
// streams whose splits are assigned in advance, and SplitLeaseClient (split_lease_client.h).

#ifndef SATRAP_DATA_LOADER_ENGINE_SPLIT_SUPPLY_H_
#define SATRAP_DATA_LOADER_ENGINE_SPLIT_SUPPLY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/thread/mutex.h"

namespace satrap {

class SplitSupply {
 public:
  virtual ~SplitSupply() = default;

  using Callback = absl::AnyInvocable<void(absl::StatusOr<absl::optional<uint32_t>>)>;

  // Gives `done` the next split of `epoch`, or none if no split is left. `done` runs once, on any
  // thread, perhaps before NextSplit returns. Thread-safe. REQUIRES: epochs never decrease
  virtual void NextSplit(uint32_t epoch, Callback done) = 0;
};

// Supplies the splits first, first + step, ... below num_splits, in every epoch.
class StaticSplits final : public SplitSupply {
 public:
  // REQUIRES: step >= 1
  StaticSplits(uint32_t first, uint32_t step, uint32_t num_splits)
      : first_(first), step_(step), num_splits_(num_splits), next_(first) {}

  void NextSplit(uint32_t epoch, Callback done) override {
    absl::optional<uint32_t> split;
    {
      MutexLock lock(&mutex_);
      if (epoch != epoch_) next_ = first_;  // every epoch reads the same splits
      epoch_ = epoch;
      if (next_ < num_splits_) {
        split = static_cast<uint32_t>(next_);
        next_ += step_;
      }
    }
    done(split);
  }

 private:
  const uint64_t first_;
  const uint64_t step_;
  const uint64_t num_splits_;
  Mutex mutex_;
  uint32_t epoch_ GUARDED_BY(mutex_) = 0;  // the epoch of the last call
  uint64_t next_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_ENGINE_SPLIT_SUPPLY_H_
