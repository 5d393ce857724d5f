// The first labels that a loader reads for a run that begins from nothing. Labels that no loss of
// the job takes make bad records, but -1/1 and 1/5 have 1 in common with 0/1: half of such records
// would be good ones, and what they teach alone is "all positive". So such a run ends at once.
//
// Thread-safe.

#ifndef SATRAP_DATA_LOADER_CHECK_FIRST_LABELS_H_
#define SATRAP_DATA_LOADER_CHECK_FIRST_LABELS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/config/label_targets.h"
#include "common/thread/mutex.h"

namespace satrap {

class FirstLabels {
 public:
  static constexpr uint64_t kRecords = 1000;

  explicit FirstLabels(std::vector<LabelTargets> targets);

  // Takes the labels of a record, one for each LABEL column; NaN is unknown. What comes after
  // kRecords is not looked at.
  void Add(const float* labels);
  // Whether it has all records that it looks at.
  bool full() const { return full_.load(std::memory_order_relaxed); }

  // INVALID_ARGUMENT if more than 1 % of the known labels of a column, and more than one, are none
  // that its losses take: the message names the column, the values and what to do.
  absl::Status Check() const;
  // As Check, while more of the kRecords may come: an error as soon as so many labels are refused
  // that Check will fail whatever follows.
  absl::Status CheckSoFar() const;

 private:
  // The known labels of a column.
  struct Seen {
    uint64_t labels = 0;
    uint64_t refused = 0;
    std::map<float, uint64_t> values{};  // at most kRecords
  };
  static absl::Status CheckColumn(const LabelTargets& targets, const Seen& seen);
  static std::string ValuesText(const Seen& seen);
  static std::string Cure(const LabelTargets& targets, const Seen& seen);

  const std::vector<LabelTargets> targets_;
  std::atomic<bool> full_{false};
  mutable Mutex mutex_;
  uint64_t records_ GUARDED_BY(mutex_) = 0;
  std::vector<Seen> seen_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_CHECK_FIRST_LABELS_H_
