// The run's end: nobody is told of it before it is in the run's log. Also: who may begin a
// generation after the end.

#include <string>

#include "common/checkpoint/entries/run_end.h"
#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSecondUs = 1000 * 1000;

class CoordinatorEndTest : public CoordinatorFixture {
 protected:
  void Advance(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      executor_.AdvanceBy(kSecondUs);
      disk_executor_.RunReady();
    }
  }
  RunState LoggedState() {
    const RunLog log = Log();
    return log.end() == nullptr ? RUNNING : StateOf(*log.end());
  }
};

TEST_F(CoordinatorEndTest, EachEndIsAnEntryWithItsCauseAndItsSubmission) {
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  ASSERT_TRUE(Leave(1, 1).ok());
  EXPECT_EQ(state(), STOPPED);
  RunLog log = Log();
  ASSERT_NE(log.end(), nullptr);
  EXPECT_EQ(log.end()->state(), STOPPED);
  EXPECT_EQ(log.end()->submission(), 1u);
  EXPECT_EQ(log.end()->ending().SerializeAsString(), ending().SerializeAsString());
  EXPECT_EQ(log.last_cut()->left_for(), CutEntry::STOP);
  Resume();
  EXPECT_EQ(Log().last_generation()->submission(), 2u);
  EXPECT_EQ(engine_->Status().submission(), 2u);
  StartRun();
  Fail(NN_WORKER, 0, "it is wrong");
  EXPECT_EQ(state(), FAILED);
  log = Log();
  ASSERT_NE(log.end(), nullptr);
  EXPECT_EQ(log.end()->state(), FAILED);
  EXPECT_EQ(log.end()->submission(), 2u);
  EXPECT_EQ(log.end()->ending().text(), "nn_worker 0: it is wrong");
  Resume();
  StartRun();
  Finish();
  log = Log();
  ASSERT_NE(log.end(), nullptr);
  EXPECT_EQ(log.end()->state(), FINISHED);
  EXPECT_EQ(log.end()->submission(), 3u);
  EXPECT_EQ(log.end()->result().samples(), 7u);
}

TEST_F(CoordinatorEndTest, NobodyIsToldBeforeTheLogHasIt) {
  StartRun();
  absl::StatusOr<FailAnswer> told = absl::UnknownError("");
  Send(kFail, FailOf(NN_WORKER, 0, "it is wrong", absl::StatusCode::kNotFound), &told);
  EXPECT_EQ(told.status().message(), "not answered");
  EXPECT_EQ(state(), RUNNING);
  EXPECT_TRUE(engine_->Status().writes_end());
  EXPECT_EQ(engine_->Status().ending().text(), "nn_worker 0: it is wrong");
  EXPECT_EQ(LoggedState(), RUNNING);
  absl::StatusOr<HeartbeatAnswer> beat = absl::UnknownError("");
  Send(kHeartbeat, HeartbeatOf(EMBEDDING_PS, 0), &beat);
  ASSERT_TRUE(beat.ok());
  EXPECT_EQ(beat->state(), RUNNING);
  EXPECT_FALSE(beat->has_ending());
  absl::StatusOr<RegisterAnswer> place = absl::UnknownError("");
  Send(kRegister, RegisterOf(NN_WORKER, 0, kFirst + 1), &place);
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_TRUE(place->wait()) << "whoever replaces the failed role does not train on";
  disk_executor_.RunReady();
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->state(), FAILED);
  EXPECT_EQ(state(), FAILED);
  EXPECT_FALSE(engine_->Status().writes_end());
  EXPECT_EQ(LoggedState(), FAILED);
}

TEST_F(CoordinatorEndTest, ADiskThatRefusesIsAskedAgainEverySecondAndWarnedOfOnce) {
  int warnings = 0;
  options_.warn = [&warnings](const std::string& text) {
    EXPECT_THAT(text, AllOf(HasSubstr("no space left"), HasSubstr("nn_worker 0: it is wrong")));
    ++warnings;
  };
  BeginNewRunInPods();
  StartRun();
  Break("create /runs/small/log/");
  absl::StatusOr<FailAnswer> told = absl::UnknownError("");
  Send(kFail, FailOf(NN_WORKER, 0, "it is wrong", absl::StatusCode::kNotFound), &told);
  disk_executor_.RunReady();
  Beat(60, COORDINATOR);
  EXPECT_EQ(state(), RUNNING) << "in pods it waits for the disk";
  EXPECT_EQ(told.status().message(), "not answered");
  EXPECT_EQ(warnings, 1);
  disk_.SetHook(nullptr);
  Advance(1);
  EXPECT_EQ(state(), FAILED);
  EXPECT_EQ(LoggedState(), FAILED);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->state(), FAILED);
}

TEST_F(CoordinatorEndTest, ALauncherIsToldAfterTenSecondsAllTheSame) {
  options_.warn = nullptr;
  BeginNewRun();
  StartRun();
  Break("create /runs/small/log/");
  absl::StatusOr<FailAnswer> told = absl::UnknownError("");
  Send(kFail, FailOf(NN_WORKER, 0, "it is wrong", absl::StatusCode::kNotFound), &told);
  disk_executor_.RunReady();
  Beat(9, COORDINATOR);
  EXPECT_EQ(state(), RUNNING);
  Beat(2, COORDINATOR);
  EXPECT_EQ(state(), FAILED);
  EXPECT_EQ(reason(), "nn_worker 0: it is wrong");
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->state(), FAILED);
  disk_.SetHook(nullptr);
  Advance(2);
  EXPECT_EQ(LoggedState(), RUNNING) << "it is told, and written no more";
}

// Otherwise training would continue after members have been told of the end.
TEST_F(CoordinatorEndTest, WhileTheEndIsWrittenNoCutIsCommittedNorRefused) {
  options_.warn = nullptr;
  BeginNewRunInPods();
  StartRun();
  Break("create /runs/small/log/");
  absl::StatusOr<FailAnswer> told = absl::UnknownError("");
  Send(kFail, FailOf(NN_WORKER, 0, "it is wrong", absl::StatusCode::kNotFound), &told);
  disk_executor_.RunReady();
  disk_.SetHook(nullptr);
  MakeCut(1);
  absl::StatusOr<CommitCutAnswer> commit = absl::UnknownError("");
  Send(kCommitCut, CommitOf(1), &commit);
  disk_executor_.RunReady();
  EXPECT_EQ(commit.status().message(), "not answered");
  EXPECT_EQ(Log().last_cut(), nullptr);
  EXPECT_EQ(Wish(WishRequest::CUT).status().message(), "the run ends: nn_worker 0: it is wrong");
  Advance(1);
  EXPECT_EQ(state(), FAILED);
}

TEST_F(CoordinatorEndTest, TheNextCoordinatorOfASubmissionTellsItsEndAndClaimsNothing) {
  BeginNewRunInPods();
  StartRun();
  Fail(NN_WORKER, 0, "it is wrong");
  const size_t entries = Log().number();
  BeginInPods(1);
  EXPECT_EQ(generation_, 1u);
  EXPECT_EQ(state(), FAILED);
  EXPECT_EQ(reason(), "nn_worker 0: it is wrong");
  EXPECT_EQ(Log().number(), entries);
  ASSERT_TRUE(Register(EMBEDDING_PS, 0).ok());
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 0)->state(), FAILED);
  BeginInPods(2);
  EXPECT_EQ(generation_, 2u);
  EXPECT_EQ(state(), STARTING);
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  BeginInPods(2);
  EXPECT_EQ(state(), STOPPED);
  Begin();
  EXPECT_EQ(state(), STOPPED) << "so does a launcher's";
}

TEST_F(CoordinatorEndTest, AFinishedRunTellsItsResultToEverySubmission) {
  BeginNewRunInPods();
  StartRun();
  Finish();
  for (const int submission : {1, 2}) {
    BeginInPods(submission);
    EXPECT_EQ(state(), FINISHED);
    EXPECT_EQ(engine_->Status().result().samples(), 7u);
    EXPECT_EQ(generation_, 1u);
  }
}

}  // namespace
}  // namespace satrap
