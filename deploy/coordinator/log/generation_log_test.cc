#include "deploy/coordinator/log/generation_log.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/file/testing/memory_file_system.h"
#include "common/role/ending.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRun[] = "/runs/a";

GenerationEnd::Before WithRestarts() {
  GenerationEnd::Before before;
  before.max_restarts = 3;
  return before;
}

class GenerationLogTest : public ::testing::Test, public GenerationEnd::Host {
 protected:
  GenerationLogTest() : state_(GenerationEnd(WithRestarts(), this)) {
    EXPECT_TRUE(disk_.CreateFolders(kRun).ok());
    RunLog log = *RunLog::Open(kRun, &disk_, 1);
    RunLogEntry entry;
    entry.mutable_generation()->set_generation(1);
    EXPECT_TRUE(log.Append(entry).ok());
    GenerationLogOptions options;
    options.generation = 1;
    options.compact_after = 3;
    options.unix_ms = [] { return int64_t{1234}; };
    options.warn = [this](const std::string& text) { warnings_.push_back(text); };
    log_ = std::make_unique<GenerationLog>(&state_, std::move(log), std::move(options));
  }

  bool IsStopWished() const override { return false; }
  void AddLostWork(Ending*) const override {}
  void AppendDropped(const std::string&, const Ending&) override {}
  void AppendEnd(RunState, const Ending&) override {}
  void AppendLeft(const Ending&) override {}

  // Fills the disk, so that nothing can be linked.
  void Fill() {
    disk_.SetHook([](const std::string& operation) {
      return absl::StartsWith(operation, "hard_link") ? absl::ResourceExhaustedError("no space")
                                                      : absl::OkStatus();
    });
  }
  RunState State() {
    MutexLock lock(&state_.mutex);
    EXPECT_FALSE(state_.end.appends()) << "an append is never left open";
    return state_.end.state();
  }
  std::string Reason() {
    MutexLock lock(&state_.mutex);
    return state_.end.ending().text();
  }
  RunLogEntry Newest() { return RunLog::Open(kRun, &disk_)->entries().back(); }

  MemoryFileSystem disk_;
  CoordinatorState state_;
  std::vector<std::string> warnings_;
  std::unique_ptr<GenerationLog> log_;
};

TEST_F(GenerationLogTest, AGenerationBeginsOnceItsLogSaysSo) {
  log_->AppendRunningAndBegin();
  EXPECT_EQ(State(), RUNNING);
  EXPECT_EQ(Newest().running().generation(), 1u);
  EXPECT_EQ(Newest().unix_ms(), 1234u);
}

TEST_F(GenerationLogTest, ALogThatDoesNotTakeTheBeginningEndsTheGeneration) {
  Fill();
  log_->AppendRunningAndBegin();
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_THAT(Reason(), HasSubstr("the beginning of training cannot be written"));
}

TEST_F(GenerationLogTest, ALogThatDoesNotSayThatAllAreThereEndsNothing) {
  Fill();
  log_->AppendComplete();
  EXPECT_EQ(State(), STARTING);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("run's log that all members are there")));
  disk_.SetHook(nullptr);
  log_->AppendComplete();
  EXPECT_EQ(Newest().complete().generation(), 1u);
}

TEST_F(GenerationLogTest, NothingFollowsACutThatMayHaveToStayTheNewest) {
  {
    MutexLock lock(&state_.mutex);
    state_.last_cut.emplace();
    state_.last_cut->set_generation(1);
    EXPECT_TRUE(log_->HasCommitted());
  }
  log_->AppendComplete();
  EXPECT_TRUE(Newest().has_generation());
  MutexLock lock(&state_.mutex);
  state_.last_cut->set_generation(0);
  EXPECT_FALSE(log_->HasCommitted()) << "that of an earlier generation";
}

TEST_F(GenerationLogTest, AnotherCoordinatorIsFound) {
  log_->LookForOtherCoordinators();
  EXPECT_EQ(State(), STARTING);
  RunLog other = *RunLog::Open(kRun, &disk_, 2);
  RunLogEntry next;
  next.mutable_generation()->set_generation(2);
  ASSERT_TRUE(other.Append(next).ok());
  log_->LookForOtherCoordinators();
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_EQ(log_->EndedStatus().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(log_->AppendTopics(TopicsEntry()), log_->EndedStatus());
}

TEST_F(GenerationLogTest, IsCompactedWhenItHasGrown) {
  const auto nothing = [] {};
  log_->Compact(nothing);
  EXPECT_EQ(log_->log().compacted_number(), 0u);
  log_->AppendComplete();
  ASSERT_TRUE(log_->AppendTopics(TopicsEntry()).ok());
  log_->Compact(nothing);
  EXPECT_EQ(log_->log().compacted_number(), 4u);
  EXPECT_THAT(warnings_, IsEmpty());
  Fill();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(log_->AppendTopics(TopicsEntry()).ok());
  EXPECT_EQ(State(), STARTING) << "none is in the log";
}

}  // namespace
}  // namespace satrap
