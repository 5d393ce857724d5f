#include "deploy/coordinator/log/cut_commits.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/manifest.h"
#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
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

class CutCommitsTest : public ::testing::Test, public CutCommits::Host, public GenerationEnd::Host {
 protected:
  CutCommitsTest() : state_(GenerationEnd({}, this)) {
    job_ = SmallJob();
    job_.set_run_dir(kRun);
    ResolveJob(&job_);
    MutexLock lock(&state_.mutex);
    state_.end.Begin();
  }

  bool IsStopWished() const override { return false; }
  void AddLostWork(Ending*) const override {}
  void AppendDropped(const std::string&, const Ending&) override {}
  void AppendEnd(RunState, const Ending&) override { is_end_due_ = true; }
  void AppendLeft(const Ending&) override {}
  absl::Status Append(RunLogEntry entry) override {
    if (before_append_) before_append_(entry);
    if (!append_error_.ok()) return append_error_;
    entry.set_unix_ms(1234);
    return log_.Append(entry);
  }
  bool IsAbsent(const absl::Status&) const override { return is_absent_; }

  void MakeCut(uint64_t cut, uint64_t generation = 1) {
    CheckpointManifest manifest;
    manifest.set_version(kManifestVersion);
    manifest.set_step(10 * cut);
    manifest.set_generation(generation);
    manifest.set_cut(cut);
    const std::string folder = FolderOfCut(kRun, CutName(generation, cut));
    ASSERT_TRUE(disk_.CreateFolders(folder).ok());
    ASSERT_TRUE(WriteManifest(folder, manifest, &disk_).ok());
  }
  static CommitCutRequest RequestOf(uint64_t cut) {
    CommitCutRequest request;
    request.set_cut(CutName(1, cut));
    request.set_seconds(0.5);
    return request;
  }
  CommitCutRequest LeaveWith(uint64_t cut, uint64_t wish) {
    MakeCut(cut);
    CommitCutRequest request = RequestOf(cut);
    request.set_leave(true);
    request.set_wish(wish);
    return request;
  }
  // Returns "committed", "abandoned: WHY", the error's message, or "no answer".
  std::string Commit(const CommitCutRequest& request) {
    const auto answer = commits_.Commit(request);
    if (!answer.has_value()) return "no answer";
    if (!answer->ok()) return std::string(answer->status().message());
    if (!(*answer)->has_abandoned()) return "committed";
    return "abandoned: " + (*answer)->abandoned();
  }
  uint64_t Wish(WishRequest::Kind kind) {
    WishRequest request;
    request.set_kind(kind);
    *request.mutable_job() = job_;
    request.mutable_job()->mutable_embedding_ps()->set_replicas(5);
    MutexLock lock(&state_.mutex);
    const auto number = state_.wishes.Add(request, job_);
    EXPECT_TRUE(number.ok()) << number.status();
    return number.value_or(0);
  }
  void EndBy(const Ending& how) {
    MutexLock lock(&state_.mutex);
    state_.end.EndBy(how);
  }
  // Lets the log take the run's end, if one is due.
  void LinkEnd() REQUIRES(state_.mutex) {
    if (std::exchange(is_end_due_, false)) state_.end.OnEndAppended(absl::OkStatus(), false);
  }
  RunState State() {
    MutexLock lock(&state_.mutex);
    LinkEnd();
    EXPECT_FALSE(state_.end.appends()) << "an append is never left open";
    return state_.end.state();
  }
  Ending HowEnded() {
    MutexLock lock(&state_.mutex);
    return state_.end.ending();
  }
  std::vector<std::string> Cuts() const {
    std::vector<std::string> cuts;
    for (const RunLogEntry& entry : log_.entries()) {
      if (entry.has_cut()) cuts.push_back(entry.cut().cut());
    }
    return cuts;
  }
  // Makes only the append of the announcement fail.
  void FailAnnouncement(const absl::Status& error, bool is_absent) {
    is_absent_ = is_absent;
    before_append_ = [this, error](const RunLogEntry& entry) {
      if (entry.has_generation()) append_error_ = error;
    };
  }

  MemoryFileSystem disk_;
  RunLog log_ = NewLog(&disk_);
  JobConfig job_;
  CoordinatorState state_;
  CutFolders folders_{kRun, 1, &disk_};
  std::function<void(const RunLogEntry&)> before_append_;
  absl::Status append_error_;
  bool is_absent_ = true;
  bool is_end_due_ = false;
  CutCommits commits_{&state_, this, &log_, &folders_, Run(), /*kill_points=*/nullptr};

 private:
  static RunLog NewLog(MemoryFileSystem* disk) {
    EXPECT_TRUE(disk->CreateFolders(kRun).ok());
    return *RunLog::Open(kRun, disk, 1);
  }
  static Envelope Run() {
    Envelope run;
    run.set_run_id(7);
    run.set_generation(1);
    return run;
  }
};

TEST_F(CutCommitsTest, ACommitIsAnEntryAndFulfilsItsWish) {
  const uint64_t wish = Wish(WishRequest::CUT);
  MakeCut(1);
  CommitCutRequest request = RequestOf(1);
  request.set_best(true);
  request.set_wish(wish);
  EXPECT_EQ(Commit(request), "committed");
  ASSERT_THAT(Cuts(), ElementsAre("cut_0001_000001"));
  EXPECT_TRUE(log_.last_cut()->best());
  EXPECT_EQ(log_.last_cut()->step(), 10u);
  EXPECT_EQ(log_.last_cut()->seconds(), 0.5);
  EXPECT_EQ(State(), RUNNING);
  MutexLock lock(&state_.mutex);
  EXPECT_EQ(state_.last_cut->cut(), "cut_0001_000001");
  EXPECT_EQ(state_.last_cut_unix_ms, 1234);
  EXPECT_EQ(state_.wishes.fulfilled(), wish);
  EXPECT_FALSE(state_.training_is_over);
}

TEST_F(CutCommitsTest, WhatIsNoNewerWholeCutOfThisGenerationIsNotCommitted) {
  MakeCut(2);
  ASSERT_EQ(Commit(RequestOf(2)), "committed");
  MakeCut(1);
  EXPECT_EQ(Commit(RequestOf(1)),
            "cut_0001_000001 is not newer than cut_0001_000002, which is committed");
  EXPECT_EQ(Commit(RequestOf(2)),
            "cut_0001_000002 is not newer than cut_0001_000002, which is committed");
  EXPECT_THAT(Commit(RequestOf(3)), HasSubstr("abandoned: ")) << "it has no manifest";
  CommitCutRequest other;
  other.set_cut("../elsewhere");
  EXPECT_THAT(Commit(other), HasSubstr("../elsewhere"));
  MakeCut(4);
  CommitCutRequest leave = RequestOf(4);
  leave.set_leave(true);
  EXPECT_EQ(Commit(leave), "leave: nobody has asked for the end of training");
  EXPECT_THAT(Cuts(), ElementsAre("cut_0001_000002"));
  EXPECT_EQ(State(), RUNNING);
}

TEST_F(CutCommitsTest, NothingIsCommittedAfterTheEnd) {
  MakeCut(1);
  EndBy(EndingOf(Ending::OTHER_DATA, "other data"));
  EXPECT_EQ(State(), FAILED);
  EXPECT_EQ(Commit(RequestOf(1)), "the run has failed: other data");
  EXPECT_THAT(Cuts(), IsEmpty());
}

// The generation ends while the cut's files are being checked, before the append.
TEST_F(CutCommitsTest, NorWhereTheEndOvertakesTheCommit) {
  MakeCut(1);
  disk_.SetOpenHook([this](const std::string&) {
    EndBy(EndingOf(Ending::OTHER_DATA, "other data"));
    return absl::OkStatus();
  });
  EXPECT_EQ(Commit(RequestOf(1)), "no answer") << "the log does not have the end yet";
  EXPECT_THAT(Cuts(), IsEmpty());
}

TEST_F(CutCommitsTest, WhileTheRunsEndIsWrittenACutIsNeitherCommittedNorRefused) {
  MakeCut(1);
  EndBy(EndingOf(Ending::OTHER_DATA, "other data"));
  EXPECT_EQ(Commit(RequestOf(1)), "no answer");
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_EQ(State(), FAILED);
  EXPECT_EQ(Commit(RequestOf(1)), "the run has failed: other data");
}

TEST_F(CutCommitsTest, ACutSaysForWhatItsGenerationLeaves) {
  Ending moved = EndingOf(Ending::MOVED, EMBEDDING_PS, 1, "embedding_ps 1 leaves its machine");
  {
    MutexLock lock(&state_.mutex);
    EXPECT_TRUE(state_.wishes.AddMove(moved));
    EXPECT_FALSE(state_.wishes.AddMove(moved)) << "further ones share the cut";
  }
  EXPECT_EQ(Commit(LeaveWith(1, 1)), "committed");
  EXPECT_EQ(log_.last_cut()->left_for(), CutEntry::MOVE);
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_EQ(HowEnded().why(), Ending::MOVED);
}

TEST_F(CutCommitsTest, ACutAfterWhichTrainingGoesOnIsLeftForNothing) {
  Wish(WishRequest::STOP);
  MakeCut(1);
  EXPECT_EQ(Commit(RequestOf(1)), "committed");
  EXPECT_FALSE(log_.last_cut()->has_left_for());
  EXPECT_EQ(State(), RUNNING);
}

TEST_F(CutCommitsTest, AnEndThatComesDuringTheAppendFollowsTheCommit) {
  MakeCut(1);
  before_append_ = [this](const RunLogEntry&) {
    EndBy(EndingOf(Ending::OTHER_DATA, "other data"));
  };
  EXPECT_EQ(Commit(RequestOf(1)), "committed");
  EXPECT_EQ(State(), FAILED);
  EXPECT_THAT(Cuts(), ElementsAre("cut_0001_000001"));
}

TEST_F(CutCommitsTest, ACutThatCannotBeWrittenIntoTheLogIsAbandonedAndTheNextOneIsNot) {
  MakeCut(1);
  append_error_ = absl::ResourceExhaustedError("no space left");
  EXPECT_EQ(Commit(RequestOf(1)), "abandoned: no space left");
  EXPECT_EQ(State(), RUNNING);
  append_error_ = absl::OkStatus();
  MakeCut(2);
  EXPECT_EQ(Commit(RequestOf(2)), "committed");
}

TEST_F(CutCommitsTest, ACommitOfUnknownOutcomeIsNotAnsweredAndEndsTheGeneration) {
  MakeCut(1);
  append_error_ = absl::DataLossError("no sync");
  is_absent_ = false;
  EXPECT_EQ(Commit(RequestOf(1)), "no answer");
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_EQ(HowEnded().why(), Ending::LOG_NOT_WRITTEN);
}

TEST_F(CutCommitsTest, ACommitOfASupersededCoordinatorIsRefused) {
  MakeCut(1);
  append_error_ = absl::AlreadyExistsError("number 3 is taken");
  EXPECT_EQ(Commit(RequestOf(1)), "number 3 is taken");
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_EQ(HowEnded().why(), Ending::SUPERSEDED);
}

// The append hangs until the generation has ended. Its outcome no longer changes the reported end.
TEST_F(CutCommitsTest, ACommitThatHasHungIsNotAnsweredAndChangesNothing) {
  const uint64_t wish = Wish(WishRequest::SCALE);
  CommitCutRequest request = LeaveWith(1, wish);
  before_append_ = [this](const RunLogEntry&) {
    MutexLock lock(&state_.mutex);
    state_.end.OnDiskHang("the disk hangs");
  };
  EXPECT_EQ(Commit(request), "no answer");
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_EQ(HowEnded().why(), Ending::DISK_HANGS);
  EXPECT_EQ(log_.entries().size(), 1u) << "no size is announced after it";
  MutexLock lock(&state_.mutex);
  EXPECT_FALSE(state_.last_cut.has_value());
  EXPECT_EQ(state_.wishes.fulfilled(), 0u);
}

TEST_F(CutCommitsTest, TheCutOfAStopIsTheEnd) {
  const CommitCutRequest request = LeaveWith(1, Wish(WishRequest::STOP));
  EXPECT_EQ(Commit(request), "committed");
  EXPECT_EQ(State(), STOPPED);
  EXPECT_EQ(HowEnded().text(),
            "stopped on request after cut_0001_000001 at step 10; nothing is lost");
  EXPECT_EQ(HowEnded().loss(), Ending::NOTHING);
  EXPECT_TRUE(log_.last_cut()->leave());
}

TEST_F(CutCommitsTest, TheLastCutOfTheTrainingFulfilsAllWishes) {
  Wish(WishRequest::CUT);
  const uint64_t newest = Wish(WishRequest::CUT);
  MakeCut(1);
  CommitCutRequest request = RequestOf(1);
  request.set_last(true);
  EXPECT_EQ(Commit(request), "committed");
  EXPECT_EQ(State(), RUNNING) << "the test pass follows";
  MutexLock lock(&state_.mutex);
  EXPECT_TRUE(state_.training_is_over);
  EXPECT_EQ(state_.wishes.fulfilled(), newest);
}

TEST_F(CutCommitsTest, TheCutOfAScaleIsFollowedByTheAnnouncementOfTheSize) {
  const CommitCutRequest request = LeaveWith(1, Wish(WishRequest::SCALE));
  EXPECT_EQ(Commit(request), "committed");
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_EQ(HowEnded().text(), "the run changes its size after cut_0001_000001");
  EXPECT_EQ(HowEnded().loss(), Ending::NOTHING);
  ASSERT_EQ(log_.entries().size(), 2u);
  const GenerationEntry& next = log_.entries()[1].generation();
  EXPECT_EQ(next.generation(), 2u);
  EXPECT_EQ(next.run_id(), 7u);
  EXPECT_EQ(next.cut(), "cut_0001_000001");
  EXPECT_EQ(next.began(), BEGAN_SCALE_ANNOUNCED);
  EXPECT_EQ(next.job().embedding_ps().replicas(), 5);
}

TEST_F(CutCommitsTest, ASizeThatCannotBeAnnouncedEndsTheGenerationAllTheSame) {
  FailAnnouncement(absl::ResourceExhaustedError("no space left"), /*is_absent=*/true);
  const CommitCutRequest request = LeaveWith(1, Wish(WishRequest::SCALE));
  EXPECT_EQ(Commit(request), "committed");
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_EQ(HowEnded().text(),
            "the run continues from cut_0001_000001, and nothing is lost, because its change of "
            "size cannot be written into its log: no space left");
  EXPECT_EQ(HowEnded().loss(), Ending::NOTHING);
}

TEST_F(CutCommitsTest, ASizeOfWhoseAnnouncementNobodyKnowsMayBeInTheLog) {
  FailAnnouncement(absl::DataLossError("no sync"), /*is_absent=*/false);
  const CommitCutRequest request = LeaveWith(1, Wish(WishRequest::SCALE));
  EXPECT_EQ(Commit(request), "committed");
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_THAT(HowEnded().text(),
              HasSubstr("but its change of size may not be in its log: no sync"));
}

TEST_F(CutCommitsTest, ASizeThatAnotherCoordinatorHasOvertakenIsNotAnnounced) {
  FailAnnouncement(absl::AlreadyExistsError("x"), /*is_absent=*/true);
  const CommitCutRequest request = LeaveWith(1, Wish(WishRequest::SCALE));
  EXPECT_EQ(Commit(request), "committed");
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_EQ(HowEnded().why(), Ending::SUPERSEDED);
}

TEST_F(CutCommitsTest, AnAnnouncementThatHangsDoesNotChangeTheEndThatWasTold) {
  before_append_ = [this](const RunLogEntry& entry) {
    MutexLock lock(&state_.mutex);
    if (entry.has_generation()) state_.end.OnDiskHang("the disk hangs");
  };
  const CommitCutRequest request = LeaveWith(1, Wish(WishRequest::SCALE));
  EXPECT_EQ(Commit(request), "committed");
  EXPECT_EQ(State(), RESTARTING);
  EXPECT_EQ(HowEnded().why(), Ending::DISK_HANGS);
}

}  // namespace
}  // namespace satrap
