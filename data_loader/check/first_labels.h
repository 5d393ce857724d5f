// Checks the first labels that a loader reads in a run that begins from nothing, that is, without a
// cut. A record is bad if a task of the job refuses the label that it reads from the record. But
// suppose that the task expects the labels 0 and 1, but the data has -1 and 1, or 1 and 5. Then
// only the records with a 1 are good, and from these the model would learn "all positive". So a run
// with such labels ends at once.
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

  // Adds the labels of a record, one for each LABEL column; NaN means unknown. Ignores all records
  // after the first kRecords.
  void Add(const float* labels);
  // Whether kRecords records have been added.
  bool full() const { return full_.load(std::memory_order_relaxed); }

  // INVALID_ARGUMENT if the losses of a column refuse more than one label and more than 1 % of the
  // column's known labels. The message names the column, the values and what to do.
  absl::Status Check() const;
  // Like Check, but for use while fewer than kRecords have been added: fails as soon as so many
  // labels are refused that Check will fail whatever follows.
  absl::Status CheckSoFar() const;

 private:
  // The known labels of a column so far.
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
