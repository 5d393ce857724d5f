// The base of tests of a coordinator's engine: a run in memory, its engine on executors that the
// test advances, and calls as members make them.

#ifndef SATRAP_DEPLOY_COORDINATOR_COORDINATOR_FIXTURE_H_
#define SATRAP_DEPLOY_COORDINATOR_COORDINATOR_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>

#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/checkpoint/testing/memory_file_system.h"
#include "common/config/job_config.h"
#include "common/role/coordinator_client.h"
#include "common/role/protocol_fingerprint.h"
#include "common/testing/manual_executor.h"
#include "deploy/coordinator/coordinator_engine.h"
#include "deploy/coordinator/generation_claim.h"
#include "gtest/gtest.h"

namespace satrap {

class CoordinatorFixture : public ::testing::Test {
 protected:
  static constexpr char kRun[] = "/runs/small";
  // The incarnation of each member's first process.
  static constexpr uint64_t kFirst = 0xabc;
  static constexpr uint64_t kRunId = 0x1234567812345678;

  CoordinatorFixture() {
    job_.set_name("small");
    job_.set_run_dir(kRun);
    job_.mutable_data_loader()->set_replicas(1);
    job_.mutable_embedding_worker()->set_replicas(1);
    job_.mutable_embedding_ps()->set_replicas(2);
    job_.mutable_nn_worker()->set_replicas(1);
    EXPECT_TRUE(disk_.CreateFolders(kRun).ok());
    options_.executor = &executor_;
    options_.disk_executor = &disk_executor_;
    options_.file_system = &disk_;
    options_.writer = 1;
    options_.unix_ms = [this] { return executor_.NowUs() / 1000; };
    options_.warn = [](const std::string& warning) { ADD_FAILURE() << warning; };
    Begin();
  }

  // Claims the next generation as another process does, and serves it in place of the last.
  void Begin(const std::string& cause = "") {
    engine_.reset();
    ClaimRequest request;
    request.job = job_;
    request.cause = cause;
    request.writer = ++options_.writer;
    request.run_id = kRunId;
    auto claimed = ClaimGeneration(request, &disk_);
    ASSERT_TRUE(claimed.ok()) << claimed.status();
    generation_ = claimed->generation;
    engine_ = std::make_unique<CoordinatorEngine>(*std::move(claimed), options_);
  }

  // Sends a request; `*result` is set when it is answered.
  template <typename Answer, typename Request>
  void Send(const rpc::Method& method, const Request& request, absl::StatusOr<Answer>* result) {
    rpc::Message message;
    message.header = request.SerializeAsString();
    *result = absl::UnknownError("not answered");
    engine_->Handle(method, std::move(message), [result](absl::StatusOr<rpc::Message> reply) {
      if (!reply.ok()) {
        *result = reply.status();
        return;
      }
      Answer answer;
      EXPECT_TRUE(answer.ParseFromString(reply->header));
      *result = answer;
    });
  }
  // As Send, with all file work done.
  template <typename Answer, typename Request>
  absl::StatusOr<Answer> Call(const rpc::Method& method, const Request& request) {
    absl::StatusOr<Answer> result = absl::UnknownError("");
    Send(method, request, &result);
    disk_executor_.RunReady();
    return result;
  }

  Envelope ThisRun() const {
    Envelope envelope;
    envelope.set_job_fingerprint(JobFingerprint(job_));
    envelope.set_generation(generation_);
    envelope.set_run_id(kRunId);
    return envelope;
  }
  Envelope AnotherRun() const {
    Envelope envelope = ThisRun();
    envelope.set_run_id(kRunId + 1);
    return envelope;
  }

  RegisterRequest RegisterOf(Role role, int index, uint64_t incarnation = kFirst,
                             int64_t pid = 1) const {
    RegisterRequest request;
    request.set_incarnation(incarnation);
    request.set_protocol(ProtocolFingerprint());
    request.mutable_member()->set_role(role);
    request.mutable_member()->set_index(static_cast<uint32_t>(index));
    request.mutable_member()->set_pid(pid);
    request.mutable_member()->set_address(MemberAddress(role, index));
    return request;
  }
  absl::Status Register(Role role, int index, uint64_t incarnation = kFirst, int64_t pid = 1) {
    return Call<RegisterAnswer>(kRegister, RegisterOf(role, index, incarnation, pid)).status();
  }
  static std::string MemberAddress(Role role, int index) {
    return "unix:/run/" + std::to_string(role) + "." + std::to_string(index);
  }
  void RegisterAll() {
    EXPECT_TRUE(Register(DATA_LOADER, 0).ok());
    EXPECT_TRUE(Register(EMBEDDING_WORKER, 0).ok());
    EXPECT_TRUE(Register(EMBEDDING_PS, 0).ok());
    EXPECT_TRUE(Register(EMBEDDING_PS, 1).ok());
    EXPECT_TRUE(Register(NN_WORKER, 0).ok());
  }
  HeartbeatRequest HeartbeatOf(Role role, int index, uint64_t incarnation = kFirst) const {
    HeartbeatRequest request;
    *request.mutable_envelope() = ThisRun();
    request.set_role(role);
    request.set_index(static_cast<uint32_t>(index));
    request.set_incarnation(incarnation);
    request.set_ready(true);
    return request;
  }
  absl::StatusOr<HeartbeatAnswer> Heartbeat(Role role, int index, uint64_t incarnation = kFirst) {
    return Call<HeartbeatAnswer>(kHeartbeat, HeartbeatOf(role, index, incarnation));
  }
  // Registers all members and reports them as ready.
  void StartRun() {
    RegisterAll();
    BeatAll();
    EXPECT_EQ(engine_->Status().state(), RUNNING);
  }
  void BeatAll() {
    for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
      EXPECT_TRUE(Heartbeat(role, 0).ok());
    }
    EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
  }
  // Sends heartbeats of all members but `silent`, once a second, for `seconds`.
  void Beat(int seconds, Role silent) {
    for (int i = 0; i < seconds; ++i) {
      for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
        if (role != silent) {
          EXPECT_TRUE(Heartbeat(role, 0).ok());
        }
      }
      if (silent != EMBEDDING_PS) {
        EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
      }
      executor_.AdvanceBy(1000 * 1000);
      disk_executor_.RunReady();
    }
  }
  FailAnswer Fail(Role role, int index, const std::string& reason,
                  absl::StatusCode code = absl::StatusCode::kNotFound) {
    FailRequest request;
    *request.mutable_envelope() = ThisRun();
    request.set_role(role);
    request.set_index(static_cast<uint32_t>(index));
    request.set_reason(reason);
    request.set_code(static_cast<int>(code));
    const auto answer = Call<FailAnswer>(kFail, request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : FailAnswer();
  }
  FinishRequest FinishOf() const {
    FinishRequest request;
    *request.mutable_envelope() = ThisRun();
    request.mutable_result()->set_samples(7);
    return request;
  }
  void Finish() { EXPECT_TRUE(Call<FinishAnswer>(kFinish, FinishOf()).ok()); }

  RunState state() const { return engine_->Status().state(); }
  std::string reason() const { return engine_->Status().stop_reason(); }
  RunLog Log() {
    auto log = RunLog::Open(kRun, &disk_, 99);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }

  JobConfig job_;
  uint64_t generation_ = 0;
  MemoryFileSystem disk_;
  ManualExecutor executor_;
  ManualExecutor disk_executor_;
  CoordinatorOptions options_;
  std::unique_ptr<CoordinatorEngine> engine_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_COORDINATOR_FIXTURE_H_
