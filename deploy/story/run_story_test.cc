#include "deploy/story/run_story.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "common/refusal/refusal.h"
#include "common/role/ending.h"
#include "deploy/cli/testing/fake_run.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class RunStoryTest : public FakeRunTest {
 protected:
  void SetUp() override {
    FakeRunTest::SetUp();
    JobConfig job = SmallJob();
    ResolveJob(&job);
    generation_ = absl::StrCat("generation { generation: 1 submission: 1 job { ",
                               job.ShortDebugString(), " } }");
    options_.run_dir = dir_;
    options_.coordinator = coordinator();
    options_.wait = [this](int64_t) {
      if (on_wait_) on_wait_();
      return signal_;
    };
  }
  // Returns the exit code. Afterwards `said_` has the text that was printed.
  int Tell() {
    return TellStory(options_, [this](const std::string& text) { said_ += text; });
  }

  std::string generation_;
  StoryOptions options_;
  std::function<void()> on_wait_;
  int signal_ = 0;
  std::string said_;
};

TEST_F(RunStoryTest, ARunThatFinishesIsReported) {
  options_.termination_log = dir_ + "/message";
  Append(generation_);
  Script({R"(state: RUNNING generation: 1 train { phase: 'training' step: 40 }
             restarts { generation: 2 cause: 'embedding_ps 0 was killed' from_step: 30
                        began: BEGAN_RESTART })"});
  on_wait_ = [this] {
    Append("end { state: FINISHED submission: 1 result { steps: 77 samples: 7700 } }");
  };
  EXPECT_EQ(Tell(), 0);
  EXPECT_THAT(said_, HasSubstr("generation 2 continues from step 30: embedding_ps 0 was killed"));
  EXPECT_THAT(ContentOf(dir_ + "/report.json"),
              AllOf(HasSubstr("\"steps\":77"), HasSubstr("\"samples\":7700")));
  EXPECT_THAT(ContentOf(dir_ + "/report.txt"), HasSubstr("77"));
  EXPECT_EQ(ContentOf(dir_ + "/message"), "FINISHED");
}

TEST_F(RunStoryTest, ARunThatHasEndedIsReportedWithoutItsCoordinator) {
  Append(generation_);
  Append("end { state: FINISHED submission: 1 result { steps: 77 } }");
  EndCoordinator();
  EXPECT_EQ(Tell(), 0);
  EXPECT_THAT(ContentOf(dir_ + "/report.json"), HasSubstr("\"steps\":77"));
}

TEST_F(RunStoryTest, ARunThatFailsExits1WithItsCause) {
  options_.termination_log = dir_ + "/message";
  Append(generation_);
  Append(
      "end { state: FAILED submission: 1 ending { why: MEMBER_FAILED text: 'the disk is full' } }");
  EXPECT_EQ(Tell(), 1);
  EXPECT_THAT(said_, HasSubstr("the job failed: the disk is full"));
  EXPECT_EQ(ContentOf(dir_ + "/failure.txt"), "the disk is full\n");
  EXPECT_EQ(ContentOf(dir_ + "/message"), "the disk is full");
  const auto ending = ReadEnding(dir_ + "/ending.textproto");
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(ending->why(), Ending::MEMBER_FAILED);
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/report.json"));
}

TEST_F(RunStoryTest, ARunThatHasFailedSaysWhereAResumeGoesOn) {
  Append(generation_);
  Append("end { state: FAILED submission: 1 ending { why: MEMBER_FAILED text: 'killed' } }");
  EXPECT_EQ(Tell(), 1);
  EXPECT_THAT(said_, HasSubstr("the run's folder, " + dir_ +
                               ", has the work up to the beginning; `satrap resume` continues "
                               "from there"));
}

TEST_F(RunStoryTest, ACoordinatorThatCannotBeginIsTheEndOfItsSubmission) {
  options_.termination_log = dir_ + "/message";
  EndCoordinator();
  on_wait_ = [this] {
    LeaveRefusal(dir_, 1, EndingOf(Ending::MEMBER_FAILED, COORDINATOR, 0, "no hard links"));
  };
  EXPECT_EQ(Tell(), 1);
  EXPECT_THAT(said_, HasSubstr("the job failed: no hard links"));
  EXPECT_EQ(ContentOf(dir_ + "/message"), "no hard links");
  EXPECT_EQ(ContentOf(dir_ + "/failure.txt"), "no hard links\n");
}

TEST_F(RunStoryTest, ARefusalThatNoFolderTakesIsHeardFromTheCoordinator) {
  options_.termination_log = dir_ + "/message";
  const std::string refusal =
      "state: FAILED submission: 1 ending { why: MEMBER_FAILED text: 'may not write /runs' }";
  Script({"state: FAILED submission: 2", refusal});
  EXPECT_EQ(Tell(), 1);
  EXPECT_EQ(ContentOf(dir_ + "/message"), "may not write /runs");
  // A coordinator that does not see the log does not end a run that has begun.
  Append(generation_);
  Script({refusal});
  on_wait_ = [this] { Append("end { state: STOPPED submission: 1 }"); };
  EXPECT_EQ(Tell(), 0);
}

TEST_F(RunStoryTest, ASilentCoordinatorIsTheEndOfASubmissionThatHasNotBegun) {
  options_.termination_log = dir_ + "/message";
  options_.start_seconds = 0;
  int waits = 0;
  on_wait_ = [&waits, this] {
    if (++waits == 2) EndCoordinator();
    if (waits == 100) signal_ = SIGTERM;
  };
  EXPECT_EQ(Tell(), 1);
  EXPECT_GE(waits, 2) << "it answers at first";
  EXPECT_THAT(ContentOf(dir_ + "/message"), HasSubstr("its coordinator has not answered for 0 s"));
  EXPECT_TRUE(RefusalOf(dir_, 1).has_value()) << "which ends the other Job of the run";
  // A run that has begun goes on without its coordinator until there is another one.
  Append(generation_);
  on_wait_ = [this] { Append("end { state: STOPPED submission: 1 }"); };
  EXPECT_EQ(Tell(), 0);
}

TEST_F(RunStoryTest, TheReportHasTheTimesOfTheLogAndNotThoseOfThePod) {
  Append("unix_ms: 1000000 " + generation_);
  Append("unix_ms: 19000500 end { state: FINISHED submission: 1 result { steps: 77 } }");
  EndCoordinator();
  EXPECT_EQ(Tell(), 0);
  EXPECT_THAT(ContentOf(dir_ + "/report.json"), HasSubstr("\"wall_seconds\":18000.5"));
}

TEST_F(RunStoryTest, AFileThatCannotBeWrittenIsTriedAgainAndThenLeftOut) {
  std::filesystem::create_directories(dir_ + "/failure.txt/in_the_way");
  Append(generation_);
  Append("end { state: FAILED submission: 1 ending { why: MEMBER_FAILED text: 'no room' } }");
  EndCoordinator();
  int waits = 0;
  on_wait_ = [&waits] { ++waits; };
  EXPECT_EQ(Tell(), 1) << "how the run has ended matters more";
  EXPECT_EQ(waits, 9);
  EXPECT_THAT(said_, HasSubstr("warning: "));
  waits = 0;
  on_wait_ = [&waits, this] {
    if (++waits == 2) std::filesystem::remove_all(dir_ + "/failure.txt");
  };
  EXPECT_EQ(Tell(), 1);
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(ContentOf(dir_ + "/failure.txt"), "no room\n");
}

TEST_F(RunStoryTest, AnAbandonedCutIsToldOnce) {
  Append(generation_);
  const std::string status =
      "state: RUNNING generation: 1 cuts { abandoned: 1 last_abandoned_cause: 'a disk hangs' }";
  Script({status, status});
  int waits = 0;
  on_wait_ = [&waits, this] {
    if (++waits == 2) Append("end { state: STOPPED submission: 1 }");
  };
  EXPECT_EQ(Tell(), 0);
  const size_t at =
      said_.find("warning: a cut was abandoned, and training continues: a disk hangs");
  ASSERT_NE(at, std::string::npos) << said_;
  EXPECT_EQ(said_.find("a cut was abandoned", at + 20), std::string::npos);
}

TEST_F(RunStoryTest, AStoppedRunHasNotFailed) {
  options_.termination_log = dir_ + "/message";
  Append(generation_);
  Append("end { state: STOPPED submission: 1 ending { text: 'stopped on request' } }");
  EXPECT_EQ(Tell(), 0);
  EXPECT_THAT(said_, HasSubstr("stopped on request"));
  EXPECT_EQ(ContentOf(dir_ + "/message"), "STOPPED");
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/failure.txt"));
}

TEST_F(RunStoryTest, ALaterSubmissionTellsItsOwnStory) {
  Append(generation_);
  Append("end { state: STOPPED submission: 1 }");
  Append("generation { generation: 2 submission: 2 }");
  EXPECT_EQ(Tell(), 0);
  EXPECT_THAT(said_, HasSubstr("continues as a later submission"));
}

TEST_F(RunStoryTest, ASignalEndsTheStoryAndNotTheRun) {
  Append(generation_);
  Script({"state: RUNNING generation: 1"});
  signal_ = SIGTERM;
  EXPECT_EQ(Tell(), 128 + SIGTERM);
  EXPECT_TRUE(Wishes().empty());
}

}  // namespace
}  // namespace satrap
