#include "deploy/coordinator/waiting_coordinator.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/role/coordinator_client.h"
#include "common/role/ending.h"
#include "common/rpc/header.h"

namespace satrap {

WaitingCoordinator::WaitingCoordinator(const ClaimedGeneration& last) {
  status_.set_job_name(last.job.name());
  status_.set_state(RESTARTING);
  status_.set_run_id(last.run_id);
  status_.set_generation(last.generation);
  status_.set_submission(last.submission);
  *status_.mutable_ending() =
      EndingOf(Ending::SUPERSEDED, absl::StrCat("submission ", last.submission,
                                                " has the run, and this "
                                                "coordinator, of an earlier one, claims nothing"));
}

void WaitingCoordinator::Handle(const rpc::Method& method, rpc::Message, rpc::Callback respond) {
  if (method == kRegister) {
    RegisterAnswer answer;
    answer.set_wait(true);
    return respond(rpc::MessageOf(answer));
  }
  if (method == kStatus) return respond(rpc::MessageOf(status_));
  respond(absl::FailedPreconditionError(status_.ending().text()));
}

}  // namespace satrap
