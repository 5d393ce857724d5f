// When rank 0 asks for a cut: by clock, by steps, on a wish, and never while one is being written.
// Cuts of a new best validation and of the end of training are not its concern; it only hears of
// them.
//
// Not thread-safe.

#ifndef SATRAP_NN_WORKER_RANK_CUT_SCHEDULE_H_
#define SATRAP_NN_WORKER_RANK_CUT_SCHEDULE_H_

#include <cstdint>

#include "nn_worker/rank/cut_plan.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class CutSchedule {
 public:
  // `step` is where training begins.
  CutSchedule(const CheckpointConfig& config, uint64_t step) : config_(config), last_step_(step) {}

  // From now on the clock counts.
  void Start(int64_t now_us) { last_begun_us_ = now_us; }

  // A wish may be repeated; of several the newest counts, but a wish to leave stays.
  void OnWish(const CutWish& wish);

  // Whether a cut is due after the next step. `step` steps are counted so far, and `counts` says
  // that the next one probably counts, too: a cut that is due by steps then comes in time.
  bool IsDue(uint64_t step, bool counts, int64_t now_us) const;

  // A cut begins, for whatever reason. Sets the plan's wish and leave.
  void OnBegun(int64_t now_us, CutPlan* plan);
  // Cut `number` has ended.
  void OnEnded(uint64_t number, const CutOutcome& outcome);

 private:
  const CheckpointConfig config_;
  uint64_t number_ = 0;  // of the cut that was begun last
  bool writing_ = false;
  uint64_t last_step_;
  int64_t last_begun_us_ = 0;
  double last_writing_seconds_ = 0;
  // Numbers of wishes; 0: none.
  uint64_t newest_wish_ = 0;
  uint64_t leave_wish_ = 0;
  uint64_t begun_wish_ = 0;
  uint64_t fulfilled_wish_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_CUT_SCHEDULE_H_
