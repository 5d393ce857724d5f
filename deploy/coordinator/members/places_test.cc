#include "deploy/coordinator/members/places.h"

#include <string>

#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "common/role/ending.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecondUs = 1000000;

GenerationEnd::Before WithRestarts() {
  GenerationEnd::Before before;
  before.max_restarts = 3;
  return before;
}

// One PS and one NN worker, in pods.
class PlacesTest : public ::testing::Test, public GenerationEnd::Host {
 protected:
  PlacesTest() : state_(GenerationEnd(WithRestarts(), this)) {}

  bool IsStopWished() const override { return false; }
  void AddLostWork(Ending*) const override {}
  void AppendDropped(const std::string&, const Ending&) override {}
  void AppendEnd(RunState, const Ending&) override {}
  void AppendLeft(const Ending&) override {}

  static JobConfig Job() {
    JobConfig job = SmallJob();
    job.mutable_data_loader()->set_replicas(0);
    job.mutable_embedding_worker()->set_replicas(0);
    job.mutable_embedding_ps()->set_replicas(1);
    job.mutable_nn_worker()->set_replicas(1);
    return job;
  }
  static PlacesOptions Options() {
    PlacesOptions options;
    options.in_pods = true;
    options.heartbeat_timeout_ms = 8000;
    options.start_timeout_ms = 60000;
    return options;
  }
  std::string Register(Role role, uint64_t incarnation) {
    RegisterRequest request;
    request.mutable_member()->set_role(role);
    request.set_incarnation(incarnation);
    request.set_holder(role == EMBEDDING_PS ? "ps pod" : "nn pod");
    MutexLock lock(&state_.mutex);
    const auto why_wait = places_.Register(request, now_us_);
    EXPECT_TRUE(why_wait.ok()) << why_wait.status();
    return why_wait.value_or("an error");
  }
  Heard Beat(Role role, uint64_t incarnation, bool leaving = false) {
    HeartbeatRequest request;
    request.set_role(role);
    request.set_incarnation(incarnation);
    request.set_leaving(leaving);
    MutexLock lock(&state_.mutex);
    const auto heard = places_.Heartbeat(request, now_us_);
    EXPECT_TRUE(heard.ok()) << heard.status();
    return heard.value_or(Heard());
  }
  void Join() {
    for (const Role role : {EMBEDDING_PS, NN_WORKER}) {
      EXPECT_EQ(Register(role, 1), "");
      EXPECT_FALSE(Beat(role, 1).answer.has_value());
    }
  }
  // Lets time pass, in which only the NN worker sends heartbeats.
  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now_us_ += kSecondUs;
      Beat(NN_WORKER, 1);
      MutexLock lock(&state_.mutex);
      places_.Check(now_us_, places_.OnTick(now_us_));
    }
  }
  void Begin() {
    MutexLock lock(&state_.mutex);
    state_.begins = true;
    state_.end.Begin();
  }
  RunState State() {
    MutexLock lock(&state_.mutex);
    return state_.end.is_linking() ? FAILED : state_.end.state();
  }
  std::string Reason() {
    MutexLock lock(&state_.mutex);
    const Ending* due = state_.end.ending_due();
    return due != nullptr ? due->text() : state_.end.ending().text();
  }

  int64_t now_us_ = 0;
  CoordinatorState state_;
  Places places_{&state_, Job(), Options(), /*start_us=*/0, /*lacked_us=*/0};
};

TEST_F(PlacesTest, ASilentMemberIsTheEndOfAGenerationThatTrains) {
  Join();
  Begin();
  Pass(8);
  EXPECT_EQ(State(), RUNNING);
  Pass(1);
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_THAT(Reason(), HasSubstr("embedding_ps 0 (process 0) is lost"));
}

TEST_F(PlacesTest, BeforeTrainingItsPlaceIsFreeAndTheTimeForANewOneBegins) {
  Join();
  Pass(30);
  EXPECT_EQ(State(), STARTING);
  EXPECT_EQ(Register(EMBEDDING_PS, 2), "");
  EXPECT_FALSE(Beat(EMBEDDING_PS, 2).answer.has_value());
  EXPECT_EQ(State(), STARTING) << "it is no second process";
  Pass(9 + 60);
  EXPECT_EQ(State(), STARTING);
  Pass(1);
  EXPECT_EQ(State(), FAILED);
  EXPECT_EQ(Reason(), "after 60 s there is still no embedding_ps 0");
}

TEST_F(PlacesTest, WhoLeavesBeforeTrainingGoesAtOnceAndLaterWithTheGeneration) {
  Join();
  const Heard gone = Beat(EMBEDDING_PS, 1, /*leaving=*/true);
  ASSERT_TRUE(gone.answer.has_value());
  EXPECT_EQ(gone.answer->state(), RESTARTING);
  EXPECT_FALSE(gone.moves.has_value());
  EXPECT_EQ(Register(EMBEDDING_PS, 2), "");
  Beat(EMBEDDING_PS, 2);
  Begin();
  const Heard moves = Beat(EMBEDDING_PS, 2, /*leaving=*/true);
  EXPECT_FALSE(moves.answer.has_value());
  ASSERT_TRUE(moves.moves.has_value());
  EXPECT_EQ(moves.moves->text(), "embedding_ps 0 leaves its machine");
}

TEST_F(PlacesTest, AFailureCountsOnlyIfItIsAMembers) {
  Join();
  FailRequest request;
  request.set_role(EMBEDDING_PS);
  request.set_incarnation(2);
  request.mutable_ending()->set_text("no memory");
  request.mutable_ending()->set_kind(Ending::REFUSED);
  std::string stranger;
  {
    MutexLock lock(&state_.mutex);
    EXPECT_EQ(places_.Fail(request, now_us_, &stranger).state(), RESTARTING);
  }
  EXPECT_EQ(stranger, "a process that is no member has failed: embedding_ps 0: no memory");
  EXPECT_EQ(State(), STARTING);
  request.set_incarnation(1);
  {
    MutexLock lock(&state_.mutex);
    places_.Fail(request, now_us_, &stranger);
  }
  EXPECT_EQ(State(), FAILED);
  EXPECT_EQ(Reason(), "embedding_ps 0: no memory");
}

TEST_F(PlacesTest, TheStandstillOfThisProcessIsTold) {
  MutexLock lock(&state_.mutex);
  EXPECT_EQ(places_.OnTick(kTickUs), 0);
  EXPECT_EQ(places_.OnTick(3 * kTickUs), 0) << "a tick may be late";
  EXPECT_EQ(places_.OnTick(3 * kTickUs + 30 * kSecondUs), 30 * kSecondUs - 2 * kTickUs);
}

}  // namespace
}  // namespace satrap
