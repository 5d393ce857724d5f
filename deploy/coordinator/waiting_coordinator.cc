#include "deploy/coordinator/waiting_coordinator.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/role/coordinator_client.h"
#include "common/role/ending.h"
#include "common/rpc/header.h"

namespace satrap {

WaitingCoordinator::WaitingCoordinator(const ClaimedGeneration& last,
                                       std::function<int64_t()> now_ms)
    : waits_to_be_asked_(last.waits_to_be_asked), now_ms_(std::move(now_ms)) {
  status_.set_job_name(last.job.name());
  status_.set_state(RESTARTING);
  status_.set_run_id(last.run_id);
  status_.set_generation(last.generation);
  status_.set_submission(last.submission);
  *status_.mutable_ending() = EndingOf(
      Ending::SUPERSEDED,
      waits_to_be_asked_
          ? absl::StrCat("the coordinator of another pod has begun generation ", last.generation,
                         ", so this one claims nothing until processes have asked it for ",
                         kAskedMs / 1000, " s")
          : absl::StrCat("submission ", last.submission,
                         " has taken over the run, so this coordinator of an earlier submission "
                         "claims nothing"));
}

void WaitingCoordinator::TakeAsked() {
  const int64_t now_ms = now_ms_();
  MutexLock lock(&mutex_);
  if (!asked_since_ms_.has_value() || now_ms - last_asked_ms_ > kAskedAgainMs) {
    asked_since_ms_ = now_ms;
  }
  last_asked_ms_ = now_ms;
}

bool WaitingCoordinator::MayClaim() {
  MutexLock lock(&mutex_);
  return waits_to_be_asked_ && asked_since_ms_.has_value() &&
         last_asked_ms_ - *asked_since_ms_ >= kAskedMs;
}

void WaitingCoordinator::Handle(const rpc::Method& method, rpc::Message, rpc::Callback respond) {
  if (method == kRegister) {
    TakeAsked();
    RegisterAnswer answer;
    answer.set_wait(true);
    answer.set_why_wait(why().text());
    return respond(rpc::MessageOf(answer));
  }
  if (method == kStatus) return respond(rpc::MessageOf(status_));
  respond(absl::FailedPreconditionError(status_.ending().text()));
}

}  // namespace satrap
