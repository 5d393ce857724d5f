// Whether the label rate moves with the position of records: a file in the order of time, say, of
// which a shuffle over a part of it leaves the order of the parts. The model then ends with the
// labels of the last records.
//
// The records of epoch 0 are counted in the order in which they were trained, in at most
// kMostWindows windows of equally many steps. When there are as many, two neighbours become one, so
// memory is constant. The rate moves if both hold, with p the rate of all N records and chi-square
// that of K windows:
//
//   chi-square - (K - 1) > kDeviations sqrt(2 (K - 1))    it is not chance
//   (chi-square - (K - 1)) / N > kShare                   nor is it small
//
// The latter is the variance between windows, noise taken off, divided by p (1 - p).
//
// Real logs of any size fail the first, because nothing in them is quite even; but they stay a
// factor of seven under the second, and a log in the order of time a factor of two above it.
//
// Not thread-safe.

#ifndef SATRAP_NN_WORKER_RANK_LABEL_ORDER_H_
#define SATRAP_NN_WORKER_RANK_LABEL_ORDER_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "proto/control.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class LabelOrder {
 public:
  static constexpr int kMostWindows = 100;  // and the fewest that are judged are half as many
  static constexpr double kDeviations = 8;
  static constexpr double kShare = .003;

  // Goes on from the state of a cut.
  explicit LabelOrder(const LabelWindows& state = LabelWindows()) : state_(state) {}

  // A step of epoch 0 had so many records with labels from 0 to 1, which add up to `positives`.
  void AddStep(uint64_t samples, double positives);

  // Absent if the rate does not move, or there are too few steps to know.
  absl::optional<MovingLabelRate> Judge() const;
  // Of all records. Absent without any.
  absl::optional<double> Rate() const;

  const LabelWindows& state() const { return state_; }

 private:
  LabelWindows state_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_LABEL_ORDER_H_
