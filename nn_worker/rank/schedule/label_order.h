// Decides whether the label rate moves with the position of records. In a file sorted by time, for
// example, the rate moves, and a shuffle within each part of the file does not change the order of
// the parts. A model that is trained in such an order ends up fitted to the labels of the last
// records.
//
// The records of epoch 0 are counted in the order in which they were trained, in at most
// kMostWindows windows of equally many steps. When all windows are full, each pair of neighbours
// is merged, so memory is constant. The rate moves if both of these conditions hold, where p is the
// rate over all N records and chi-square is computed from K windows:
//
//   chi-square - (K - 1) > kDeviations sqrt(2 (K - 1))    the difference is not chance
//   (chi-square - (K - 1)) / N > kShare                   and it is not small
//
// The left side of the second condition is the variance between windows, less noise, divided by
// p (1 - p).
//
// Real logs of any size meet the first condition, because their rate always varies a little. But
// the left side of the second condition stays a factor of seven below kShare for them, while a log
// sorted by time exceeds kShare by a factor of two.
//
// Not thread-safe.

#ifndef SATRAP_NN_WORKER_RANK_SCHEDULE_LABEL_ORDER_H_
#define SATRAP_NN_WORKER_RANK_SCHEDULE_LABEL_ORDER_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "proto/control.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class LabelOrder {
 public:
  static constexpr int kMostWindows = 100;  // no verdict with fewer than half as many
  static constexpr double kDeviations = 8;
  static constexpr double kShare = .003;

  // Continues from the state that a cut holds.
  explicit LabelOrder(const LabelWindows& state = LabelWindows()) : state_(state) {}

  // Adds a step of epoch 0 with `samples` records, whose labels are from 0 to 1 and add up to
  // `positives`.
  void AddStep(uint64_t samples, double positives);

  // Absent if the rate does not move, or there are too few steps to know.
  absl::optional<MovingLabelRate> FindMovingRate() const;
  // The label rate of all records. Absent if there are none.
  absl::optional<double> Rate() const;

  const LabelWindows& state() const { return state_; }

 private:
  LabelWindows state_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_SCHEDULE_LABEL_ORDER_H_
