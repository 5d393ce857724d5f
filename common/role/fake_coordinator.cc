#include "common/role/fake_coordinator.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/role/protocol_fingerprint.h"

namespace satrap {

int FakeCoordinator::AwaitLeaving() {
  MutexLock lock(&mutex_);
  while (!leaving_) changed_.Wait(&mutex_);
  return wishes_;
}

void FakeCoordinator::RefuseWishes(int count, const absl::Status& error) {
  MutexLock lock(&mutex_);
  wishes_to_refuse_ = count;
  wish_error_ = error;
}

int FakeCoordinator::AwaitWishes(int count) {
  MutexLock lock(&mutex_);
  while (wishes_ < count) changed_.Wait(&mutex_);
  return wishes_;
}

void FakeCoordinator::AwaitHeartbeats(int count) {
  MutexLock lock(&mutex_);
  const int enough = heartbeats_ + count;
  while (heartbeats_ < enough) changed_.Wait(&mutex_);
}

void FakeCoordinator::AwaitUnanswered(size_t count) {
  MutexLock lock(&mutex_);
  while (unanswered_.size() < count) changed_.Wait(&mutex_);
}

void FakeCoordinator::KeepUnanswered(rpc::Callback respond) {
  MutexLock lock(&mutex_);
  unanswered_.push_back(std::move(respond));
  changed_.NotifyAll();
}

void FakeCoordinator::Handle(const rpc::Method& method, rpc::Message request,
                             rpc::Callback respond) {
  rpc::Message answer;
  if (method == kRegister) {
    RegisterRequest call;
    call.ParseFromString(request.header);
    MutexLock lock(&mutex_);
    registration_ = call;
    incarnation_ = call.incarnation();
    if (incarnation_ == 0) abort();
    RegisterAnswer registered;
    if (register_error_.has_value()) return respond(*register_error_);
    if (waits_left_ > 0) {
      --waits_left_;
      registered.set_wait(true);
      registered.set_why_wait("there is no place");
      answer.header = registered.SerializeAsString();
      return respond(std::move(answer));
    }
    if (call.protocol() != ProtocolFingerprint()) abort();
    registered.mutable_envelope()->set_run_id(kRunId);
    registered.mutable_envelope()->set_generation(3);
    *registered.mutable_job() = job_;
    registered.set_cut("/run/checkpoints/cut_0002_000004");
    registered.mutable_position()->set_step(40);
    if (lets_leave_) registered.set_leaves(true);
    registered.mutable_ledger()->add_epochs()->set_rows(5);
    answer.header = registered.SerializeAsString();
  } else if (method == kHeartbeat) {
    if (silent()) return KeepUnanswered(std::move(respond));
    HeartbeatRequest call;
    call.ParseFromString(request.header);
    HeartbeatAnswer beat;
    MutexLock lock(&mutex_);
    if (call.envelope().run_id() != kRunId || call.incarnation() != incarnation_) abort();
    ++heartbeats_;
    leaving_ |= call.leaving();
    changed_.NotifyAll();
    if (!heartbeat_error_.ok()) return respond(heartbeat_error_);
    if (garbles_heartbeats_) {
      answer.header = "no message";
      return respond(std::move(answer));
    }
    if (state_ == STARTING && starts_when_ready_ && call.ready()) state_ = RUNNING;
    beat.set_state(state_);
    *beat.mutable_ending() = EndingOf(Ending::OTHER, "somebody else broke");
    if (place_is_taken_) {
      beat.set_wait(true);
      *beat.mutable_ending() = EndingOf(Ending::OTHER, "pod-1 has the place");
    }
    beat.set_order_fingerprint(99);
    if (!call.knows_members()) *beat.add_members() = registration_.member();
    if (call.knows_members()) ++heartbeats_with_members_;
    for (const uint32_t split : dealt_) {
      if (split < call.known_partitions()) continue;
      DealtPartition* dealt = beat.add_dealt();
      dealt->set_split(split);
      dealt->set_loader(1);
    }
    answer.header = beat.SerializeAsString();
  } else if (method == kFail) {
    FailRequest call;
    call.ParseFromString(request.header);
    if (call.envelope().run_id() != kRunId) abort();
    fprintf(stderr, "coordinator was told: %s\n", call.ending().text().c_str());
    FailAnswer told;
    MutexLock lock(&mutex_);
    if (call.incarnation() != incarnation_ || heartbeats_ == 0) abort();
    if (ignores_failures_) return unanswered_.push_back(std::move(respond));
    *told.mutable_ending() = first_cause_.value_or(call.ending());
    const bool cured = call.ending().kind() == Ending::PEER_AWAY;
    told.set_state(cured ? RESTARTING : FAILED);
    answer.header = told.SerializeAsString();
  } else if (method == kFinish) {
    SetState(FINISHED);
  } else if (method == kWish) {
    WishRequest call;
    call.ParseFromString(request.header);
    if (call.kind() != WishRequest::STOP || call.run_id() != kRunId) abort();
    fprintf(stderr, "coordinator was asked to stop\n");
    MutexLock lock(&mutex_);
    ++wishes_;
    changed_.NotifyAll();
    if (wishes_ <= wishes_to_refuse_) return respond(wish_error_);
    answer.header = WishAnswer().SerializeAsString();
  }
  respond(std::move(answer));
}

}  // namespace satrap
