#include "common/role/testing/fake_coordinator.h"

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

void FakeCoordinator::StartWhenReady() {
  MutexLock lock(&mutex_);
  state_ = STARTING;
  starts_when_ready_ = true;
}

void FakeCoordinator::RefuseHeartbeats(const absl::Status& error) {
  MutexLock lock(&mutex_);
  heartbeat_error_ = error;
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
  const bool is_asked = method == kRegister || method == kHeartbeat;
  if (is_asked && silent()) return KeepUnanswered(std::move(respond));
  if (method == kRegister) return respond(Register(request));
  if (method == kHeartbeat) return respond(Heartbeat(request));
  if (method == kFail) return Fail(request, std::move(respond));
  if (method == kWish) return respond(Wish(request));
  if (method == kFinish) SetState(FINISHED);
  respond(rpc::Message());
}

absl::StatusOr<rpc::Message> FakeCoordinator::Register(const rpc::Message& request) {
  RegisterRequest call;
  call.ParseFromString(request.header);
  MutexLock lock(&mutex_);
  registration_ = call;
  incarnation_ = call.incarnation();
  if (incarnation_ == 0) abort();
  if (register_error_.has_value()) return *register_error_;
  RegisterAnswer registered;
  rpc::Message answer;
  if (waits_left_ > 0) {
    --waits_left_;
    registered.set_wait(true);
    registered.set_why_wait("there is no place");
    answer.header = registered.SerializeAsString();
    return answer;
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
  return answer;
}

absl::StatusOr<rpc::Message> FakeCoordinator::Heartbeat(const rpc::Message& request) {
  HeartbeatRequest call;
  call.ParseFromString(request.header);
  rpc::Message answer;
  MutexLock lock(&mutex_);
  if (call.envelope().run_id() != kRunId || call.incarnation() != incarnation_) abort();
  ++heartbeats_;
  leaving_ |= call.leaving();
  changed_.NotifyAll();
  if (!heartbeat_error_.ok()) return heartbeat_error_;
  if (garbles_heartbeats_) {
    answer.header = "no message";
    return answer;
  }
  if (state_ == STARTING && starts_when_ready_ && call.ready()) state_ = RUNNING;
  HeartbeatAnswer beat;
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
  return answer;
}

void FakeCoordinator::Fail(const rpc::Message& request, rpc::Callback respond) {
  FailRequest call;
  call.ParseFromString(request.header);
  if (call.envelope().run_id() != kRunId) abort();
  fprintf(stderr, "coordinator was told: %s\n", call.ending().text().c_str());
  FailAnswer told;
  {
    MutexLock lock(&mutex_);
    if (call.incarnation() != incarnation_ || heartbeats_ == 0) abort();
    if (ignores_failures_) return unanswered_.push_back(std::move(respond));
    *told.mutable_ending() = first_cause_.value_or(call.ending());
  }
  const bool cured = call.ending().kind() == Ending::PEER_AWAY;
  told.set_state(cured ? RESTARTING : FAILED);
  rpc::Message answer;
  answer.header = told.SerializeAsString();
  respond(std::move(answer));
}

absl::StatusOr<rpc::Message> FakeCoordinator::Wish(const rpc::Message& request) {
  WishRequest call;
  call.ParseFromString(request.header);
  if (call.kind() != WishRequest::STOP || call.run_id() != kRunId) abort();
  fprintf(stderr, "coordinator was asked to stop\n");
  MutexLock lock(&mutex_);
  ++wishes_;
  changed_.NotifyAll();
  if (wishes_ <= wishes_to_refuse_) return wish_error_;
  rpc::Message answer;
  answer.header = WishAnswer().SerializeAsString();
  return answer;
}

}  // namespace satrap
