#include "deploy/coordinator/refusing_coordinator.h"

#include "absl/status/status.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/header.h"

namespace satrap {

RefusingCoordinator::RefusingCoordinator(uint64_t submission, const Ending& why) {
  status_.set_state(FAILED);
  status_.set_submission(submission);
  *status_.mutable_ending() = why;
}

void RefusingCoordinator::Handle(const rpc::Method& method, rpc::Message, rpc::Callback respond) {
  if (method == kRegister) {
    RegisterAnswer answer;
    answer.set_wait(true);
    answer.set_why_wait(status_.ending().text());
    return respond(rpc::MessageOf(answer));
  }
  if (method == kStatus) return respond(rpc::MessageOf(status_));
  respond(absl::FailedPreconditionError(status_.ending().text()));
}

}  // namespace satrap
