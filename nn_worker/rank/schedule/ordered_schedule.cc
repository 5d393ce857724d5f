#include "nn_worker/rank/schedule/ordered_schedule.h"

#include "common/base/check.h"

namespace satrap {

OrderedSchedule::OrderedSchedule(int lanes) : next_seqs_(lanes, 0), lanes_left_(lanes) {
  CHECK(lanes >= 1);
}

OrderedSchedule::OrderedSchedule(int lanes, const RunPosition& position) : OrderedSchedule(lanes) {
  if (position.lanes_size() == 0) return;
  CHECK(position.lanes_size() == lanes && position.lane_turn() < next_seqs_.size());
  for (int lane = 0; lane < lanes; ++lane) {
    const LanePosition& from = position.lanes(lane);
    next_seqs_[lane] = from.left() ? kLeft : from.next_seq();
    if (from.left()) --lanes_left_;
  }
  lane_ = position.lane_turn();
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
  if (lanes_left_ > 0) PassTurn();
}

void OrderedSchedule::PassTurn() {
  do {
    lane_ = (lane_ + 1) % next_seqs_.size();
  } while (next_seqs_[lane_] == kLeft);
}

void OrderedSchedule::FillPosition(RunPosition* position) const {
  position->clear_lanes();
  for (const uint64_t next_seq : next_seqs_) {
    LanePosition* lane = position->add_lanes();
    if (next_seq == kLeft) {
      lane->set_left(true);
    } else {
      lane->set_next_seq(next_seq);
    }
  }
  position->set_lane_turn(static_cast<uint32_t>(lane_));
}

}  // namespace satrap
