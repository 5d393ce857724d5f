// The values that a RankEngine and its StepTrainer report to each other about a cut
// (docs/consistency.md, "Cuts").

#ifndef SATRAP_NN_WORKER_RANK_SCHEDULE_CUT_PLAN_H_
#define SATRAP_NN_WORKER_RANK_SCHEDULE_CUT_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/position.pb.h"

namespace satrap {

// All ranks make the same plan, except for `released` and for the fields that rank 0 alone sets.
struct CutPlan {
  uint64_t number = 0;   // from 1 in each generation, ascending; a number is used once
  RunPosition position;  // where training goes on after it
  bool best = false;     // of the best validation so far
  bool last = false;     // training ends with this cut
  // The records that this rank has released since its last plan: their parts were pushed and
  // answered, or acknowledged in a step of weight 0.
  LedgerState released;

  // The fields below are set by rank 0 alone.
  uint64_t wish = 0;   // fulfils this CutWish and all before it; 0: none
  bool leave = false;  // this generation trains no more after it
};

// Whether ranks wait until the cut is committed. REQUIRES: `plan` is that of rank 0
inline bool IsWaitedFor(const CutPlan& plan) {
  return plan.best || plan.last || plan.leave || plan.wish > 0;
}

// What rank 0 reports to every rank when all embedding PSs have marked their rows.
struct CutMarked {
  bool waits = false;  // IsWaitedFor
  bool leave = false;
};

// How a cut ended.
struct CutOutcome {
  std::string name;  // of its folder in RUN/checkpoints
  bool committed = false;
  std::string cause;          // why it was abandoned
  bool copy_limit = false;    // abandoned because an embedding PS reached checkpoint.copy_bytes
  uint64_t bytes = 0;         // of all files
  uint64_t copied_bytes = 0;  // rows that embedding PSs copied out before an Update changed them
  double seconds = 0;         // from the mark until it ended
  size_t ledger_pieces = 0;   // Ledger::PiecesBehind as of the mark
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_SCHEDULE_CUT_PLAN_H_
