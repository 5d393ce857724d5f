// The order of batches in one epoch of an ordered stream. Every rank computes this order by itself,
// with the same result.
//
// Lanes take turns: lane 0, 1, ... each gives its next batch. A lane leaves the rotation when its
// last batch is taken; the epoch ends when all lanes have left. Every lane has at least one batch,
// and each batch says whether it is the last of its lane. So a rank requests only batches that
// exist, and it knows the next batch as soon as it has taken the current one.
//
// Example, lanes of 3, 1 and 2 batches: 0.0 1.0 2.0 0.1 2.1 0.2.
//
// Not thread-safe.

#ifndef SATRAP_NN_WORKER_RANK_SCHEDULE_ORDERED_SCHEDULE_H_
#define SATRAP_NN_WORKER_RANK_SCHEDULE_ORDERED_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "proto/position.pb.h"

namespace satrap {

class OrderedSchedule {
 public:
  struct Batch {
    uint32_t lane;
    uint64_t seq;
  };

  // Begins an epoch. REQUIRES: lanes >= 1
  explicit OrderedSchedule(int lanes);
  // Continues from the lanes of `position`; if it has none, begins an epoch. REQUIRES: `position`
  // has no lanes, or it has `lanes` lanes and a lane_turn below `lanes`
  OrderedSchedule(int lanes, const RunPosition& position);

  // The batch whose turn it is; nothing at the end of the epoch.
  absl::optional<Batch> Next() const;

  // Takes the batch that Next() returns. `last_of_lane` comes with the batch. REQUIRES: not at the
  // end
  void Take(bool last_of_lane);

  // Sets the lanes and whose turn it is.
  void FillPosition(RunPosition* position) const;

 private:
  static constexpr uint64_t kLeft = ~uint64_t{0};

  void PassTurn();

  std::vector<uint64_t> next_seqs_;  // by lane; kLeft: it left the rotation
  int lanes_left_;
  size_t lane_ = 0;  // whose turn it is
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_SCHEDULE_ORDERED_SCHEDULE_H_
