// Who has a place in a generation: second processes of one pod, and twins in other pods.

#include <string>
#include <vector>

#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CoordinatorPlacesTest : public CoordinatorFixture {
 protected:
  static constexpr uint64_t kSecond = kFirst + 1;
  static constexpr char kPod[] = "pod-1";
  static constexpr char kTwin[] = "pod-2";

  CoordinatorPlacesTest() {
    options_.warn = [this](const std::string& warning) { warnings_.push_back(warning); };
    options_.build = "b0";
    BeginNewRunInPods();
  }

  RegisterRequest RegisterIn(const std::string& holder, Role role, int index,
                             uint64_t incarnation) const {
    RegisterRequest request = RegisterOf(role, index, incarnation);
    request.set_holder(holder);
    return request;
  }
  // Why the process has to wait; "" if it has been registered.
  std::string Ask(const std::string& holder, Role role, int index, uint64_t incarnation) {
    return Ask(RegisterIn(holder, role, index, incarnation));
  }
  std::string Ask(const RegisterRequest& request) {
    const auto answer = Call<RegisterAnswer>(kRegister, request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return "an error";
    EXPECT_EQ(answer->wait(), answer->has_why_wait());
    EXPECT_NE(answer->wait(), answer->has_envelope());
    return answer->why_wait();
  }
  // Registers all members with the holder kPod, as if each role had a pod of that name.
  void RegisterMembers() {
    EXPECT_EQ(Ask(kPod, DATA_LOADER, 0, kFirst), "");
    EXPECT_EQ(Ask(kPod, EMBEDDING_WORKER, 0, kFirst), "");
    EXPECT_EQ(Ask(kPod, EMBEDDING_PS, 0, kFirst), "");
    EXPECT_EQ(Ask(kPod, EMBEDDING_PS, 1, kFirst), "");
    EXPECT_EQ(Ask(kPod, NN_WORKER, 0, kFirst), "");
  }
  void StartMembers() {
    RegisterMembers();
    BeatAll();
    EXPECT_EQ(state(), RUNNING);
  }
  FailAnswer FailAs(uint64_t incarnation) {
    FailRequest request =
        FailOf(EMBEDDING_PS, 1, "the address is in use", absl::StatusCode::kUnimplemented);
    request.set_incarnation(incarnation);
    const auto answer = Call<FailAnswer>(kFail, request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : FailAnswer();
  }

  std::vector<std::string> warnings_;
};

// A PS was killed, and its supervisor has started it again while the dead process still counts as
// the member.
TEST_F(CoordinatorPlacesTest, AProcessThatFailsBeforeItIsHeardAsAMemberHarmsNobody) {
  StartMembers();
  EXPECT_EQ(Ask(kPod, EMBEDDING_PS, 1, kSecond), "");
  const FailAnswer told = FailAs(kSecond);
  EXPECT_EQ(told.state(), RESTARTING) << "it is started again";
  EXPECT_EQ(told.ending().text(), "embedding_ps 1: the address is in use");
  EXPECT_EQ(state(), RUNNING);
  EXPECT_EQ(Log().end(), nullptr);
  EXPECT_THAT(warnings_, ElementsAre("a process that is no member has failed: embedding_ps 1: the "
                                     "address is in use"));
  EXPECT_EQ(FailAs(kSecond + 1).state(), RESTARTING) << "of one that has not registered";
  EXPECT_EQ(state(), RUNNING);
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1)->state(), RUNNING);
}

TEST_F(CoordinatorPlacesTest, AFailureBeforeTheFirstHeartbeatCountsOnlyWithoutAPod) {
  EXPECT_EQ(Ask(kPod, EMBEDDING_PS, 1, kSecond), "");
  EXPECT_EQ(FailAs(kSecond).state(), RESTARTING);
  EXPECT_EQ(state(), STARTING);
  warnings_.clear();
  EXPECT_EQ(Ask("", EMBEDDING_PS, 1, kFirst), "");
  EXPECT_EQ(FailAs(kFirst).state(), FAILED);
  EXPECT_EQ(state(), FAILED);
  EXPECT_EQ(FailAs(kSecond).state(), FAILED) << "whoever asks is told the end";
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(CoordinatorPlacesTest, ASecondProcessOfOnePodEndsTheGenerationOnceItIsHeard) {
  StartMembers();
  EXPECT_EQ(Ask(kPod, EMBEDDING_PS, 1, kSecond), "");
  EXPECT_EQ(state(), RUNNING);
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1, kSecond)->state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("embedding_ps 1 (process 1) was started again"));
}

TEST_F(CoordinatorPlacesTest, TheSecondProcessOfAPodSaysHowTheFirstEnded) {
  StartMembers();
  RegisterRequest next = RegisterIn(kPod, EMBEDDING_PS, 1, kSecond);
  next.mutable_member()->set_pid(2);
  next.mutable_before()->set_text("was killed by signal 9 (Killed)");
  next.mutable_before()->mutable_origin()->set_pid(1);
  EXPECT_EQ(Ask(next), "");
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1, kSecond)->state(), RESTARTING);
  EXPECT_EQ(reason(),
            "embedding_ps 1 (process 1) was killed by signal 9 (Killed); it was started again, as "
            "process 2 at 'unix:/run/3.1'");
  EXPECT_EQ(ending().why(), Ending::MEMBER_LOST);
}

// `before` says how a process other than the member ended. That process ran after the member and
// before the process that registers now, or it ran before the container was started again.
TEST_F(CoordinatorPlacesTest, HowAnotherProcessThanTheMemberEndedIsNotSaidOfTheMember) {
  StartMembers();
  RegisterRequest next = RegisterIn(kPod, EMBEDDING_PS, 1, kSecond);
  next.mutable_before()->set_text("exited with code 75");
  next.mutable_before()->mutable_origin()->set_pid(9);
  EXPECT_EQ(Ask(next), "");
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1, kSecond)->state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("embedding_ps 1 (process 1) was started again"));
}

TEST_F(CoordinatorPlacesTest, ATwinWaitsAsLongAsTheMemberIsHeard) {
  StartMembers();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Ask(kTwin, EMBEDDING_PS, 1, kSecond),
              "embedding_ps 1 already runs in another pod (process 1 at 'unix:/run/3.1', pod "
              "pod-1)");
    Beat(1, COORDINATOR);
  }
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1, kSecond).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "it is not registered";
  EXPECT_EQ(FailAs(kSecond).state(), RESTARTING);
  EXPECT_EQ(state(), RUNNING);
}

TEST_F(CoordinatorPlacesTest, OfTwoThatRegisterBeforeEitherIsHeardTheFirstThatIsHeardIsTheMember) {
  EXPECT_EQ(Ask(kTwin, EMBEDDING_PS, 1, kSecond), "");
  StartMembers();
  const auto told = Heartbeat(EMBEDDING_PS, 1, kSecond);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_TRUE(told->wait());
  EXPECT_EQ(told->state(), RUNNING);
  EXPECT_THAT(told->ending().text(), HasSubstr("embedding_ps 1 already runs in another pod"));
  EXPECT_FALSE(Heartbeat(EMBEDDING_PS, 1)->wait());
  EXPECT_NE(Ask(kTwin, EMBEDDING_PS, 1, kSecond), "");
  EXPECT_EQ(state(), RUNNING);
}

TEST_F(CoordinatorPlacesTest, WhoIsToldToWaitIsToldSoAgainAndOnlyItsNextProcessMayTakeThePlace) {
  EXPECT_EQ(Ask(kTwin, EMBEDDING_PS, 1, kSecond), "");
  RegisterMembers();
  EXPECT_FALSE(Heartbeat(EMBEDDING_PS, 1)->wait());
  EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1, kSecond)->wait());
  EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1, kSecond)->wait()) << "the answer was lost";
  EXPECT_EQ(SayLeaving(EMBEDDING_PS, 1)->state(), RESTARTING) << "its place is free";
  const auto told = Heartbeat(EMBEDDING_PS, 1, kSecond);
  EXPECT_TRUE(told->wait()) << "a late copy, as the process has exited";
  EXPECT_EQ(told->ending().text(), "embedding_ps 1 ran in another pod until now");
  EXPECT_EQ(Ask(kTwin, EMBEDDING_PS, 1, kSecond), "embedding_ps 1 ran in another pod until now");
  EXPECT_EQ(Ask(kTwin, EMBEDDING_PS, 1, kSecond + 1), "");
  EXPECT_FALSE(Heartbeat(EMBEDDING_PS, 1, kSecond + 1)->wait());
  EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1, kSecond)->wait());
  EXPECT_EQ(state(), STARTING);
}

TEST_F(CoordinatorPlacesTest, AWishOfATwinToLeaveIsNone) {
  EXPECT_EQ(Ask(kTwin, EMBEDDING_PS, 1, kSecond), "");
  StartMembers();
  EXPECT_TRUE(SayLeaving(EMBEDDING_PS, 1, kSecond)->wait());
  EXPECT_FALSE(Heartbeat(NN_WORKER, 0)->has_wish());
}

TEST_F(CoordinatorPlacesTest, ATwinTakesThePlaceOfAMemberThatIsSilentForThreeSeconds) {
  StartMembers();
  Beat(3, EMBEDDING_PS);
  EXPECT_NE(Ask(kTwin, EMBEDDING_PS, 1, kSecond), "");
  Beat(1, EMBEDDING_PS);
  EXPECT_EQ(Ask(kTwin, EMBEDDING_PS, 1, kSecond), "");
  EXPECT_EQ(state(), RUNNING) << "this may be a late copy";
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1, kSecond)->state(), RESTARTING);
  EXPECT_THAT(reason(),
              HasSubstr("embedding_ps 1 (process 1) is lost: it was silent for over 3 s"));
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1)->state(), RESTARTING) << "if it lives, it is told";
}

TEST_F(CoordinatorPlacesTest, AMemberThatIsHeardAgainKeepsItsPlace) {
  StartMembers();
  Beat(4, EMBEDDING_PS);
  EXPECT_EQ(Ask(kTwin, EMBEDDING_PS, 1, kSecond), "");
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1)->state(), RUNNING);
  EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1, kSecond)->wait());
  EXPECT_EQ(state(), RUNNING);
}

TEST_F(CoordinatorPlacesTest, BeforeTrainingATwinTakesThePlaceWithoutEndingTheGeneration) {
  RegisterMembers();
  EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
  Beat(4, EMBEDDING_PS);
  EXPECT_EQ(Ask(kTwin, EMBEDDING_PS, 1, kSecond), "");
  HeartbeatRequest loading = HeartbeatOf(EMBEDDING_PS, 1, kSecond);
  loading.set_ready(false);
  EXPECT_EQ(Call<HeartbeatAnswer>(kHeartbeat, loading)->state(), STARTING);
  EXPECT_FALSE(Heartbeat(EMBEDDING_PS, 1).ok()) << "it has lost its place";
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 0)->state(), STARTING) << "the twin is not ready";
  EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1, kSecond).ok());
  EXPECT_EQ(state(), RUNNING);
}

TEST_F(CoordinatorPlacesTest, TheStatusTellsTheMemoryThatAMemberUses) {
  StartMembers();
  EXPECT_FALSE(engine_->Status().roles(0).has_memory_bytes());
  const Member member = engine_->Status().roles(0).member();
  HeartbeatRequest heartbeat = HeartbeatOf(member.role(), static_cast<int>(member.index()));
  heartbeat.set_memory_bytes(12345);
  EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, heartbeat).ok());
  EXPECT_EQ(engine_->Status().roles(0).memory_bytes(), 12345u);
}

TEST_F(CoordinatorPlacesTest, TheCoordinatorsOwnStandstillIsNoSilence) {
  StartMembers();
  executor_.JumpBy(36 * 1000 * 1000);
  EXPECT_NE(Ask(kTwin, EMBEDDING_PS, 1, kSecond), "") << "before the engine's first tick";
  executor_.RunReady();
  EXPECT_NE(Ask(kTwin, EMBEDDING_PS, 1, kSecond), "");
  EXPECT_EQ(state(), RUNNING);
}

TEST_F(CoordinatorPlacesTest, AnIndexBeyondTheJobWaitsAndAfterAGenerationsEndEverybodyDoes) {
  EXPECT_EQ(Ask(kPod, EMBEDDING_PS, 2, kFirst), "job 'small' has no embedding_ps 2");
  StartMembers();
  Fail(NN_WORKER, 0, "the peer is away", absl::StatusCode::kUnavailable);
  ASSERT_EQ(state(), RESTARTING);
  EXPECT_EQ(Ask(kPod, EMBEDDING_PS, 1, kSecond), "this generation is over");
}

TEST_F(CoordinatorPlacesTest, TheStatusNamesWhoWaitsAndWhy) {
  StartMembers();
  RegisterRequest other = RegisterIn(kPod, NN_WORKER, 0, kSecond);
  other.set_build("b1");
  const std::string build = Ask(other);
  const std::string twin = Ask(kTwin, EMBEDDING_PS, 1, kSecond + 1);
  EXPECT_EQ(Ask(kPod, EMBEDDING_PS, 0, kSecond + 2), "");
  const StatusAnswer status = engine_->Status();
  ASSERT_EQ(status.waiting_size(), 2);
  EXPECT_EQ(status.waiting(0).member().role(), NN_WORKER);
  EXPECT_EQ(status.waiting(0).why(), build);
  EXPECT_EQ(status.waiting(1).member().index(), 1u);
  EXPECT_EQ(status.waiting(1).holder(), kTwin);
  EXPECT_EQ(status.waiting(1).why(), twin);
}

TEST_F(CoordinatorPlacesTest, AProcessOfAnotherBuildWaits) {
  RegisterRequest request = RegisterIn(kPod, NN_WORKER, 0, kFirst);
  request.set_build("b1");
  EXPECT_THAT(Ask(request), HasSubstr("nn_worker 0 was built from other sources"));
  request.set_build("b0");
  request.set_protocol(ProtocolFingerprint() + 1);
  EXPECT_THAT(Ask(request), HasSubstr("nn_worker 0 was built from other sources"));
  request.set_protocol(ProtocolFingerprint());
  EXPECT_EQ(Ask(request), "");
  request.clear_build();
  EXPECT_EQ(Ask(request), "") << "of an unknown build";
}

}  // namespace
}  // namespace satrap
