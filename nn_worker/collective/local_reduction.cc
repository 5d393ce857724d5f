#include "nn_worker/collective/local_reduction.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/thread/mutex.h"
#include "nn_worker/device/kernel.h"

namespace satrap {
namespace {

// The state that the ranks share.
class Group {
 public:
  explicit Group(int size) : given_(size) {}

  // Returns when all ranks have given their values, or when a rank is lost.
  void Sum(int rank, float* values, int64_t count) {
    MutexLock lock(&mutex_);
    if (lost_ >= 0) return;
    given_[rank].assign(values, values + count);
    const int64_t round = round_;
    if (++arrived_ == static_cast<int>(given_.size())) {
      sums_ = given_[0];
      for (size_t r = 1; r < given_.size(); ++r) {
        CHECK(given_[r].size() == sums_.size())
            << "rank " << r << " adds " << given_[r].size() << " values, rank 0 " << sums_.size();
        for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += given_[r][i];
      }
      arrived_ = 0;
      ++round_;
      changed_.NotifyAll();
    }
    while (round_ == round && lost_ < 0) changed_.Wait(&mutex_);
    // `sums_` still holds this round's sums: it is replaced only when all ranks have joined the
    // next round, and this rank has not joined it yet.
    if (round_ != round) std::copy(sums_.begin(), sums_.end(), values);
  }

  void Lose(int rank) {
    MutexLock lock(&mutex_);
    if (lost_ < 0) lost_ = rank;
    changed_.NotifyAll();
  }

  absl::Status Peers() {
    MutexLock lock(&mutex_);
    if (lost_ < 0) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("rank ", lost_, " is lost"));
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::vector<float>> given_ GUARDED_BY(mutex_);  // by rank
  std::vector<float> sums_ GUARDED_BY(mutex_);                // of the last round
  int arrived_ GUARDED_BY(mutex_) = 0;                        // in this round
  int64_t round_ GUARDED_BY(mutex_) = 0;
  int lost_ GUARDED_BY(mutex_) = -1;  // the first rank that was lost; -1: none
};

// Only a HostDevice can follow a pointer to an object of the host.
SATRAP_KERNEL void SumKernel(Group* group, int rank, float* values, int64_t count) {
  group->Sum(rank, values, count);
}

class LocalReduction final : public DeviceReduction {
 public:
  LocalReduction(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~LocalReduction() override { Abort(absl::CancelledError("the reduction was destroyed")); }

  absl::Status AllReduceSum(DeviceStream* stream, float* values, int64_t count) override {
    RETURN_IF_ERROR(Poll());
    Launch<SumKernel>(stream, {1}, {1}, 0, group_.get(), rank_, values, count);
    return absl::OkStatus();
  }

  absl::Status Poll() override {
    MutexLock lock(&mutex_);
    if (failure_.ok()) failure_ = group_->Peers();
    return failure_;
  }

  void Abort(absl::Status status) override {
    CHECK(!status.ok());
    {
      MutexLock lock(&mutex_);
      if (failure_.ok()) failure_ = std::move(status);
    }
    group_->Lose(rank_);
  }

 private:
  const std::shared_ptr<Group> group_;
  const int rank_;
  Mutex mutex_;
  absl::Status failure_ GUARDED_BY(mutex_);
};

}  // namespace

std::vector<std::unique_ptr<DeviceReduction>> NewLocalReductions(int size) {
  CHECK(size >= 1) << size;
  const auto group = std::make_shared<Group>(size);
  std::vector<std::unique_ptr<DeviceReduction>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<LocalReduction>(group, rank));
  }
  return ranks;
}

}  // namespace satrap
