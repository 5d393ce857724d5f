// What a generation is asked for: the wishes of people for a cut, a stop or another size, and
// moves, because processes leave their machines. Wishes and moves are numbered together from 1; a
// cut that fulfils one also fulfils all earlier ones. If a stop or a change of size comes during a
// move, they share one cut, and the stop or the new size decides what follows it.
//
// Not thread-safe: the lock of the coordinator's engine guards it.

#ifndef SATRAP_DEPLOY_COORDINATOR_STATE_WISHES_H_
#define SATRAP_DEPLOY_COORDINATOR_STATE_WISHES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "proto/run_log.pb.h"

namespace satrap {

class Wishes {
 public:
  // Returns the wish's number. A repeated STOP, and a repeated SCALE with the same job, get the
  // number of the first. `job` is this generation's. FAILED_PRECONDITION if another STOP or SCALE
  // is under way; INVALID_ARGUMENT if a SCALE changes something in `job` that must not change.
  absl::StatusOr<uint64_t> Add(const WishRequest& request, const JobConfig& job);

  // Adds a move: a process leaves its machine, and the generation ends with `how`. Further moves
  // share the cut of the first. Returns whether this is the first.
  bool AddMove(const Ending& how);

  // What rank 0 still has to do; nullopt if every wish is fulfilled.
  absl::optional<CutWish> Open() const;

  void Fulfil(uint64_t number);
  void FulfilAll() { Fulfil(newest_); }
  uint64_t fulfilled() const { return fulfilled_; }

  bool stops() const { return stop_ != 0; }
  bool scales() const { return scale_ != 0; }
  bool moves() const { return move_.has_value(); }
  bool leaves() const { return stops() || scales() || moves(); }
  // What follows the cut with which the generation ends. `leave` says that the ranks stop although
  // training is not over. If training is over, a change of size has no effect any more.
  CutEntry::LeftFor left_for(bool leave) const;
  // REQUIRES: scales()
  const JobConfig& next_job() const { return next_job_; }
  // REQUIRES: moves()
  const Ending& move() const { return *move_; }

 private:
  uint64_t newest_ = 0;
  uint64_t fulfilled_ = 0;
  uint64_t stop_ = 0;   // the number of the STOP; 0: none
  uint64_t scale_ = 0;  // likewise
  JobConfig next_job_;
  absl::optional<Ending> move_;  // of the first process that leaves its machine
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_STATE_WISHES_H_
