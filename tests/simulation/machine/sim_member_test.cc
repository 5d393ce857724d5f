#include "tests/simulation/machine/sim_member.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/role/coordinator_client.h"
#include "gtest/gtest.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/machine/sim_network.h"

namespace satrap::simulation {
namespace {

constexpr int64_t kLimitUs = 120000000;
constexpr int64_t kMaxEvents = 1000000;

// A coordinator whose answers the test sets.
class FakeCoordinator final : public rpc::Handler {
 public:
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (!refusal.ok()) return respond(refusal);
    if (method == kRegister) {
      RegisterAnswer answer;
      answer.mutable_envelope()->set_run_id(7);
      answer.mutable_envelope()->set_generation(generation);
      if (waits-- > 0) {
        answer.clear_envelope();
        answer.set_wait(true);
      }
      return respond(rpc::Message{answer.SerializeAsString(), Buffer()});
    }
    if (method == kHeartbeat) {
      HeartbeatRequest heartbeat;
      EXPECT_TRUE(heartbeat.ParseFromString(request.header));
      EXPECT_EQ(heartbeat.envelope().run_id(), 7u);
      HeartbeatAnswer answer;
      if (heartbeat.incarnation() == spare) {
        answer.set_wait(true);
        return respond(rpc::Message{answer.SerializeAsString(), Buffer()});
      }
      if (heartbeat.ready() && state == STARTING) state = RUNNING;
      answer.set_state(state);
      if (state == RUNNING && !heartbeat.knows_members() && tells_members) answer.add_members();
      lists += answer.members_size();
      return respond(rpc::Message{answer.SerializeAsString(), Buffer()});
    }
    if (method == kFail) {
      FailRequest fail;
      EXPECT_TRUE(fail.ParseFromString(request.header));
      failure = fail.ending().text();
      FailAnswer answer;
      answer.set_state(RESTARTING);
      return respond(rpc::Message{answer.SerializeAsString(), Buffer()});
    }
    ASSERT_TRUE(method == kFinish);
    state = FINISHED;
    respond(rpc::Message{FinishAnswer().SerializeAsString(), Buffer()});
  }

  RunState state = STARTING;
  absl::Status refusal;
  std::string failure;
  uint64_t generation = 1;
  int waits = 0;       // until the next generation is there
  uint64_t spare = 0;  // the incarnation that is told that another process has its place
  bool tells_members = true;
  int lists = 0;  // of members that were sent
};

class SimMemberTest : public testing::TestWithParam<uint64_t> {
 protected:
  SimMemberTest()
      : loop_(GetParam()), network_(&loop_, NetworkFaults()), address_(network_.NewAddress()) {
    network_.Listen(address_, &coordinator_process_, &coordinator_);
    channel_ = network_.Connect(address_, &process_);
    StartMember("");
  }
  // Starts a member of the pod `holder` instead of the one that is there.
  void StartMember(const std::string& holder) {
    loop_.DropTasks();
    SimMember::Options options;
    options.registration.mutable_member()->set_role(EMBEDDING_PS);
    options.registration.set_incarnation(1);
    options.registration.set_holder(holder);
    options.process = &process_;
    options.coordinator = channel_.get();
    SimMember::Events events;
    events.registered = [this](const RegisterAnswer&) { member_->Ready(); };
    events.joined = [this] { ++joined_; };
    events.exited = [this](Exit, const std::string&) { ++exits_; };
    member_ = std::make_unique<SimMember>(options, events);
    member_->Start();
  }
  ~SimMemberTest() override { loop_.DropTasks(); }

  bool RunUntilJoined() {
    return loop_.RunUntil([this] { return joined_ > 0; }, kLimitUs, kMaxEvents);
  }
  bool RunUntilRegistered() {
    return loop_.RunUntil([this] { return member_->envelope().generation() > 0; }, kLimitUs,
                          kMaxEvents);
  }
  bool RunUntilExit() {
    return loop_.RunUntil([this] { return exits_ > 0; }, kLimitUs, kMaxEvents);
  }

  SimLoop loop_;
  SimNetwork network_;
  const SimNetwork::Address address_;
  SimProcess process_{&loop_, 1, "member"};
  SimProcess coordinator_process_{&loop_, 1, "coordinator"};
  FakeCoordinator coordinator_;
  std::unique_ptr<rpc::Channel> channel_;
  std::unique_ptr<SimMember> member_;
  int joined_ = 0;
  int exits_ = 0;
};

TEST_P(SimMemberTest, AMemberOfAPodWaitsForItsPlaceAsLongAsItIsAnswered) {
  StartMember("pod-1");
  coordinator_.waits = 20;
  ASSERT_TRUE(RunUntilJoined());
  EXPECT_EQ(exits_, 0);
  EXPECT_EQ(member_->incarnation(), 1u);
}

TEST_P(SimMemberTest, IsAnotherProcessAfterAHeartbeatThatHadNoPlace) {
  StartMember("pod-1");
  coordinator_.spare = 1;
  EXPECT_FALSE(member_->is_heard());
  ASSERT_TRUE(RunUntilJoined());
  EXPECT_TRUE(member_->is_heard());
  EXPECT_GT(member_->incarnation(), 1u);
  EXPECT_EQ(exits_, 0);
}

TEST_P(SimMemberTest, FailsAsAnotherProcessInTheGenerationThatItCannotRun) {
  StartMember("pod-1");
  coordinator_.spare = 1;
  ASSERT_TRUE(RunUntilRegistered());
  member_->Fail(absl::FailedPreconditionError("no machine can run this job"));
  ASSERT_TRUE(RunUntilExit());
  EXPECT_EQ(coordinator_.failure, "no machine can run this job");
}

TEST_P(SimMemberTest, DoesNotFailALaterGenerationForWhatItFoundInAnEarlierOne) {
  StartMember("pod-1");
  coordinator_.spare = 1;
  ASSERT_TRUE(RunUntilRegistered());
  member_->Fail(absl::FailedPreconditionError("no machine can run this job"));
  coordinator_.generation = 2;
  EXPECT_FALSE(RunUntilExit());
  EXPECT_EQ(joined_, 1);
  EXPECT_GT(member_->incarnation(), 1u);
  EXPECT_EQ(coordinator_.failure, "");
}

TEST_P(SimMemberTest, JoinsOnceAndExitsWith0WhenTheRunHasFinished) {
  ASSERT_TRUE(RunUntilJoined());
  member_->Finish(RunResult());
  ASSERT_TRUE(RunUntilExit());
  EXPECT_EQ(member_->exit(), Exit::kDone);
  EXPECT_EQ(joined_, 1);
  EXPECT_TRUE(process_.alive()) << "what it holds can be looked at";
}

TEST_P(SimMemberTest, IsToldOfTheMembersUntilItKnowsThem) {
  ASSERT_TRUE(RunUntilJoined());
  const int lists = coordinator_.lists;
  const int64_t at_us = loop_.NowUs();
  loop_.RunUntil([&] { return loop_.NowUs() > at_us + 20000000; }, kLimitUs, kMaxEvents);
  EXPECT_GE(lists, 1);
  // A heartbeat that the network repeated or delayed may still ask for the list.
  EXPECT_LE(coordinator_.lists, lists + 2);
}

TEST_P(SimMemberTest, ExitsWith1WhenNobodyTellsItOfTheMembers) {
  coordinator_.tells_members = false;
  ASSERT_TRUE(RunUntilExit());
  EXPECT_EQ(member_->exit(), Exit::kFailed);
  EXPECT_EQ(joined_, 0);
}

TEST_P(SimMemberTest, WaitsForTheGenerationAfterOneThatIsOver) {
  coordinator_.waits = 2;
  ASSERT_TRUE(RunUntilJoined());
  EXPECT_EQ(exits_, 0);
}

TEST_P(SimMemberTest, DoesNotWaitForever) {
  coordinator_.waits = 1000000;
  ASSERT_TRUE(RunUntilExit());
  EXPECT_EQ(member_->exit(), Exit::kStartAgain);
}

TEST_P(SimMemberTest, ExitsWith75WhenTheGenerationIsOver) {
  ASSERT_TRUE(RunUntilJoined());
  coordinator_.state = RESTARTING;
  ASSERT_TRUE(RunUntilExit());
  EXPECT_EQ(member_->exit(), Exit::kStartAgain);
  EXPECT_FALSE(process_.alive());
}

TEST_P(SimMemberTest, ExitsWith1WhenTheRunHasFailed) {
  ASSERT_TRUE(RunUntilJoined());
  coordinator_.state = FAILED;
  ASSERT_TRUE(RunUntilExit());
  EXPECT_EQ(member_->exit(), Exit::kFailed);
}

TEST_P(SimMemberTest, ExitsWith75WhenTheCoordinatorIsAnotherGenerations) {
  ASSERT_TRUE(RunUntilJoined());
  coordinator_.refusal = absl::FailedPreconditionError("the call belongs to another run");
  ASSERT_TRUE(RunUntilExit());
  EXPECT_EQ(member_->exit(), Exit::kStartAgain);
}

TEST_P(SimMemberTest, ExitsWith75WhenTheCoordinatorHasDied) {
  ASSERT_TRUE(RunUntilJoined());
  const int64_t at_us = loop_.NowUs();
  coordinator_process_.Kill();
  ASSERT_TRUE(RunUntilExit());
  EXPECT_EQ(member_->exit(), Exit::kStartAgain);
  EXPECT_GT(loop_.NowUs() - at_us, 5000000);
  EXPECT_LT(loop_.NowUs() - at_us, 15000000);
}

TEST_P(SimMemberTest, DoesNotTakeItsOwnStandstillForSilence) {
  ASSERT_TRUE(RunUntilJoined());
  process_.StandStill(30000000);
  const int64_t at_us = loop_.NowUs();
  EXPECT_FALSE(loop_.RunUntil([&] { return exits_ > 0 || loop_.NowUs() > at_us + 40000000; },
                              at_us + 41000000, kMaxEvents) &&
               exits_ > 0);
  EXPECT_EQ(exits_, 0);
}

TEST_P(SimMemberTest, TellsAFailureAndFollowsTheVerdict) {
  ASSERT_TRUE(RunUntilJoined());
  member_->Fail(absl::UnavailableError("a peer is away"));
  member_->Fail(absl::InternalError("a consequence"));
  ASSERT_TRUE(RunUntilExit());
  EXPECT_EQ(member_->exit(), Exit::kStartAgain);
  EXPECT_EQ(coordinator_.failure, "a peer is away");
}

TEST_P(SimMemberTest, DoesNotReportAPeerOfAnotherGeneration) {
  ASSERT_TRUE(RunUntilJoined());
  member_->Fail(absl::FailedPreconditionError("the call belongs to another run: ..."));
  EXPECT_EQ(member_->exit(), Exit::kStartAgain);
  EXPECT_EQ(coordinator_.failure, "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimMemberTest, testing::Range<uint64_t>(1, 21));

}  // namespace
}  // namespace satrap::simulation
