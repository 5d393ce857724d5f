#include "deploy/coordinator/state/wishes.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/config/job_change.h"
#include "common/config/job_config.h"

namespace satrap {

absl::StatusOr<uint64_t> Wishes::Add(const WishRequest& request, const JobConfig& job) {
  // If its answer is lost, a call is repeated. The repetition must not make a second stop or scale.
  if (request.kind() == WishRequest::STOP && stops()) return stop_;
  if (request.kind() == WishRequest::SCALE) {
    JobConfig next = request.job();
    next.set_run_dir(job.run_dir());
    if (scales() && ResolvedJobText(next) == ResolvedJobText(next_job_)) return scale_;
    const absl::Status status = CheckJobChange(job, next);
    if (!status.ok()) return absl::InvalidArgumentError(status.message());
    if (!stops() && !scales()) next_job_ = std::move(next);
  }
  if (request.kind() != WishRequest::CUT && (stops() || scales())) {
    return absl::FailedPreconditionError(
        absl::StrCat("a ", stops() ? "stop" : "change of size", " is already in progress"));
  }
  ++newest_;
  if (request.kind() == WishRequest::STOP) stop_ = newest_;
  if (request.kind() == WishRequest::SCALE) scale_ = newest_;
  return newest_;
}

bool Wishes::AddMove(const Ending& how) {
  if (moves()) return false;
  move_ = how;
  ++newest_;
  return true;
}

CutEntry::LeftFor Wishes::left_for(bool leave) const {
  if (stops()) return CutEntry::STOP;
  if (leave && scales()) return CutEntry::SCALE;
  return moves() ? CutEntry::MOVE : CutEntry::NOT_SAID;
}

absl::optional<CutWish> Wishes::Open() const {
  if (fulfilled_ >= newest_) return absl::nullopt;
  CutWish wish;
  wish.set_number(newest_);
  wish.set_leave(leaves());
  return wish;
}

void Wishes::Fulfil(uint64_t number) {
  fulfilled_ = std::max(fulfilled_, std::min(number, newest_));
}

}  // namespace satrap
