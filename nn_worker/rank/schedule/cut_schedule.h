// Decides when rank 0 asks for a cut: by clock, by steps or on a wish, but never while a cut is
// being written. Cuts of a new best validation and of the end of training are decided elsewhere;
// OnBegun and OnEnded report them here.
//
// Not thread-safe.

#ifndef SATRAP_NN_WORKER_RANK_SCHEDULE_CUT_SCHEDULE_H_
#define SATRAP_NN_WORKER_RANK_SCHEDULE_CUT_SCHEDULE_H_

#include <cstdint>

#include "nn_worker/rank/schedule/cut_plan.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class CutSchedule {
 public:
  // Training begins at step `step`.
  CutSchedule(const CheckpointConfig& config, uint64_t step) : config_(config), last_step_(step) {}

  // Starts the clock.
  void Start(int64_t now_us) { last_begun_us_ = now_us; }

  // A wish may be repeated. The newest one counts, but an earlier wish to leave is not cancelled by
  // a later wish.
  void OnWish(const CutWish& wish);

  // Whether a cut is due after the next step. `step` is the number of steps counted so far, and
  // `counts` says whether the next step will probably count, too. If so, the next step is one of
  // those after which a cut by steps can be due.
  bool IsDue(uint64_t step, bool counts, int64_t now_us) const;

  // Call when a cut begins, for whatever reason. Sets the plan's wish and leave.
  void OnBegun(int64_t now_us, CutPlan* plan);
  // Cut `number` has ended.
  void OnEnded(uint64_t number, const CutOutcome& outcome);

 private:
  const CheckpointConfig config_;
  uint64_t number_ = 0;  // of the last cut that was begun
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

#endif  // SATRAP_NN_WORKER_RANK_SCHEDULE_CUT_SCHEDULE_H_
