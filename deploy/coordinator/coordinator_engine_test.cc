#include "deploy/coordinator/coordinator_engine.h"

#include <string>
#include <utility>

#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

using CoordinatorEngineTest = CoordinatorFixture;

TEST_F(CoordinatorEngineTest, TakesTheNumberOfSamplesFromTheLoadersWhereRank0DoesNotKnowIt) {
  RegisterAll();
  HeartbeatRequest loader = HeartbeatOf(DATA_LOADER, 0);
  loader.mutable_loader()->set_expected_train_samples(5000);
  EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, loader).ok());
  HeartbeatRequest rank = HeartbeatOf(NN_WORKER, 0);
  rank.mutable_train()->set_samples(2000);
  rank.mutable_train()->set_samples_per_second(100);
  EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, rank).ok());
  EXPECT_EQ(engine_->Status().train().expected_samples(), 5000u);
  EXPECT_EQ(engine_->Status().train().seconds_left(), 30);
  rank.mutable_train()->set_expected_samples(2500);
  rank.mutable_train()->set_seconds_left(5);
  EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, rank).ok());
  EXPECT_EQ(engine_->Status().train().expected_samples(), 2500u);
  EXPECT_EQ(engine_->Status().train().seconds_left(), 5);
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
  EXPECT_FALSE(engine_->Status().roles(3).ready());
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1)->state(), STARTING) << "the log does not show it yet";
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
  EXPECT_EQ(engine_->Status().state(), STARTING);
}

TEST_F(CoordinatorEngineTest, HandsOutWhatAProcessNeedsToKnow) {
  RegisterRequest request = RegisterOf(NN_WORKER, 0);
  const auto answer = Call<RegisterAnswer>(kRegister, request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->envelope().SerializeAsString(), ThisRun().SerializeAsString());
  EXPECT_EQ(answer->job().name(), "small");
  EXPECT_EQ(answer->cut(), "");
  request.clear_incarnation();
  EXPECT_EQ(Call<RegisterAnswer>(kRegister, request).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CoordinatorEngineTest, RefusesWhoDoesNotBelong) {
  EXPECT_EQ(Register(EMBEDDING_PS, 2).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Register(EMBEDDING_PS, 2).message(), HasSubstr("has no embedding_ps 2"));
  EXPECT_THAT(Register(COORDINATOR, 0).message(), HasSubstr("has no coordinator"));
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 0).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoordinatorEngineTest, RefusesAProcessOfAnotherBuild) {
  RegisterRequest request = RegisterOf(NN_WORKER, 0);
  request.set_protocol(ProtocolFingerprint() + 1);
  const absl::Status status = Call<RegisterAnswer>(kRegister, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("nn_worker 0 was built from other sources"));
}

// The restarted process has the same pid as the old one, as in a container, so only its incarnation
// differs.
TEST_F(CoordinatorEngineTest, ARestartedMemberEndsTheGenerationOnceItIsHeard) {
  StartRun();
  EXPECT_TRUE(Register(EMBEDDING_PS, 1, kFirst + 1, /*pid=*/1).ok());
  EXPECT_EQ(state(), RUNNING) << "it may be a late copy from a process that is dead";
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1, kFirst + 1)->state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("embedding_ps 1 (process 1) was started again"));
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->state(), RESTARTING);
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1, kFirst)->state(), RESTARTING) << "if it lives, it is told";
}

TEST_F(CoordinatorEngineTest, ALateRegisterOfADeadProcessNeverEndsTheGeneration) {
  EXPECT_TRUE(Register(NN_WORKER, 0, kFirst - 1).ok()) << "of the generation before";
  StartRun();
  EXPECT_TRUE(Register(EMBEDDING_PS, 1, kFirst - 1).ok());
  Beat(60, COORDINATOR);  // all members' heartbeats
  EXPECT_EQ(state(), RUNNING) << reason();
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->members(4).pid(), 1);
}

TEST_F(CoordinatorEngineTest, TwoLivingProcessesOfOneIndexEndTheGeneration) {
  EXPECT_TRUE(Register(EMBEDDING_PS, 0, kFirst, 10).ok());
  EXPECT_TRUE(Register(EMBEDDING_PS, 0, kFirst + 1, 11).ok());
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 0, kFirst + 1)->state(), STARTING);
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 0, kFirst)->state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("the same --role_index"));
  EXPECT_TRUE(engine_->EveryoneKnowsTheEnd()) << "nobody waits for one that may be dead";
}

// A process that was started for an earlier generation may be so late that it registers in this
// one. It then counts like a process of this generation, so the generation's own process of that
// index is a second one.
TEST_F(CoordinatorEngineTest, AProcessThatRegistersAGenerationTooLateCostsOneRestartAndNoMore) {
  EXPECT_TRUE(Register(EMBEDDING_PS, 1, kFirst - 1).ok());
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1, kFirst - 1)->state(), STARTING);
  const HeartbeatRequest late = HeartbeatOf(EMBEDDING_PS, 1, kFirst - 1);
  RegisterAll();
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1)->state(), RESTARTING) << "two processes of one index";
  Begin(reason());
  StartRun();
  EXPECT_EQ(Call<HeartbeatAnswer>(kHeartbeat, late).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(state(), RUNNING);
}

TEST_F(CoordinatorEngineTest, AProcessThatComesAfterTheEndIsToldTheEndAndChangesNothing) {
  StartRun();
  Fail(DATA_LOADER, 0, "cannot open day_3");
  EXPECT_TRUE(Register(EMBEDDING_PS, 1, kFirst + 1).ok());
  const auto told = Heartbeat(EMBEDDING_PS, 1, kFirst + 1);
  EXPECT_EQ(told->state(), FAILED);
  EXPECT_EQ(told->ending().text(), "data_loader 0: cannot open day_3");
}

TEST_F(CoordinatorEngineTest, ACoordinatorOfARunThatHasFinishedSaysSo) {
  StartRun();
  Finish();
  Begin("the coordinator was killed");
  EXPECT_EQ(state(), FINISHED);
  EXPECT_EQ(engine_->Status().result().samples(), 7u);
  EXPECT_TRUE(Register(EMBEDDING_PS, 1, kFirst + 1).ok());
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1, kFirst + 1)->state(), FINISHED);
}

TEST_F(CoordinatorEngineTest, ALateCopyOfARegisterChangesNothingAndIsNoSignOfLife) {
  StartRun();
  Beat(8, EMBEDDING_WORKER);
  EXPECT_TRUE(Register(EMBEDDING_WORKER, 0).ok());
  EXPECT_EQ(engine_->Status().state(), RUNNING);
  EXPECT_TRUE(engine_->Status().roles(1).ready());
  Beat(1, EMBEDDING_WORKER);
  EXPECT_EQ(state(), RESTARTING);
}

TEST_F(CoordinatorEngineTest, AHeartbeatOfAnotherIncarnationIsRefused) {
  StartRun();
  HeartbeatRequest other = HeartbeatOf(NN_WORKER, 0, kFirst + 1);
  other.mutable_train()->set_step(99);
  const absl::Status status = Call<HeartbeatAnswer>(kHeartbeat, other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("not the nn_worker 0 that has registered"));
  EXPECT_EQ(engine_->Status().train().step(), 0u);
  EXPECT_EQ(engine_->Status().state(), RUNNING);
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
  EXPECT_EQ(engine_->Status().state(), RUNNING);
  EXPECT_EQ(engine_->Status().train().step(), 0u);
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
  EXPECT_EQ(engine_->Status().state(), RUNNING);
  Beat(1, EMBEDDING_WORKER);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(engine_->Status().ending().text(), HasSubstr("embedding_worker 0"));
  EXPECT_THAT(Heartbeat(NN_WORKER, 0)->ending().text(), HasSubstr("embedding_worker 0"));
}

TEST_F(CoordinatorEngineTest, AMemberMayPauseForFiveSeconds) {
  StartRun();
  Beat(5, NN_WORKER);
  Beat(5, DATA_LOADER);
  EXPECT_EQ(engine_->Status().state(), RUNNING);
}

TEST_F(CoordinatorEngineTest, ItsOwnStandstillIsNoSilenceOfMembers) {
  StartRun();
  Beat(1, COORDINATOR);  // all members' heartbeats
  executor_.JumpBy(36 * 1000 * 1000);
  executor_.RunReady();
  EXPECT_EQ(engine_->Status().state(), RUNNING) << engine_->Status().ending().text();
}

TEST_F(CoordinatorEngineTest, AMemberHeardAfterAStandstillMayBeSilentForEightSecondsAndNoLonger) {
  StartRun();
  Beat(1, COORDINATOR);  // all members' heartbeats
  executor_.JumpBy(36 * 1000 * 1000);
  EXPECT_TRUE(Heartbeat(EMBEDDING_WORKER, 0).ok()) << "before the engine's first tick";
  executor_.RunReady();
  Beat(9, EMBEDDING_WORKER);
  EXPECT_THAT(engine_->Status().ending().text(), HasSubstr("embedding_worker 0"));
}

TEST_F(CoordinatorEngineTest, WhoNeverRegistersIsNamedAfterTheStartTimeout) {
  EXPECT_TRUE(Register(NN_WORKER, 0).ok());
  for (int i = 0; i < 601; ++i) {
    EXPECT_TRUE(Heartbeat(NN_WORKER, 0).ok());
    executor_.AdvanceBy(1000 * 1000);
  }
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(engine_->Status().ending().text(),
              HasSubstr("no data_loader 0, embedding_worker 0, embedding_ps 0, embedding_ps 1"));
}

TEST_F(CoordinatorEngineTest, TheFirstCauseOfAFailureIsKept) {
  RegisterAll();
  Fail(DATA_LOADER, 0, "cannot open day_3");
  Fail(NN_WORKER, 0, "the peer is away");
  Finish();
  EXPECT_EQ(engine_->Status().state(), FAILED);
  EXPECT_EQ(engine_->Status().ending().text(), "data_loader 0: cannot open day_3");
  FailRequest echo;
  *echo.mutable_envelope() = ThisRun();
  echo.set_role(NN_WORKER);
  echo.set_index(1);
  echo.mutable_ending()->set_text("the peer is away");
  const auto told = Call<FailAnswer>(kFail, echo);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->ending().text(), "data_loader 0: cannot open day_3");
  EXPECT_EQ(told->state(), FAILED);
}

TEST_F(CoordinatorEngineTest, TheCodeOfAFailureSaysWhetherARestartMayCureIt) {
  using Code = absl::StatusCode;
  for (const Code code :
       {Code::kUnavailable, Code::kDeadlineExceeded, Code::kCancelled, Code::kAborted,
        Code::kUnknown, Code::kInternal, Code::kResourceExhausted}) {
    Begin("x");
    EXPECT_EQ(Fail(NN_WORKER, 0, "the peer is away", code).state(), RESTARTING)
        << absl::StatusCodeToString(code);
    EXPECT_EQ(Log().entries().size(), generation_);
  }
  job_.set_name("another run");
  for (const Code code :
       {Code::kInvalidArgument, Code::kNotFound, Code::kDataLoss, Code::kUnimplemented,
        Code::kFailedPrecondition, Code::kPermissionDenied}) {
    BeginNewRun();
    EXPECT_EQ(Fail(NN_WORKER, 0, "wrong", code).state(), FAILED) << absl::StatusCodeToString(code);
    EXPECT_EQ(reason(), "nn_worker 0: wrong");
  }
}

TEST_F(CoordinatorEngineTest, FinishedIsFinal) {
  RegisterAll();
  Finish();
  Fail(NN_WORKER, 0, "too late");
  executor_.AdvanceBy(60 * 1000 * 1000);
  EXPECT_EQ(engine_->Status().state(), FINISHED);
  EXPECT_EQ(engine_->Status().result().samples(), 7u);
}

TEST_F(CoordinatorEngineTest, KnowsWhenEveryoneHasHeardOfTheEnd) {
  RegisterAll();
  EXPECT_FALSE(engine_->EveryoneKnowsTheEnd());
  Finish();
  Heartbeat(DATA_LOADER, 0).IgnoreError();
  Heartbeat(EMBEDDING_WORKER, 0).IgnoreError();
  Heartbeat(EMBEDDING_PS, 0).IgnoreError();
  Heartbeat(EMBEDDING_PS, 1).IgnoreError();
  EXPECT_FALSE(engine_->EveryoneKnowsTheEnd());
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->state(), FINISHED);
  EXPECT_TRUE(engine_->EveryoneKnowsTheEnd());
}

TEST_F(CoordinatorEngineTest, WhoWasHeardOnlyBeforeTheEndHasNotBeenTold) {
  StartRun();
  Fail(DATA_LOADER, 0, "the disk is gone");
  EXPECT_FALSE(engine_->EveryoneKnowsTheEnd());
  for (const Role role : {EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
    EXPECT_TRUE(Heartbeat(role, 0).ok());
  }
  EXPECT_FALSE(engine_->EveryoneKnowsTheEnd()) << "embedding_ps 1";
  EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
  EXPECT_TRUE(engine_->EveryoneKnowsTheEnd()) << "the loader has told it, and is gone";
}

TEST_F(CoordinatorEngineTest, WaitsForOneThatHasJustRegisteredHoweverOldTheGenerationIs) {
  executor_.AdvanceBy(20 * 1000 * 1000);
  EXPECT_TRUE(Register(NN_WORKER, 0).ok());
  executor_.AdvanceBy(1000 * 1000);
  Fail(DATA_LOADER, 0, "the disk is gone");
  EXPECT_FALSE(engine_->EveryoneKnowsTheEnd());
}

TEST_F(CoordinatorEngineTest, ReadinessOutlastsHeartbeatsThatAreOvertaken) {
  RegisterAll();
  HeartbeatRequest early = HeartbeatOf(EMBEDDING_PS, 1);
  early.set_ready(false);
  EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
  EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, early).ok());
  for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
    EXPECT_TRUE(Heartbeat(role, 0).ok());
  }
  EXPECT_EQ(state(), RUNNING);
}

// A program that is started again and again, but never sends a heartbeat, must not fill the memory.
TEST_F(CoordinatorEngineTest, OfManyProcessesOfOneIndexTheOldestAreForgotten) {
  for (uint64_t i = 1; i <= 100; ++i) EXPECT_TRUE(Register(NN_WORKER, 0, i).ok());
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Register(NN_WORKER, 0, 100).ok()) << "a repeat";
  EXPECT_EQ(Heartbeat(NN_WORKER, 0, 1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Heartbeat(NN_WORKER, 0, 50).ok());
}

TEST_F(CoordinatorEngineTest, WaitsForNobodyWhoHasRegisteredAndIsNotHeard) {
  StartRun();
  Begin("x");
  EXPECT_TRUE(Register(NN_WORKER, 0).ok());
  Fail(DATA_LOADER, 0, "the disk is gone");
  EXPECT_FALSE(engine_->EveryoneKnowsTheEnd()) << "its first heartbeat may be on its way";
  executor_.AdvanceBy(10 * 1000 * 1000);
  EXPECT_TRUE(engine_->EveryoneKnowsTheEnd());
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
  const StatusAnswer status = engine_->Status();
  EXPECT_EQ(status.job_name(), "small");
  EXPECT_EQ(status.train().step(), 12u);
  EXPECT_EQ(status.roles(0).loader().quarantined(), 3u);
}

TEST_F(CoordinatorEngineTest, MalformedAndUnknownCallsAreAnswered) {
  rpc::Message garbage;
  garbage.header = "\xff\xff\xff";
  absl::Status status;
  engine_->Handle(kRegister, std::move(garbage),
                  [&](absl::StatusOr<rpc::Message> reply) { status = reply.status(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  engine_->Handle({"/satrap.EmbeddingPs/Lookup", true}, rpc::Message(),
                  [&](absl::StatusOr<rpc::Message> reply) { status = reply.status(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace satrap
