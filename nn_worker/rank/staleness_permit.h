// A StalenessPermit is the right to hold one part from its request to the answer to its push.
//
// A rank has `capacity` permits. While n are in use, n parts are in flight, and the Lookup for the
// newest of them can miss only the pushes of the n - 1 others. So the number of permits limits the
// staleness. A permit returns when it is destroyed. The capacity may grow, so that a run begins
// without staleness and allows it later.
//
// The pool outlives its permits. Not thread-safe: pool and permits live on one serial executor.

#ifndef SATRAP_NN_WORKER_RANK_STALENESS_PERMIT_H_
#define SATRAP_NN_WORKER_RANK_STALENESS_PERMIT_H_

#include <utility>

#include "absl/types/optional.h"
#include "common/base/check.h"

namespace satrap {

class StalenessPermits;

class StalenessPermit {
 public:
  StalenessPermit(StalenessPermit&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
  StalenessPermit& operator=(StalenessPermit&& other) noexcept {
    if (this != &other) {
      GiveBack();
      pool_ = std::exchange(other.pool_, nullptr);
    }
    return *this;
  }
  ~StalenessPermit() { GiveBack(); }

 private:
  friend class StalenessPermits;
  explicit StalenessPermit(StalenessPermits* pool) : pool_(pool) {}
  inline void GiveBack();

  StalenessPermits* pool_;  // null: moved from
};

class StalenessPermits {
 public:
  // REQUIRES: capacity >= 1
  explicit StalenessPermits(int capacity) : capacity_(capacity) { CHECK(capacity >= 1); }
  ~StalenessPermits() { CHECK(in_use_ == 0) << in_use_ << " permits outlive their pool"; }
  StalenessPermits(const StalenessPermits&) = delete;
  StalenessPermits& operator=(const StalenessPermits&) = delete;

  // Returns nothing if all permits are in use.
  absl::optional<StalenessPermit> TryTake() {
    if (in_use_ == capacity_) return absl::nullopt;
    ++in_use_;
    return StalenessPermit(this);
  }

  // REQUIRES: capacity >= capacity()
  void Grow(int capacity) {
    CHECK(capacity >= capacity_) << capacity_ << " permits cannot become " << capacity;
    capacity_ = capacity;
  }

  int capacity() const { return capacity_; }
  int in_use() const { return in_use_; }

 private:
  friend class StalenessPermit;
  int capacity_;
  int in_use_ = 0;
};

inline void StalenessPermit::GiveBack() {
  if (pool_ == nullptr) return;
  --pool_->in_use_;
  pool_ = nullptr;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_STALENESS_PERMIT_H_
