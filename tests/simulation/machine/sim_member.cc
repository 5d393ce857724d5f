#include "tests/simulation/machine/sim_member.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/role/cause_table.h"
#include "common/role/coordinator_client.h"
#include "common/role/ending.h"
#include "common/rpc/header.h"
#include "common/rpc/lost_call.h"

namespace satrap::simulation {
namespace {

constexpr int64_t kAskAgainMs = 1000;
constexpr int64_t kLongestPauseMs = 5000;
// The incarnations of successive processes in one seat of a life differ by this.
constexpr uint64_t kNextIncarnation = uint64_t{1} << 32;

}  // namespace

SimMember::SimMember(const Options& options, Events events)
    : options_(options), events_(std::move(events)), registration_(options.registration) {
  last_answer_.set_state(STARTING);
}

void SimMember::Start() {
  last_heard_us_ = options_.process->NowUs();
  Register();
}

void SimMember::Call(const rpc::Method& method, std::string request,
                     std::function<void(absl::StatusOr<rpc::Message>)> done) {
  const int64_t due_us = options_.process->NowUs() + options_.attempt_timeout_ms * 1000;
  options_.coordinator->Call(
      method, {std::move(request), Buffer()}, options_.attempt_timeout_ms,
      [this, due_us, done = std::move(done)](absl::StatusOr<rpc::Message> answer) {
        // The time during which the process was suspended does not count as the coordinator's
        // silence.
        last_heard_us_ += std::max<int64_t>(0, options_.process->NowUs() - due_us);
        if (!exit_.has_value()) done(std::move(answer));
      });
}

void SimMember::Register() {
  Call(kRegister, registration_.SerializeAsString(),
       [this](const absl::StatusOr<rpc::Message>& answer) { OnRegistered(answer); });
}

void SimMember::OnRegistered(const absl::StatusOr<rpc::Message>& answer) {
  if (rpc::IsLost(answer.status())) {
    CheckSilence();
    if (!exit_.has_value()) Register();
    return;
  }
  if (!answer.ok()) {
    return End(absl::IsFailedPrecondition(answer.status()) ? Exit::kStartAgain : Exit::kFailed,
               answer.status().ToString());
  }
  last_heard_us_ = options_.process->NowUs();
  CHECK(registered_.ParseFromString(answer->header));
  // In the next life another process has the place of this one, so this process only waits.
  if (registered_.wait()) return RegisterLater();
  // A process that has no place is started again, and then knows no failure of an earlier
  // generation. In the same generation it fails as the process before it did.
  if (envelope().generation() != failed_in_) failure_ = absl::OkStatus();
  events_.registered(registered_);
  if (failure_.ok() || !options_.fails_unheard) Heartbeat();
}

void SimMember::RegisterLater() {
  const bool has_holder = !registration_.holder().empty();
  const int64_t delay_us =
      std::min(PauseBeforeReadyMs(++waits_), has_holder ? kAskAgainMs : kLongestPauseMs) * 1000;
  if (!has_holder && waits_ > options_.most_waits) {
    return End(Exit::kStartAgain, "no other generation has begun");
  }
  const int64_t due_us = options_.process->NowUs() + delay_us;
  options_.process->PostAfter(delay_us, [this, due_us] {
    last_heard_us_ += options_.process->NowUs() - due_us;
    if (!exit_.has_value()) Register();
  });
}

void SimMember::Heartbeat() {
  if (exit_.has_value()) return;
  HeartbeatRequest request;
  *request.mutable_envelope() = envelope();
  request.set_role(registration_.member().role());
  request.set_index(registration_.member().index());
  request.set_incarnation(registration_.incarnation());
  request.set_ready(ready_);
  request.set_knows_members(members_ > 0);
  if (leaving_) request.set_leaving(true);
  Call(kHeartbeat, request.SerializeAsString(),
       [this](const absl::StatusOr<rpc::Message>& answer) { OnHeartbeat(answer); });
}

void SimMember::HeartbeatLater() {
  const bool starting = last_answer_.state() == STARTING;
  const int64_t delay_us = (starting ? options_.starting_period_ms : options_.period_ms) * 1000;
  const int64_t due_us = options_.process->NowUs() + delay_us;
  options_.process->PostAfter(delay_us, [this, due_us] {
    last_heard_us_ += options_.process->NowUs() - due_us;
    Heartbeat();
  });
}

void SimMember::OnHeartbeat(const absl::StatusOr<rpc::Message>& answer) {
  if (rpc::IsLost(answer.status())) {
    CheckSilence();
    if (!exit_.has_value()) HeartbeatLater();
    return;
  }
  if (!answer.ok()) {
    return End(absl::IsFailedPrecondition(answer.status()) ? Exit::kStartAgain : Exit::kFailed,
               answer.status().ToString());
  }
  last_heard_us_ = options_.process->NowUs();
  CHECK(last_answer_.ParseFromString(answer->header));
  if (last_answer_.wait()) {
    CHECK(!joined_) << "a member has lost its place while its generation runs";
    registration_.set_incarnation(registration_.incarnation() + kNextIncarnation);
    return Register();
  }
  const bool was_heard = std::exchange(is_heard_, true);
  const RunState state = last_answer_.state();
  if (state != STARTING && state != RUNNING) return EndAs(state, last_answer_.ending().text());
  if (!was_heard && !failure_.ok()) ReportFailure();
  members_ = std::max(members_, last_answer_.members_size());
  if (state == RUNNING && members_ == 0) {
    return End(Exit::kFailed, "all are ready, and nobody has told who they are");
  }
  if (state == RUNNING && !std::exchange(joined_, true)) events_.joined();
  if (events_.wished && last_answer_.wish().number() > 0) events_.wished(last_answer_.wish());
  HeartbeatLater();
}

void SimMember::Fail(absl::Status status) {
  CHECK(!status.ok());
  if (exit_.has_value() || !failure_.ok()) return;
  failure_ = std::move(status);
  failed_in_ = envelope().generation();
  if (rpc::IsOfAnotherRun(failure_)) return End(Exit::kStartAgain, failure_.ToString());
  // Only a member's failure counts.
  if (is_heard_ || options_.fails_unheard) ReportFailure();
}

void SimMember::ReportFailure() {
  FailRequest request;
  *request.mutable_envelope() = envelope();
  request.set_role(registration_.member().role());
  request.set_index(registration_.member().index());
  request.set_incarnation(registration_.incarnation());
  *request.mutable_ending() =
      FailureOf(request.role(), static_cast<int>(request.index()), failure_);
  Call(kFail, request.SerializeAsString(), [this](const absl::StatusOr<rpc::Message>& answer) {
    if (rpc::IsLost(answer.status())) {
      CheckSilence();
      if (!exit_.has_value()) ReportFailure();
      return;
    }
    FailAnswer told;
    if (!answer.ok()) return End(Exit::kStartAgain, answer.status().ToString());
    CHECK(told.ParseFromString(answer->header));
    EndAs(told.has_state() ? told.state() : FAILED, told.ending().text());
  });
}

void SimMember::Finish(const RunResult& result) {
  FinishRequest request;
  *request.mutable_envelope() = envelope();
  *request.mutable_result() = result;
  Call(kFinish, request.SerializeAsString(),
       [this, result](const absl::StatusOr<rpc::Message>& answer) {
         if (rpc::IsLost(answer.status())) return Finish(result);
         if (!answer.ok()) Fail(answer.status());
         // Do nothing else: the state FINISHED comes with a heartbeat.
       });
}

void SimMember::CheckSilence() {
  if (options_.process->NowUs() - last_heard_us_ > options_.silence_timeout_ms * 1000) {
    End(Exit::kStartAgain, "the coordinator is silent");
  }
}

void SimMember::EndAs(RunState state, const std::string& why) {
  switch (state) {
    case FINISHED:
    case STOPPED:
      return End(Exit::kDone, why);
    case FAILED:
      return End(Exit::kFailed, why);
    case RESTARTING:
      return End(Exit::kStartAgain, why);
    case STARTING:
    case RUNNING:
      break;
  }
  End(Exit::kStartAgain, why);
}

void SimMember::End(Exit exit, const std::string& why) {
  if (exit_.has_value() || !options_.process->alive()) return;
  exit_ = exit;
  if (exit != Exit::kDone) options_.process->Kill();
  if (events_.exited) events_.exited(exit, why);
}

}  // namespace satrap::simulation
