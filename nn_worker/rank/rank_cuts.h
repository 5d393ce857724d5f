// What a rank does for cuts (docs/consistency.md, "Cuts"). This object records what the rank has
// released since the last cut, and numbers and plans the next cut. If ranks must wait for a cut,
// this object waits until the cut has ended, and begins it again if it was abandoned. On rank 0
// this object also knows when a cut is due (cut_schedule.h).
//
// All ranks take the same cuts in the same order, so all ranks give a cut the same number and know
// its name. Rank 0's plan says whether the ranks wait for the cut, and whether they leave with it,
// that is, do nothing more after it.
//
// Used on one serial executor. Owns nothing: everything passed in must outlive this object, and
// this object must outlive the callbacks of the trainer.

#ifndef SATRAP_NN_WORKER_RANK_RANK_CUTS_H_
#define SATRAP_NN_WORKER_RANK_RANK_CUTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/thread/executor.h"
#include "nn_worker/rank/failure_latch.h"
#include "nn_worker/rank/rank_observer.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/schedule/cut_schedule.h"
#include "nn_worker/rank/step_trainer.h"

namespace satrap {

class RankCuts {
 public:
  // The functions of the rank that its cuts call.
  struct Engine {
    // The position where training continues after cut `cut`.
    std::function<RunPosition(const std::string& cut)> position;
    std::function<void(absl::string_view)> set_phase;
    // Called when a cut has been taken; if ranks wait for the cut, only when it has been committed.
    // Not called after a cut with which the ranks leave.
    std::function<void()> go_on;
  };
  using Provenance = google::protobuf::RepeatedPtrField<ProvenanceRange>;

  RankCuts(const RankOptions& options, Executor* executor, StepTrainer* trainer,
           RankObserver* observer, FailureLatch* failure, Engine engine);

  // For rank 0. Start starts the clock; IsDue returns whether a cut is due after the next step.
  void Start() { schedule_.Start(executor_->NowUs()); }
  void OnWish(const CutWish& wish) { schedule_.OnWish(wish); }
  bool IsDue(uint64_t step, bool counts) const;

  // Records that the ranges of a part are consumed, whether or not the part's step counted: no
  // later generation may train these records. DATA_LOSS if they were consumed already.
  absl::Status AddReleased(uint32_t epoch, const Provenance& provenance);

  // OnDecided: call when an allreduce has reported to all ranks that a cut is due. OnAllIdle: call
  // when a later allreduce has reported that all ranks are idle.
  void OnDecided();
  bool decided() const { return decided_us_.has_value(); }
  void OnAllIdle();
  // Whether a cut is among the reasons for which the ranks have become idle.
  bool due() const { return due_; }

  // Takes a cut. `best`: the cut holds the best validation so far. `last`: training ends with this
  // cut. REQUIRES: all ranks are idle and take the cut
  void Take(bool best, bool last);

  // The name of the cut that was begun last; empty if none was begun.
  const std::string& newest() const { return newest_; }

 private:
  void Begin();
  void OnMarked(CutMarked marked);
  void OnEnded(uint64_t number, const CutOutcome& outcome);
  void OnAwaited(bool committed);
  void GoOn();

  const int rank_;
  const uint64_t generation_;
  Executor* const executor_;
  StepTrainer* const trainer_;
  RankObserver* const observer_;
  FailureLatch* const failure_;
  const Engine engine_;

  CutSchedule schedule_;  // of rank 0
  Ledger released_;       // since the last cut began
  absl::optional<int64_t> decided_us_;
  bool due_ = false;
  int64_t until_idle_us_ = 0;  // from the decision until all ranks were idle

  // The cut that was begun last.
  uint64_t number_ = 0;
  std::string newest_;
  bool best_ = false;
  bool last_ = false;
  bool leaving_ = false;
  int64_t begun_us_ = 0;  // the first time, if it was begun again
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_RANK_CUTS_H_
