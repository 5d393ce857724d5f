#include "deploy/coordinator/log/end_entries.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "common/file/testing/memory_file_system.h"
#include "common/role/ending.h"
#include "common/testing/manual_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRun[] = "/runs/a";
constexpr int64_t kSecondUs = 1000000;

GenerationEnd::Before WithRestarts() {
  GenerationEnd::Before before;
  before.max_restarts = 3;
  return before;
}

class EndEntriesTest : public ::testing::Test {
 protected:
  EndEntriesTest() : disk_tasks_(&executor_, &disk_executor_) {
    EXPECT_TRUE(disk_.CreateFolders(kRun).ok());
    RunLog log = *RunLog::Open(kRun, &disk_, 1);
    RunLogEntry entry;
    entry.mutable_generation()->set_generation(1);
    EXPECT_TRUE(log.Append(entry).ok());
    GenerationLogOptions log_options;
    log_options.generation = 1;
    log_options.compact_after = 1000;
    log_options.unix_ms = [] { return int64_t{1234}; };
    log_ = std::make_unique<GenerationLog>(&state_, std::move(log), std::move(log_options));
    Serve(/*in_pods=*/true);
    MutexLock lock(&state_.mutex);
    state_.end.Begin();
  }

  void Serve(bool in_pods) {
    EndEntriesOptions options;
    options.generation = 1;
    options.submission = 7;
    options.in_pods = in_pods;
    options.end_period_ms = 1000;
    options.end_limit_ms = 10000;
    options.left_limit_ms = 2000;
    options.warn = [this](const std::string& text) { warnings_.push_back(text); };
    ends_ = std::make_unique<EndEntries>(&state_, log_.get(), &disk_tasks_, &executor_,
                                         std::move(options));
    ends_->SetOwner(owner_);
    MutexLock lock(&state_.mutex);
    state_.end.SetHost(ends_.get());
  }
  void Fill() {
    disk_.SetHook([](const std::string& operation) {
      return absl::StartsWith(operation, "hard_link") ? absl::ResourceExhaustedError("no space")
                                                      : absl::OkStatus();
    });
  }
  void Stop() {
    MutexLock lock(&state_.mutex);
    state_.end.End(STOPPED, EndingOf(Ending::ASKED, "stopped"));
  }
  // Holds back the answer to a member that has failed.
  void Hold() {
    MutexLock lock(&state_.mutex);
    ends_->Hold([this](absl::StatusOr<rpc::Message> answer) {
      FailAnswer told;
      EXPECT_TRUE(answer.ok() && told.ParseFromString(answer->header));
      told_.push_back(RunState_Name(told.state()));
    });
  }
  void Finish(const RunResult& result = RunResult()) {
    ends_->Finish(result, [this](const absl::StatusOr<rpc::Message>& answer) {
      told_.push_back(std::string(absl::StatusCodeToString(answer.status().code())));
    });
  }
  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      executor_.AdvanceBy(kSecondUs);
      disk_executor_.RunReady();
      MutexLock lock(&state_.mutex);
      ends_->EndWithoutLogInTime(executor_.NowUs());
    }
    ends_->AnswerHeld();
  }
  RunState State() {
    MutexLock lock(&state_.mutex);
    return state_.end.state();
  }
  RunLogEntry Newest() { return RunLog::Open(kRun, &disk_)->entries().back(); }

  ManualExecutor executor_;
  ManualExecutor disk_executor_;
  MemoryFileSystem disk_;
  std::shared_ptr<int> owner_ = std::make_shared<int>(0);
  std::vector<std::string> warnings_;
  std::vector<std::string> told_;
  CoordinatorState state_{GenerationEnd(WithRestarts())};
  std::unique_ptr<GenerationLog> log_;
  DiskTasks disk_tasks_;
  std::unique_ptr<EndEntries> ends_;
};

TEST_F(EndEntriesTest, AnEndIsToldOnceItIsInTheLog) {
  Stop();
  Hold();
  ends_->AnswerHeld();
  EXPECT_THAT(told_, ElementsAre());
  EXPECT_EQ(State(), RUNNING);
  disk_executor_.RunReady();
  EXPECT_THAT(told_, ElementsAre("STOPPED"));
  EXPECT_EQ(State(), STOPPED);
  EXPECT_EQ(Newest().end().state(), STOPPED);
  EXPECT_EQ(Newest().end().submission(), 7u);
}

TEST_F(EndEntriesTest, ALogThatRefusesTheEndIsAskedEachSecondAndThatIsToldOnce) {
  Fill();
  Stop();
  Pass(30);
  EXPECT_EQ(State(), RUNNING);
  EXPECT_THAT(
      warnings_,
      ElementsAre(HasSubstr(
          "the run's end cannot be written into its log yet; the coordinator tries again: ")));
  disk_.SetHook(nullptr);
  Pass(2);
  EXPECT_EQ(State(), STOPPED);
}

TEST_F(EndEntriesTest, ALauncherIsToldAnEndThatNoLogTakes) {
  Serve(/*in_pods=*/false);
  Fill();
  Stop();
  Pass(9);
  EXPECT_EQ(State(), RUNNING);
  Pass(2);
  EXPECT_EQ(State(), STOPPED);
}

TEST_F(EndEntriesTest, AMoveIsToldThoughTheLogDoesNotTakeIt) {
  disk_.SetHook([this](const std::string&) {
    executor_.AdvanceBy(3 * kSecondUs);
    return absl::ResourceExhaustedError("no space");
  });
  {
    MutexLock lock(&state_.mutex);
    state_.end.EndMoved(EndingOf(Ending::MOVED, "a process leaves its machine"));
  }
  EXPECT_EQ(State(), RUNNING);
  disk_executor_.RunReady();
  EXPECT_EQ(State(), RESTARTING);
}

TEST_F(EndEntriesTest, TheResultIsInTheLogBeforeAnybodyIsTold) {
  RunResult result;
  result.set_steps(3);
  Finish(result);
  Finish(result);
  EXPECT_THAT(told_, ElementsAre());
  disk_executor_.RunReady();
  EXPECT_THAT(told_, ElementsAre("OK", "OK"));
  EXPECT_EQ(State(), FINISHED);
  EXPECT_EQ(Newest().end().result().steps(), 3u);
  Finish();
  EXPECT_THAT(told_, ElementsAre("OK", "OK", "OK")) << "a repeated call";
}

TEST_F(EndEntriesTest, ATimerOfAnOwnerThatIsGoneDoesNothing) {
  Fill();
  Stop();
  disk_executor_.RunReady();
  disk_.SetHook(nullptr);
  owner_.reset();
  executor_.AdvanceBy(5 * kSecondUs);
  disk_executor_.RunReady();
  EXPECT_EQ(State(), RUNNING);
}

}  // namespace
}  // namespace satrap
