#include "tests/simulation/sim_watch.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/role/coordinator_client.h"
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

void CoordinatorWatch::Handle(const rpc::Method& method, rpc::Message request,
                              rpc::Callback respond) {
  std::string cut;
  if (method == kCommitCut) {
    CommitCutRequest commit;
    CHECK(commit.ParseFromString(request.header));
    cut = commit.cut();
  }
  HeartbeatRequest beat;
  FailRequest failure;
  if (method == kHeartbeat && beat.ParseFromString(request.header)) {
    events_.beat(beat);
    if (beat.leaving()) events_.leaving(beat.envelope().generation());
  }
  if (method == kFail) CHECK(failure.ParseFromString(request.header));
  const uint64_t sender = method == kFail ? failure.incarnation() : beat.incarnation();
  coordinator_->Handle(method, std::move(request),
                       [this, method, beat = std::move(beat), sender, cut = std::move(cut),
                        respond = std::move(respond)](absl::StatusOr<rpc::Message> answer) mutable {
                         if (answer.ok() && process_->alive()) {
                           OnAnswer(method, beat, sender, cut, *answer);
                         }
                         respond(std::move(answer));
                       });
}

void CoordinatorWatch::OnAnswer(const rpc::Method& method, const HeartbeatRequest& beat,
                                uint64_t sender, const std::string& cut,
                                const rpc::Message& answer) {
  if (method == kCommitCut) OnCommitAnswer(cut, answer);
  if (method == kFinish) events_.acknowledged("");
  RegisterAnswer place;
  if (method == kRegister && place.ParseFromString(answer.header) && place.wait()) events_.waits();
  HeartbeatAnswer heartbeat;
  if (method == kHeartbeat && heartbeat.ParseFromString(answer.header)) {
    if (!heartbeat.wait()) {
      members_.insert(sender);
      events_.heard(beat);
    }
    OnState(heartbeat.state(), heartbeat.ending());
  }
  FailAnswer fail;
  if (method == kFail && fail.ParseFromString(answer.header)) {
    // If the process is not a member, the answer concerns this process alone.
    if (fail.state() != RESTARTING || members_.count(sender) > 0) {
      OnState(fail.state(), fail.ending());
    }
  }
}

void CoordinatorWatch::OnCommitAnswer(const std::string& cut, const rpc::Message& answer) {
  CommitCutAnswer commit;
  CHECK(commit.ParseFromString(answer.header));
  if (commit.outcome() != OUTCOME_DONE) return;
  commit.has_abandoned() ? events_.abandoned(cut) : events_.acknowledged(cut);
}

void CoordinatorWatch::OnState(RunState state, const Ending& how) {
  if (state == RUNNING && !std::exchange(runs_, true)) events_.runs();
  const bool goes_on = state == STARTING || state == RUNNING;
  const bool moved = state == RESTARTING && how.why() == Ending::MOVED;
  // Such an answer may concern one member alone: one that leaves before the generation runs, or one
  // that fails while the coordinator appends an entry that may end the generation in another way.
  const bool is_for_all = !moved || is_over_();
  if (moved) events_.moved(is_for_all);
  if (!is_for_all) return;
  if (!goes_on && !std::exchange(ended_, true)) events_.ended(state);
}

}  // namespace satrap::simulation
