// The latest data time of the applied Updates: how far training has come in the data.
//
// Thread-safe.

#ifndef SATRAP_EMBEDDING_PS_LATEST_TIME_H_
#define SATRAP_EMBEDDING_PS_LATEST_TIME_H_

#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/types/optional.h"

namespace satrap {

class LatestTime {
 public:
  // An Update without a time, or with an earlier time, changes nothing.
  void Add(absl::optional<int64_t> ms) {
    int64_t latest = ms_.load(std::memory_order_relaxed);
    while (ms.has_value() && *ms > latest && !ms_.compare_exchange_weak(latest, *ms)) {
    }
  }

  // nullopt if no Update had a time.
  absl::optional<int64_t> Get() const {
    const int64_t latest = ms_.load(std::memory_order_relaxed);
    if (latest == kNone) return absl::nullopt;
    return latest;
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

  std::atomic<int64_t> ms_{kNone};
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_LATEST_TIME_H_
