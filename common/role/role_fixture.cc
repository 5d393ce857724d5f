#include "common/role/role_fixture.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <utility>

#include "common/config/text_format.h"
#include "common/role/protocol_fingerprint.h"
#include "common/rpc/endpoints.h"

namespace satrap {
namespace {

constexpr char kJob[] = R"(
  name: "tiny"
  data {
    synthetic {
      numeric_features: 1
      interacting_features: 0
    }
    numerics { name: "I1" }
  }
  model {
    layers { name: "logit" inputs: "numeric" linear { units: 1 } }
  }
)";

}  // namespace

void FakeCoordinator::Handle(const rpc::Method& method, rpc::Message request,
                             rpc::Callback respond) {
  rpc::Message answer;
  if (method == kRegister) {
    RegisterRequest call;
    call.ParseFromString(request.header);
    MutexLock lock(&mutex_);
    member_ = call.member();
    incarnation_ = call.incarnation();
    if (incarnation_ == 0) abort();
    RegisterAnswer registered;
    if (register_error_.has_value()) return respond(*register_error_);
    if (waits_left_ > 0) {
      --waits_left_;
      registered.set_wait(true);
      answer.header = registered.SerializeAsString();
      return respond(std::move(answer));
    }
    if (call.protocol() != ProtocolFingerprint()) abort();
    registered.mutable_envelope()->set_run_id(kRunId);
    registered.mutable_envelope()->set_generation(3);
    *registered.mutable_job() = job_;
    registered.set_cut("/run/checkpoints/cut_0002_000004");
    registered.mutable_position()->set_step(40);
    registered.mutable_ledger()->add_epochs()->set_rows(5);
    answer.header = registered.SerializeAsString();
  } else if (method == kHeartbeat) {
    if (silent()) return KeepUnanswered(std::move(respond));
    HeartbeatRequest call;
    call.ParseFromString(request.header);
    HeartbeatAnswer beat;
    MutexLock lock(&mutex_);
    if (call.envelope().run_id() != kRunId || call.incarnation() != incarnation_) abort();
    if (refuses_heartbeats_) {
      respond(absl::FailedPreconditionError("the call belongs to another run"));
      return;
    }
    ++heartbeats_;
    if (state_ == STARTING && starts_when_ready_ && call.ready()) state_ = RUNNING;
    changed_.NotifyAll();
    beat.set_state(state_);
    *beat.mutable_ending() = EndingOf(Ending::OTHER, "somebody else broke");
    beat.set_order_fingerprint(99);
    if (!call.knows_members()) *beat.add_members() = member_;
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
    answer.header = WishAnswer().SerializeAsString();
  }
  respond(std::move(answer));
}

std::string EndingPathOfTest() {
  return ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
         ".ending";
}

void RunCase(const Body& body, const Prepare& prepare) {
  std::string dir = ::testing::TempDir() + "role_runtime_test.XXXXXX";
  if (mkdtemp(dir.data()) == nullptr) abort();
  // The path is relative, because that of a socket must not exceed 107 bytes, and the folder's may.
  if (chdir(dir.c_str()) != 0) abort();
  const std::string address = "unix:coordinator";
  FakeCoordinator coordinator;
  JobConfig job;
  if (!ParseText(kJob, "job", &job).ok()) abort();
  coordinator.SetJob(job);
  if (prepare) prepare(coordinator);
  // The server's threads start before the role and must not take its signals, so these are blocked
  // here.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const rpc::Method methods[] = {kRegister, kHeartbeat, kFail, kFinish, kWish};
  auto server = rpc::GrpcServer::Start(address, rpc::EndpointOptions(),
                                       {rpc::GrpcServer::Service{methods, &coordinator}});
  if (!server.ok()) abort();
  std::vector<std::string> args = {"nn_worker", "--coordinator=" + address, "--advertise=127.0.0.1",
                                   "--ending=" + EndingPathOfTest()};
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  const int code = RunRole(NN_WORKER, static_cast<int>(argv.size()), argv.data(),
                           [&](RoleRuntime& runtime) { return body(runtime, coordinator); });
  (*server)->Shutdown(0);
  exit(code);
}

}  // namespace satrap
