// The wishes that people make to a generation: a cut, a stop, another size. They are numbered from
// 1; a cut that fulfils a wish also fulfils all earlier ones.
//
// Not thread-safe: the coordinator's engine locks.

#ifndef SATRAP_DEPLOY_COORDINATOR_WISHES_H_
#define SATRAP_DEPLOY_COORDINATOR_WISHES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class Wishes {
 public:
  // Returns the wish's number. A repeated STOP, and a repeated SCALE with the same job, get the
  // number of the first. `job` is this generation's. FAILED_PRECONDITION if another STOP or SCALE
  // is under way; INVALID_ARGUMENT if a SCALE changes something in `job` that must not change.
  absl::StatusOr<uint64_t> Add(const WishRequest& request, const JobConfig& job);

  // What rank 0 still has to do; nullopt if every wish is fulfilled.
  absl::optional<CutWish> Open() const;

  void Fulfil(uint64_t number);
  void FulfilAll() { Fulfil(newest_); }
  uint64_t fulfilled() const { return fulfilled_; }

  bool stops() const { return stop_ != 0; }
  bool scales() const { return scale_ != 0; }
  // REQUIRES: scales()
  const JobConfig& next_job() const { return next_job_; }

 private:
  uint64_t newest_ = 0;
  uint64_t fulfilled_ = 0;
  uint64_t stop_ = 0;   // the number of the STOP; 0: none
  uint64_t scale_ = 0;  // likewise
  JobConfig next_job_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_WISHES_H_
