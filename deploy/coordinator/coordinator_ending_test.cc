// The fields of a generation's Ending other than its text. The words of the text must not decide
// anything.

#include <string>

#include "common/role/ending.h"
#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

// A text with all phrases that any build has ever searched for.
constexpr char kPlanted[] =
    "the run has failed: this generation is over: nn_worker 7: the coordinator has not answered "
    "for "
    "8 s; nothing is lost; no work is lost; continue from another cut with `satrap resume RUN "
    "--from "
    "CUT`";

class CoordinatorEndingTest : public CoordinatorFixture {};

TEST_F(CoordinatorEndingTest, AFailureHasItsMemberAsOriginWhateverItsTextNames) {
  StartRun();
  const FailAnswer told = Fail(EMBEDDING_PS, 1, kPlanted, absl::StatusCode::kUnavailable);
  EXPECT_EQ(told.state(), RESTARTING);
  EXPECT_TRUE(IsOf(told.ending(), EMBEDDING_PS, 1));
  EXPECT_EQ(told.ending().why(), Ending::MEMBER_FAILED);
  EXPECT_EQ(told.ending().loss(), Ending::UNKNOWN);
  EXPECT_EQ(told.ending().advice(), Ending::RESUME);
  EXPECT_EQ(told.ending().text(), std::string("embedding_ps 1: ") + kPlanted);
  EXPECT_EQ(ending().SerializeAsString(), told.ending().SerializeAsString());
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->ending().SerializeAsString(), ending().SerializeAsString());
}

TEST_F(CoordinatorEndingTest, TheAdviceOfAFailureIsPassedOn) {
  StartRun();
  FailRequest failed = FailOf(EMBEDDING_PS, 0, "a.rows is damaged", absl::StatusCode::kDataLoss);
  failed.mutable_ending()->set_advice(Ending::RESUME_FROM_ANOTHER_CUT);
  ASSERT_TRUE(Call<FailAnswer>(kFail, failed).ok());
  EXPECT_EQ(state(), FAILED);
  EXPECT_EQ(ending().advice(), Ending::RESUME_FROM_ANOTHER_CUT);
}

TEST_F(CoordinatorEndingTest, ALostMemberIsTheOrigin) {
  StartRun();
  Beat(9, EMBEDDING_WORKER);
  EXPECT_EQ(ending().why(), Ending::MEMBER_LOST);
  EXPECT_TRUE(IsOf(ending(), EMBEDDING_WORKER, 0)) << ending().ShortDebugString();
  Begin("x");
  StartRun();
  ASSERT_TRUE(Register(EMBEDDING_PS, 1, kFirst + 1).ok());
  ASSERT_TRUE(Heartbeat(EMBEDDING_PS, 1, kFirst + 1).ok());
  EXPECT_EQ(ending().why(), Ending::MEMBER_LOST);
  EXPECT_TRUE(IsOf(ending(), EMBEDDING_PS, 1)) << "it was started again";
}

TEST_F(CoordinatorEndingTest, ALogThatCannotBeWrittenIsTheCoordinatorsOwnFailure) {
  StartRun();
  Break("sync_folder /runs/small/log");
  EXPECT_FALSE(MakeAndCommit(1).ok());
  EXPECT_EQ(ending().why(), Ending::LOG_NOT_WRITTEN);
  EXPECT_TRUE(IsOf(ending(), COORDINATOR, 0));
}

TEST_F(CoordinatorEndingTest, ALaterGenerationIsTheFailureOfNobody) {
  StartRun();
  Supersede();
  Beat(4, COORDINATOR);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::SUPERSEDED);
  EXPECT_FALSE(ending().has_origin());
}

TEST_F(CoordinatorEndingTest, OnlyALastCutLosesNothing) {
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  ASSERT_TRUE(Leave(1, 1).ok());
  EXPECT_EQ(ending().why(), Ending::ASKED);
  EXPECT_EQ(ending().loss(), Ending::NOTHING);
  BeginNewRun();
  RegisterAll();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  EXPECT_EQ(ending().loss(), Ending::NOTHING) << "it has not begun";
  BeginNewRun();
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  Fail(EMBEDDING_PS, 0, kPlanted, absl::StatusCode::kUnavailable);
  EXPECT_EQ(state(), STOPPED);
  EXPECT_EQ(ending().loss(), Ending::UNKNOWN) << ending().text();
  EXPECT_THAT(reason(), HasSubstr("nothing is lost"));
}

TEST_F(CoordinatorEndingTest, TheStepsThatAreLostAreToldAsANumber) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  HeartbeatRequest beat = HeartbeatOf(NN_WORKER, 0);
  beat.mutable_train()->set_step(17);
  ASSERT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, beat).ok());
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  Fail(NN_WORKER, 0, "no answer", absl::StatusCode::kUnavailable);
  EXPECT_EQ(ending().loss(), Ending::STEPS);
  EXPECT_EQ(ending().lost_steps(), 7u);
}

TEST_F(CoordinatorEndingTest, AGenerationThatRunsHasNone) {
  StartRun();
  EXPECT_FALSE(engine_->Status().has_ending());
  EXPECT_FALSE(Heartbeat(NN_WORKER, 0)->has_ending());
}

// A start, a resume or a change of size gives a run all its restarts back. A failure must not do
// so, even if its text is a word such as "resume".
TEST_F(CoordinatorEndingTest, ACauseThatReadsLikeAWishIsARestartAllTheSame) {
  job_.set_max_restarts(4);
  BeginNewRun();
  for (const char* word : {"start", "resume", "scale", "scaled"}) {
    Begin(word);
    EXPECT_EQ(Log().last_generation()->began(), BEGAN_RESTART) << word;
    EXPECT_EQ(Log().last_generation()->ended().text(), word);
  }
  EXPECT_EQ(Log().restarts_without_cut(), 4);
  const StatusAnswer status = engine_->Status();
  ASSERT_EQ(status.restarts_size(), 4) << "none is an announcement";
  for (const Restart& restart : status.restarts()) {
    EXPECT_EQ(restart.began(), BEGAN_RESTART);
  }
}

TEST_F(CoordinatorEndingTest, AShortageEndsTheRunAtTheSecondTimeBeforeReadyWithItsCure) {
  const auto fail_of_memory = [this] {
    FailRequest failed = FailOf(EMBEDDING_PS, 1, kPlanted, absl::StatusCode::kResourceExhausted);
    failed.mutable_ending()->set_kind(Ending::NO_MEMORY);
    return Call<FailAnswer>(kFail, failed)->state();
  };
  RegisterAll();
  EXPECT_EQ(fail_of_memory(), RESTARTING);
  EXPECT_EQ(ending().kind(), Ending::NO_MEMORY);
  EXPECT_TRUE(ending().before_ready());
  const Ending first = ending();
  BeginAfter(first);
  RegisterAll();
  EXPECT_EQ(fail_of_memory(), FAILED);
  EXPECT_THAT(reason(), HasSubstr("no restart cures it: give it more memory"));
}

TEST_F(CoordinatorEndingTest, AShortageAfterAllWereReadyIsNotTheSecondTime) {
  FailRequest failed = FailOf(EMBEDDING_PS, 1, "x", absl::StatusCode::kResourceExhausted);
  failed.mutable_ending()->set_kind(Ending::NO_DESCRIPTORS);
  StartRun();
  EXPECT_EQ(Call<FailAnswer>(kFail, failed)->state(), RESTARTING);
  EXPECT_FALSE(ending().before_ready());
  const Ending first = ending();
  BeginAfter(first);
  RegisterAll();
  *failed.mutable_envelope() = ThisRun();
  EXPECT_EQ(Call<FailAnswer>(kFail, failed)->state(), RESTARTING);
  // A resume is not counted as a restart: whoever resumed the run may have fixed what was wrong.
  Resume();
  RegisterAll();
  *failed.mutable_envelope() = ThisRun();
  EXPECT_EQ(Call<FailAnswer>(kFail, failed)->state(), RESTARTING);
}

TEST_F(CoordinatorEndingTest, WhoRegistersAtAGenerationThatIsOverIsToldToWait) {
  StartRun();
  Fail(NN_WORKER, 0, "the peer is away", absl::StatusCode::kUnavailable);
  const auto late = Call<RegisterAnswer>(kRegister, RegisterOf(EMBEDDING_PS, 0, kFirst + 7));
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_TRUE(late->wait());
  EXPECT_FALSE(late->has_envelope());
  EXPECT_FALSE(Heartbeat(EMBEDDING_PS, 0, kFirst + 7).ok()) << "it is registered nowhere";
  BeatAll();
  EXPECT_TRUE(engine_->EveryoneKnowsTheEnd()) << "nobody waits for who was told so";
}

TEST_F(CoordinatorEndingTest, ARunThatHasFailedTellsItToWhoRegisters) {
  StartRun();
  Fail(NN_WORKER, 0, "wrong");
  ASSERT_EQ(state(), FAILED);
  const auto late = Call<RegisterAnswer>(kRegister, RegisterOf(EMBEDDING_PS, 0, kFirst + 7));
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_FALSE(late->wait());
}

TEST_F(CoordinatorEndingTest, MembersAreToldToWhoDoesNotKnowThem) {
  RegisterAll();
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->members_size(), 0) << "not all are ready";
  BeatAll();
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->members_size(), 5);
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->members_size(), 5) << "the last answer may be lost";
  HeartbeatRequest knows = HeartbeatOf(NN_WORKER, 0);
  knows.set_knows_members(true);
  const auto answer = Call<HeartbeatAnswer>(kHeartbeat, knows);
  EXPECT_EQ(answer->state(), RUNNING);
  EXPECT_EQ(answer->members_size(), 0);
}

}  // namespace
}  // namespace satrap
