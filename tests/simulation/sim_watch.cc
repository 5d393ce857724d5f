#include "tests/simulation/sim_watch.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/reliable_call.h"

namespace satrap::simulation {

void PutBatchWatch::Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) {
  if (method == rpc::kPutBatch) {
    PutBatchHeader header;
    CHECK(header.ParseFromString(request.header));
    if (rpc::CheckEnvelope(header.envelope(), envelope_, "the worker").ok()) {
      uint32_t& last = (*last_epochs_)[header.stream()];
      last = std::max(last, header.epoch());
    }
  }
  worker_->Handle(method, std::move(request), std::move(respond));
}

void UpdateWatch::Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) {
  if (!(method == rpc::kUpdate)) {
    ps_->Handle(method, std::move(request), std::move(respond));
    return;
  }
  UpdateHeader header;
  CHECK(header.ParseFromString(request.header));
  ps_->Handle(method, std::move(request),
              [this, call = header.call(),
               respond = std::move(respond)](absl::StatusOr<rpc::Message> answer) mutable {
                const bool done = answer.ok() && rpc::OutcomeOf(*answer) == OUTCOME_DONE;
                if (done && seen_.emplace(call.sender(), call.number()).second) {
                  applied_(call.sender(), call.number());
                }
                respond(std::move(answer));
              });
}

}  // namespace satrap::simulation
