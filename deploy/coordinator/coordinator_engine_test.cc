#include "deploy/coordinator/coordinator_engine.h"

#include <string>
#include <utility>

#include "common/config/job_config.h"
#include "common/role/coordinator_client.h"
#include "common/testing/manual_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

JobConfig SmallJob() {
  JobConfig job;
  job.set_name("small");
  job.mutable_data_loader()->set_replicas(1);
  job.mutable_embedding_worker()->set_replicas(1);
  job.mutable_embedding_ps()->set_replicas(2);
  job.mutable_nn_worker()->set_replicas(1);
  return job;
}

class CoordinatorEngineTest : public ::testing::Test {
 protected:
  template <typename Answer, typename Request>
  absl::StatusOr<Answer> Call(const rpc::Method& method, const Request& request) {
    absl::StatusOr<Answer> result = absl::UnknownError("not answered");
    rpc::Message message;
    message.header = request.SerializeAsString();
    engine_.Handle(method, std::move(message), [&](absl::StatusOr<rpc::Message> reply) {
      if (!reply.ok()) {
        result = reply.status();
        return;
      }
      Answer answer;
      EXPECT_TRUE(answer.ParseFromString(reply->header));
      result = answer;
    });
    return result;
  }

  // The incarnation of each member's first process.
  static constexpr uint64_t kFirst = 0xabc;
  static constexpr uint64_t kRunId = 0x1234567812345678;

  Envelope ThisRun() const {
    Envelope envelope;
    envelope.set_job_fingerprint(JobFingerprint(job_));
    envelope.set_generation(1);
    envelope.set_run_id(kRunId);
    return envelope;
  }
  Envelope AnotherRun() const {
    Envelope envelope = ThisRun();
    envelope.set_run_id(kRunId + 1);
    return envelope;
  }

  absl::Status Register(Role role, int index, uint64_t incarnation = kFirst, int64_t pid = 1) {
    RegisterRequest request;
    request.set_incarnation(incarnation);
    request.mutable_member()->set_role(role);
    request.mutable_member()->set_index(index);
    request.mutable_member()->set_pid(pid);
    request.mutable_member()->set_address(MemberAddress(role, index));
    request.set_job_fingerprint(JobFingerprint(job_));
    return Call<RegisterAnswer>(kRegister, request).status();
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
    request.set_index(index);
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
    for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
      EXPECT_TRUE(Heartbeat(role, 0).ok());
    }
    EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
    EXPECT_EQ(engine_.Status().state(), RUNNING);
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
    }
  }
  void Fail(Role role, int index, const std::string& reason) {
    FailRequest request;
    *request.mutable_envelope() = ThisRun();
    request.set_role(role);
    request.set_index(index);
    request.set_reason(reason);
    EXPECT_TRUE(Call<FailAnswer>(kFail, request).ok());
  }
  void Finish() {
    FinishRequest request;
    *request.mutable_envelope() = ThisRun();
    request.mutable_result()->set_samples(7);
    EXPECT_TRUE(Call<FinishAnswer>(kFinish, request).ok());
  }

  const JobConfig job_ = SmallJob();
  ManualExecutor executor_;
  CoordinatorEngine engine_{job_, kRunId, &executor_};
};

TEST_F(CoordinatorEngineTest, TakesTheNumberOfSamplesFromTheLoadersWhereRank0DoesNotKnowIt) {
  RegisterAll();
  HeartbeatRequest loader = HeartbeatOf(DATA_LOADER, 0);
  loader.mutable_loader()->set_expected_train_samples(5000);
  EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, loader).ok());
  HeartbeatRequest rank = HeartbeatOf(NN_WORKER, 0);
  rank.mutable_train()->set_samples(2000);
  rank.mutable_train()->set_samples_per_second(100);
  EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, rank).ok());
  EXPECT_EQ(engine_.Status().train().expected_samples(), 5000u);
  EXPECT_EQ(engine_.Status().train().seconds_left(), 30);
  rank.mutable_train()->set_expected_samples(2500);
  rank.mutable_train()->set_seconds_left(5);
  EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, rank).ok());
  EXPECT_EQ(engine_.Status().train().expected_samples(), 2500u);
  EXPECT_EQ(engine_.Status().train().seconds_left(), 5);
}

TEST_F(CoordinatorEngineTest, RunsOnceEveryMemberIsReady) {
  RegisterAll();
  HeartbeatRequest loading = HeartbeatOf(EMBEDDING_PS, 1);
  loading.set_ready(false);
  EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, loading).ok());
  for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
    EXPECT_EQ(Heartbeat(role, 0)->state(), STARTING) << "embedding_ps 1 still loads";
    EXPECT_EQ(Heartbeat(role, 0)->members_size(), 0);
  }
  EXPECT_FALSE(engine_.Status().roles(3).ready());
  const auto answer = Heartbeat(EMBEDDING_PS, 1);
  EXPECT_EQ(answer->state(), RUNNING);
  ASSERT_EQ(answer->members_size(), 5);
  for (const Member& member : answer->members()) {
    EXPECT_EQ(member.address(), MemberAddress(member.role(), member.index()));
  }
}

TEST_F(CoordinatorEngineTest, AMemberThatSendsHeartbeatsMayLoadForLong) {
  RegisterAll();
  HeartbeatRequest loading = HeartbeatOf(EMBEDDING_PS, 1);
  loading.set_ready(false);
  for (int i = 0; i < 700; ++i) {
    EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, loading).ok());
    for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
      EXPECT_TRUE(Heartbeat(role, 0).ok());
    }
    executor_.AdvanceBy(1000 * 1000);
  }
  EXPECT_EQ(engine_.Status().state(), STARTING);
}

TEST_F(CoordinatorEngineTest, HandsOutTheRunThatEveryCallCarries) {
  RegisterRequest request;
  request.mutable_member()->set_role(NN_WORKER);
  request.set_job_fingerprint(JobFingerprint(job_));
  request.set_incarnation(kFirst);
  const auto answer = Call<RegisterAnswer>(kRegister, request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->envelope().SerializeAsString(), ThisRun().SerializeAsString());
  request.clear_incarnation();
  EXPECT_EQ(Call<RegisterAnswer>(kRegister, request).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CoordinatorEngineTest, RefusesWhoDoesNotBelong) {
  RegisterRequest stranger;
  stranger.mutable_member()->set_role(NN_WORKER);
  stranger.mutable_member()->set_index(0);
  stranger.set_incarnation(kFirst);
  stranger.set_job_fingerprint(JobFingerprint(job_) + 1);
  const absl::Status status = Call<RegisterAnswer>(kRegister, stranger).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("nn_worker 0 belongs to another job"));

  EXPECT_THAT(Register(EMBEDDING_PS, 2).message(), HasSubstr("has no embedding_ps 2"));
  EXPECT_THAT(Register(COORDINATOR, 0).message(), HasSubstr("has no coordinator"));
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 0).status().code(), absl::StatusCode::kFailedPrecondition);
}

// In containers a restarted process has the number and the address of the one before it.
TEST_F(CoordinatorEngineTest, ARestartedMemberEndsTheRunThoughItHasTheSameNumberAndAddress) {
  StartRun();
  const absl::Status status = Register(EMBEDDING_PS, 1, kFirst + 1, /*pid=*/1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("embedding_ps 1 (process 1) was started again"));
  EXPECT_EQ(engine_.Status().state(), FAILED);
  EXPECT_EQ(engine_.Status().stop_reason(), status.message());
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->state(), FAILED);
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1, kFirst)->state(), FAILED) << "if it lives, it is told";
}

TEST_F(CoordinatorEngineTest, ARestartedMemberEndsTheRunWhileItStartsAsWell) {
  EXPECT_TRUE(Register(EMBEDDING_PS, 0).ok());
  EXPECT_EQ(Register(EMBEDDING_PS, 0, kFirst + 1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(engine_.Status().state(), FAILED);
  EXPECT_TRUE(engine_.EveryoneKnowsTheEnd()) << "nobody waits for the dead one";
}

TEST_F(CoordinatorEngineTest, ARestartAfterTheEndIsRefusedWithTheEndAndChangesNothing) {
  StartRun();
  Fail(DATA_LOADER, 0, "cannot open day_3");
  EXPECT_EQ(Register(EMBEDDING_PS, 1, kFirst + 1).message(),
            "the run has failed: data_loader 0: cannot open day_3");
  EXPECT_EQ(engine_.Status().stop_reason(), "data_loader 0: cannot open day_3");
}

TEST_F(CoordinatorEngineTest, ARestartAfterASuccessfulEndIsRefused) {
  StartRun();
  Finish();
  EXPECT_EQ(Register(EMBEDDING_PS, 1, kFirst + 1).message(), "the run has finished");
  EXPECT_EQ(engine_.Status().state(), FINISHED);
}

TEST_F(CoordinatorEngineTest, ALateCopyOfARegisterChangesNothingAndIsNoSignOfLife) {
  StartRun();
  Beat(8, EMBEDDING_WORKER);
  EXPECT_TRUE(Register(EMBEDDING_WORKER, 0).ok());
  EXPECT_EQ(engine_.Status().state(), RUNNING);
  EXPECT_TRUE(engine_.Status().roles(1).ready());
  Beat(1, EMBEDDING_WORKER);
  EXPECT_EQ(engine_.Status().state(), FAILED);
}

TEST_F(CoordinatorEngineTest, AHeartbeatOfAnotherIncarnationIsRefused) {
  StartRun();
  HeartbeatRequest other = HeartbeatOf(NN_WORKER, 0, kFirst + 1);
  other.mutable_train()->set_step(99);
  const absl::Status status = Call<HeartbeatAnswer>(kHeartbeat, other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("not the nn_worker 0 that has registered"));
  EXPECT_EQ(engine_.Status().train().step(), 0u);
  EXPECT_EQ(engine_.Status().state(), RUNNING);
}

TEST_F(CoordinatorEngineTest, EveryCallOfAnotherRunIsRefusedAndChangesNothing) {
  StartRun();
  HeartbeatRequest heartbeat = HeartbeatOf(NN_WORKER, 0);
  heartbeat.mutable_train()->set_step(99);
  FinishRequest finish;
  FailRequest fail;
  StoreSetRequest set;
  set.set_key("rank/0");
  set.set_value("an old address");
  StoreGetRequest get;
  get.set_key("rank/0");
  LeaseSplitRequest lease;
  lease.mutable_call()->set_number(1);
  lease.mutable_call()->set_oldest_open(1);
  lease.set_num_splits(2);
  Envelope generation = ThisRun();
  generation.set_generation(2);
  Envelope job = ThisRun();
  job.set_job_fingerprint(JobFingerprint(job_) + 1);
  for (const Envelope& other : {AnotherRun(), generation, job, Envelope()}) {
    const auto refuses = [&](const rpc::Method& method, auto answer, auto* request) {
      *request->mutable_envelope() = other;
      const absl::Status status = Call<decltype(answer)>(method, *request).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << method.path;
      EXPECT_THAT(status.message(), HasSubstr("another run")) << method.path;
    };
    refuses(kHeartbeat, HeartbeatAnswer(), &heartbeat);
    refuses(kFinish, FinishAnswer(), &finish);
    refuses(kFail, FailAnswer(), &fail);
    refuses(kStoreSet, StoreSetAnswer(), &set);
    refuses(kStoreGet, StoreGetAnswer(), &get);
    refuses(kLeaseSplit, LeaseSplitAnswer(), &lease);
  }
  EXPECT_EQ(engine_.Status().state(), RUNNING);
  EXPECT_EQ(engine_.Status().train().step(), 0u);
  *get.mutable_envelope() = ThisRun();
  EXPECT_FALSE(Call<StoreGetAnswer>(kStoreGet, get)->found());
  *lease.mutable_envelope() = ThisRun();
  EXPECT_EQ(Call<LeaseSplitAnswer>(kLeaseSplit, lease)->split(), 0u);
}

TEST_F(CoordinatorEngineTest, StatusIsForAnybodyWhoAsksForNoOtherRun) {
  StatusRequest request;
  EXPECT_EQ(Call<StatusAnswer>(kStatus, request)->run_id(), kRunId);
  request.set_run_id(kRunId);
  EXPECT_EQ(Call<StatusAnswer>(kStatus, request)->generation(), 1u);
  request.set_run_id(kRunId + 1);
  EXPECT_EQ(Call<StatusAnswer>(kStatus, request).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoordinatorEngineTest, AMemberSilentForMoreThanEightSecondsIsLost) {
  StartRun();
  Beat(8, EMBEDDING_WORKER);
  EXPECT_EQ(engine_.Status().state(), RUNNING);
  Beat(1, EMBEDDING_WORKER);
  EXPECT_EQ(engine_.Status().state(), FAILED);
  EXPECT_THAT(engine_.Status().stop_reason(), HasSubstr("embedding_worker 0"));
  EXPECT_THAT(Heartbeat(NN_WORKER, 0)->stop_reason(), HasSubstr("embedding_worker 0"));
}

TEST_F(CoordinatorEngineTest, AMemberMayPauseForFiveSeconds) {
  StartRun();
  Beat(5, NN_WORKER);
  Beat(5, DATA_LOADER);
  EXPECT_EQ(engine_.Status().state(), RUNNING);
}

TEST_F(CoordinatorEngineTest, ItsOwnStandstillIsNoSilenceOfMembers) {
  StartRun();
  Beat(1, COORDINATOR);  // of all members
  executor_.JumpBy(36 * 1000 * 1000);
  executor_.RunReady();
  EXPECT_EQ(engine_.Status().state(), RUNNING) << engine_.Status().stop_reason();
}

TEST_F(CoordinatorEngineTest, AMemberHeardAfterAStandstillMayBeSilentForEightSecondsAndNoLonger) {
  StartRun();
  Beat(1, COORDINATOR);  // of all members
  executor_.JumpBy(36 * 1000 * 1000);
  EXPECT_TRUE(Heartbeat(EMBEDDING_WORKER, 0).ok()) << "before the engine's first tick";
  executor_.RunReady();
  Beat(9, EMBEDDING_WORKER);
  EXPECT_THAT(engine_.Status().stop_reason(), HasSubstr("embedding_worker 0"));
}

TEST_F(CoordinatorEngineTest, WhoNeverRegistersIsNamedAfterTheStartTimeout) {
  EXPECT_TRUE(Register(NN_WORKER, 0).ok());
  for (int i = 0; i < 601; ++i) {
    EXPECT_TRUE(Heartbeat(NN_WORKER, 0).ok());
    executor_.AdvanceBy(1000 * 1000);
  }
  EXPECT_EQ(engine_.Status().state(), FAILED);
  EXPECT_THAT(engine_.Status().stop_reason(),
              HasSubstr("no data_loader 0, embedding_worker 0, embedding_ps 0, embedding_ps 1"));
}

TEST_F(CoordinatorEngineTest, TheFirstCauseOfAFailureIsKept) {
  RegisterAll();
  Fail(DATA_LOADER, 0, "cannot open day_3");
  Fail(NN_WORKER, 0, "the peer is away");
  Finish();
  EXPECT_EQ(engine_.Status().state(), FAILED);
  EXPECT_EQ(engine_.Status().stop_reason(), "data_loader 0: cannot open day_3");
  FailRequest echo;
  *echo.mutable_envelope() = ThisRun();
  echo.set_role(NN_WORKER);
  echo.set_index(1);
  echo.set_reason("the peer is away");
  const auto told = Call<FailAnswer>(kFail, echo);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->stop_reason(), "data_loader 0: cannot open day_3");
}

TEST_F(CoordinatorEngineTest, FinishedIsFinal) {
  RegisterAll();
  Finish();
  Fail(NN_WORKER, 0, "too late");
  executor_.AdvanceBy(60 * 1000 * 1000);
  EXPECT_EQ(engine_.Status().state(), FINISHED);
  EXPECT_EQ(engine_.Status().result().samples(), 7u);
}

TEST_F(CoordinatorEngineTest, KnowsWhenEveryoneHasHeardOfTheEnd) {
  RegisterAll();
  EXPECT_FALSE(engine_.EveryoneKnowsTheEnd());
  Finish();
  Heartbeat(DATA_LOADER, 0).IgnoreError();
  Heartbeat(EMBEDDING_WORKER, 0).IgnoreError();
  Heartbeat(EMBEDDING_PS, 0).IgnoreError();
  Heartbeat(EMBEDDING_PS, 1).IgnoreError();
  EXPECT_FALSE(engine_.EveryoneKnowsTheEnd());
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->state(), FINISHED);
  EXPECT_TRUE(engine_.EveryoneKnowsTheEnd());
}

TEST_F(CoordinatorEngineTest, KeepsWhatCollectivesStore) {
  StoreSetRequest set;
  *set.mutable_envelope() = ThisRun();
  set.set_key("rank/0");
  set.set_value(std::string("\0address", 8));
  StoreGetRequest get;
  *get.mutable_envelope() = ThisRun();
  get.set_key("rank/0");
  EXPECT_FALSE(Call<StoreGetAnswer>(kStoreGet, get)->found());
  EXPECT_TRUE(Call<StoreSetAnswer>(kStoreSet, set).ok());
  EXPECT_TRUE(Call<StoreSetAnswer>(kStoreSet, set).ok()) << "a repeated call";
  EXPECT_EQ(Call<StoreGetAnswer>(kStoreGet, get)->value(), std::string("\0address", 8));
  set.set_value("other");
  EXPECT_EQ(Call<StoreSetAnswer>(kStoreSet, set).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(CoordinatorEngineTest, LeasesSplitsToMembersOfThisRunOnly) {
  LeaseSplitRequest request;
  request.mutable_call()->set_number(1);
  request.mutable_call()->set_oldest_open(1);
  request.set_num_splits(2);
  EXPECT_EQ(Call<LeaseSplitAnswer>(kLeaseSplit, request).status().code(),
            absl::StatusCode::kFailedPrecondition);
  *request.mutable_envelope() = ThisRun();
  EXPECT_EQ(Call<LeaseSplitAnswer>(kLeaseSplit, request)->split(), 0u);
}

TEST_F(CoordinatorEngineTest, ARepeatedLeaseTakesNoSecondSplit) {
  LeaseSplitRequest request;
  *request.mutable_envelope() = ThisRun();
  request.mutable_call()->set_number(1);
  request.mutable_call()->set_oldest_open(1);
  request.set_num_splits(2);
  EXPECT_EQ(Call<LeaseSplitAnswer>(kLeaseSplit, request)->split(), 0u);
  EXPECT_EQ(Call<LeaseSplitAnswer>(kLeaseSplit, request)->split(), 0u);
  request.mutable_call()->set_number(2);
  request.mutable_call()->set_oldest_open(2);
  EXPECT_EQ(Call<LeaseSplitAnswer>(kLeaseSplit, request)->split(), 1u);
  request.mutable_call()->set_number(1);
  request.mutable_call()->set_oldest_open(1);
  EXPECT_EQ(Call<LeaseSplitAnswer>(kLeaseSplit, request)->outcome(), OUTCOME_OLD);
}

TEST_F(CoordinatorEngineTest, ALeaseOfALoaderThatDoesNotExistIsRefused) {
  LeaseSplitRequest request;
  *request.mutable_envelope() = ThisRun();
  request.mutable_call()->set_sender(static_cast<uint32_t>(job_.data_loader().replicas()));
  request.mutable_call()->set_number(1);
  request.mutable_call()->set_oldest_open(1);
  request.set_num_splits(2);
  const absl::Status status = Call<LeaseSplitAnswer>(kLeaseSplit, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("call.sender"));
  request.mutable_call()->set_sender(0);
  EXPECT_EQ(Call<LeaseSplitAnswer>(kLeaseSplit, request)->split(), 0u) << "nothing was leased";
}

TEST_F(CoordinatorEngineTest, ShowsTheProgressThatHeartbeatsBring) {
  RegisterAll();
  HeartbeatRequest beat = HeartbeatOf(NN_WORKER, 0);
  beat.mutable_train()->set_step(12);
  EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, beat).ok());
  HeartbeatRequest loader = HeartbeatOf(DATA_LOADER, 0);
  loader.mutable_loader()->set_quarantined(3);
  EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, loader).ok());
  const StatusAnswer status = engine_.Status();
  EXPECT_EQ(status.job_name(), "small");
  EXPECT_EQ(status.train().step(), 12u);
  EXPECT_EQ(status.roles(0).loader().quarantined(), 3u);
}

TEST_F(CoordinatorEngineTest, MalformedAndUnknownCallsAreAnswered) {
  rpc::Message garbage;
  garbage.header = "\xff\xff\xff";
  absl::Status status;
  engine_.Handle(kRegister, std::move(garbage),
                 [&](absl::StatusOr<rpc::Message> reply) { status = reply.status(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  engine_.Handle({"/satrap.EmbeddingPs/Lookup", true}, rpc::Message(),
                 [&](absl::StatusOr<rpc::Message> reply) { status = reply.status(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace satrap
