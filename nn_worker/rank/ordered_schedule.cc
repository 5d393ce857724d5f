#include "nn_worker/rank/ordered_schedule.h"

#include "common/base/check.h"

namespace satrap {

OrderedSchedule::OrderedSchedule(int lanes) : next_seqs_(lanes, 0), lanes_left_(lanes) {
  CHECK(lanes >= 1);
}

absl::optional<OrderedSchedule::Batch> OrderedSchedule::Next() const {
  if (lanes_left_ == 0) return absl::nullopt;
  return Batch{static_cast<uint32_t>(lane_), next_seqs_[lane_]};
}

void OrderedSchedule::Take(bool last_of_lane) {
  CHECK(lanes_left_ > 0);
  if (last_of_lane) {
    next_seqs_[lane_] = kLeft;
    --lanes_left_;
  } else {
    ++next_seqs_[lane_];
  }
  if (lanes_left_ == 0) return;
  do {
    lane_ = (lane_ + 1) % next_seqs_.size();
  } while (next_seqs_[lane_] == kLeft);
}

}  // namespace satrap
