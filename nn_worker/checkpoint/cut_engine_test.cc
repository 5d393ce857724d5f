#include "nn_worker/checkpoint/cut_engine.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"
#include "nn_worker/checkpoint/failing_file_system.h"
#include "nn_worker/checkpoint/fake_committer.h"
#include "nn_worker/checkpoint/fake_cut_ps.h"
#include "nn_worker/checkpoint/lossy_link.h"
#include "nn_worker/checkpoint/saved_model.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLimitUs = 60'000'000;

LedgerState Released(uint64_t block, uint32_t rows) {
  ProvenanceRange range;
  range.set_block(block);
  range.set_to(rows);
  range.set_block_rows(rows);
  if (block == 0) range.set_bad_records(2);
  Ledger ledger;
  EXPECT_TRUE(ledger.Add(0, range).ok());
  return ledger.ToState();
}

class CutEngineTest : public testing::Test {
 protected:
  CutEngineTest()
      : run_(testing::TempDir() + "/" +
             testing::UnitTest::GetInstance()->current_test_info()->name()),
        coordinator_(&executor_, run_) {
    fs::remove_all(run_);
    fs::create_directories(run_);
    MakeEngine();
  }
  ~CutEngineTest() override { fs::remove_all(run_); }

  void MakeEngine(const JobConfig& extra = JobConfig()) {
    CutEngine::Options options;
    options.job = extra;
    options.job.set_run_dir(run_);
    options.job.set_name("job");
    options.job.mutable_checkpoint()->set_limit_seconds(kLimitUs * 1e-6);
    options.job.add_tables()->set_name("t");
    options.job.mutable_tables(0)->set_id(4);
    options.envelope = FakeEnvelope();
    options.order_fingerprint = 99;
    options.ledger = Released(100, 5);
    options.timeouts = FakeTimeouts();
    options.executor = &executor_;
    options.disk_executor = &executor_;
    options.file_system = &file_system_;
    kill_points_ = std::make_unique<KillPoints>(extra, 0, kFakeGeneration, [this] {
      const auto files = DiskFileSystem()->List(Folder(number_));
      killed_at_.push_back(absl::StrCat(ps0_.begun.size() + ps1_.begun.size(), " marks, ",
                                        files.ok() ? files->size() : 0, " files, ",
                                        coordinator_.commits.size(), " commits"));
    });
    options.kill_points = kill_points_.get();
    for (FakeCutPs* ps : {&ps0_, &ps1_}) {
      links_.push_back(std::make_unique<LossyLink>(&executor_, ps, &loss_));
      options.embedding_ps.push_back(links_.back().get());
    }
    links_.push_back(std::make_unique<LossyLink>(&executor_, &coordinator_, &loss_));
    options.coordinator = links_.back().get();
    engine_ = CutEngine::Create(options).value();
  }

  struct Result {
    bool marked = false;
    absl::optional<absl::StatusOr<CutOutcome>> ended;
  };
  // Begins a cut in which two ranks have released a block each.
  std::shared_ptr<Result> Begin(CutPlan plan = CutPlan()) {
    plan.number = ++number_;
    plan.position.set_step(10 * number_);
    auto result = std::make_shared<Result>();
    engine_->Begin(
        std::move(plan), {Released(2 * number_, 3), Released(2 * number_ + 1, 4)},
        absl::StrCat("dense ", number_),
        [result] {
          EXPECT_FALSE(result->ended.has_value());
          result->marked = true;
        },
        [result](absl::StatusOr<CutOutcome> outcome) {
          EXPECT_FALSE(result->ended.has_value()) << "ended twice";
          result->ended = std::move(outcome);
        });
    return result;
  }
  std::shared_ptr<Result> RunOne(const CutPlan& plan = CutPlan()) {
    auto result = Begin(plan);
    executor_.AdvanceBy(10'000'000);
    EXPECT_TRUE(result->ended.has_value());
    return result;
  }
  std::string Folder(uint64_t number) const {
    return CheckpointsDir(run_) + "/" + CutName(kFakeGeneration, number);
  }

  const std::string run_;
  ManualExecutor executor_;
  double loss_ = 0;
  FailingFileSystem file_system_;
  FakeCutPs ps0_{&executor_, 0};
  FakeCutPs ps1_{&executor_, 1};
  FakeCommitter coordinator_;
  std::vector<std::unique_ptr<LossyLink>> links_;
  std::vector<std::string> killed_at_;  // what was there by then
  std::unique_ptr<KillPoints> kill_points_;
  std::unique_ptr<CutEngine> engine_;
  uint64_t number_ = 0;
};

TEST_F(CutEngineTest, ACommittedCutHasEverythingThatAGenerationBeginsFrom) {
  CutPlan plan;
  plan.best = true;
  plan.wish = 6;
  plan.leave = true;
  plan.position.mutable_best()->mutable_values()->set_auc(.7);
  const auto result = RunOne(plan);
  ASSERT_TRUE(result->ended->ok()) << result->ended->status();
  const CutOutcome& outcome = **result->ended;
  EXPECT_TRUE(outcome.committed);
  EXPECT_EQ(outcome.name, "cut_0003_000001");
  EXPECT_EQ(outcome.bytes, 4u + 4u + 7u);
  EXPECT_EQ(outcome.copied_bytes, 16u);
  EXPECT_GE(outcome.seconds, .0499);

  const auto manifest = ReadManifest(Folder(1));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->version(), kManifestVersion);
  EXPECT_EQ(manifest->min_reader_version(), kManifestVersion);
  EXPECT_EQ(manifest->step(), 10u);
  EXPECT_EQ(manifest->position().step(), 10u);
  EXPECT_EQ(manifest->generation(), kFakeGeneration);
  EXPECT_EQ(manifest->cut(), 1u);
  EXPECT_EQ(manifest->order_fingerprint(), 99u);
  EXPECT_EQ(manifest->valid().auc(), .7);
  EXPECT_EQ(manifest->table_files_size(), 2);
  EXPECT_EQ(manifest->tables(0).rows(), 20u);
  EXPECT_EQ(*ReadDense(Folder(1)), "dense 1");
  EXPECT_EQ(Ledger::FromState(manifest->ledger())->OfAll().rows, 5u + 3u + 4u);

  ASSERT_EQ(coordinator_.commits.size(), 1u);
  const CommitCutRequest& commit = coordinator_.commits[0];
  EXPECT_EQ(commit.cut(), "cut_0003_000001");
  EXPECT_TRUE(commit.best());
  EXPECT_FALSE(commit.last());
  EXPECT_EQ(commit.wish(), 6u);
  EXPECT_TRUE(commit.leave());
  EXPECT_GE(commit.seconds(), .0499);
}

TEST_F(CutEngineTest, IsMarkedBeforeAnythingIsWritten) {
  const auto result = Begin();
  executor_.AdvanceBy(ps0_.writing_us / 2);
  EXPECT_TRUE(result->marked);
  EXPECT_FALSE(result->ended.has_value());
  EXPECT_TRUE(coordinator_.commits.empty());
}

TEST_F(CutEngineTest, ASecondOneWaitsForTheFirst) {
  const auto first = Begin();
  const auto second = Begin();
  executor_.AdvanceBy(ps0_.writing_us / 2);
  EXPECT_TRUE(first->marked);
  EXPECT_FALSE(second->marked);
  executor_.AdvanceBy(10'000'000);
  EXPECT_TRUE((*first->ended)->committed);
  EXPECT_TRUE((*second->ended)->committed);
}

TEST_F(CutEngineTest, AtMostOneFailedOperationOfTheDiskAbandonsTheCutAndTheNextIsWhole) {
  RunOne();
  const int operations = file_system_.done;
  ASSERT_GT(operations, 8);
  for (int i = 1; i <= operations; ++i) {
    SCOPED_TRACE(absl::StrCat("operation ", i));
    file_system_.done = 0;
    file_system_.failing = i;
    const auto failed = RunOne();
    ASSERT_TRUE(failed->ended->ok()) << failed->ended->status();
    EXPECT_FALSE((*failed->ended)->committed);
    EXPECT_EQ((*failed->ended)->cause, "no space left");
    EXPECT_FALSE(fs::exists(Folder(number_)));
    const auto next = RunOne();
    ASSERT_TRUE(next->ended->ok()) << next->ended->status();
    EXPECT_TRUE((*next->ended)->committed);
    // What was handed over with the abandoned cut is in the ledger all the same.
    EXPECT_EQ(Ledger::FromState(ReadManifest(Folder(number_))->ledger())->OfAll().rows,
              5 + 7 * number_);
  }
}

TEST_F(CutEngineTest, WhatAPsCannotWriteAbandonsTheCutAtAllOfThem) {
  ps1_.abandons = "disk full";
  const auto result = RunOne();
  EXPECT_FALSE((*result->ended)->committed);
  EXPECT_EQ((*result->ended)->cause, "embedding_ps 1: disk full");
  EXPECT_EQ(ps0_.abandoned, std::vector<uint64_t>{1});
  EXPECT_EQ(ps1_.abandoned, std::vector<uint64_t>{1});
  EXPECT_FALSE(fs::exists(Folder(1)));
  EXPECT_TRUE(coordinator_.commits.empty());
}

TEST_F(CutEngineTest, TheThirdInARowThatIsAbandonedIsAnErrorThatNamesTheCause) {
  ps1_.abandons = "disk full";
  EXPECT_TRUE(RunOne()->ended->ok());
  EXPECT_TRUE(RunOne()->ended->ok());
  const absl::Status status = RunOne()->ended->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "3 cuts in a row could not be written; the last of them, cut_0003_000003: "
            "embedding_ps 1: disk full. Mend that, and go on with `satrap resume`");
}

TEST_F(CutEngineTest, ACommittedOneBetweenBeginsTheCountAnew) {
  for (int i = 0; i < 4; ++i) {
    ps1_.abandons = i % 2 == 0 ? "disk full" : "";
    EXPECT_TRUE(RunOne()->ended->ok());
    EXPECT_TRUE(RunOne()->ended->ok());
  }
}

TEST_F(CutEngineTest, ALastOneThatIsAbandonedIsAnError) {
  ps0_.abandons = "disk full";
  CutPlan plan;
  plan.last = true;
  const absl::Status status = RunOne(plan)->ended->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "embedding_ps 0: disk full")) << status;
}

TEST_F(CutEngineTest, AfterTwoCopyLimitsInARowUpdatesAreHeld) {
  ps0_.abandons = "copies";
  ps0_.copy_limit = true;
  EXPECT_TRUE((*RunOne()->ended)->copy_limit);
  EXPECT_TRUE((*RunOne()->ended)->copy_limit);
  ps0_.abandons = "";
  EXPECT_TRUE((*RunOne()->ended)->committed);
  EXPECT_TRUE((*RunOne()->ended)->committed);
  const std::vector<bool> expected = {false, false, true, false};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(ps1_.begun[i].hold_updates(), expected[i]) << i;
}

TEST_F(CutEngineTest, ACutThatCannotEnterTheLogIsAbandonedEverywhereAndTheNextIsWhole) {
  coordinator_.abandons = "log/00000007: no space left";
  const auto result = RunOne();
  ASSERT_TRUE(result->ended->ok()) << result->ended->status();
  EXPECT_FALSE((*result->ended)->committed);
  EXPECT_EQ((*result->ended)->cause, "the run's log: log/00000007: no space left");
  EXPECT_FALSE((*result->ended)->copy_limit);
  EXPECT_EQ(ps0_.abandoned, std::vector<uint64_t>{1});
  EXPECT_EQ(ps1_.abandoned, std::vector<uint64_t>{1});
  EXPECT_FALSE(fs::exists(Folder(1)));
  coordinator_.abandons = "";
  EXPECT_TRUE((*RunOne()->ended)->committed);
  EXPECT_EQ(Ledger::FromState(ReadManifest(Folder(2))->ledger())->OfAll().rows, 5u + 2 * 7u);
}

TEST_F(CutEngineTest, CutsThatCannotEnterTheLogCountAmongTheThreeThatEndTheRun) {
  ps1_.abandons = "disk full";
  EXPECT_TRUE(RunOne()->ended->ok());
  ps1_.abandons = "";
  coordinator_.abandons = "no space left";
  EXPECT_TRUE(RunOne()->ended->ok());
  const absl::Status status = RunOne()->ended->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "the run's log: no space left")) << status;
}

TEST_F(CutEngineTest, ALastOneThatCannotEnterTheLogIsAnError) {
  coordinator_.abandons = "no space left";
  CutPlan plan;
  plan.last = true;
  const absl::Status status = RunOne(plan)->ended->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "the run's log: no space left")) << status;
}

TEST_F(CutEngineTest, AWriteThatHangsEndsTheGenerationAfterTheLimit) {
  ps1_.hangs_in_writing = true;
  const auto result = Begin();
  executor_.AdvanceBy(kLimitUs - 1);
  EXPECT_FALSE(result->ended.has_value());
  executor_.AdvanceBy(1);
  ASSERT_TRUE(result->ended.has_value());
  EXPECT_EQ(result->ended->status(),
            absl::UnavailableError("cut cut_0003_000001: not written within 60 s "
                                   "(checkpoint.limit_seconds); does the disk hang? Still missing: "
                                   "the files of embedding_ps 1"));
  EXPECT_TRUE(fs::exists(Folder(1))) << "it is the coordinator's to judge";
  EXPECT_EQ(RunOne()->ended->status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CutEngineTest, ACommitWithoutAnAnswerEndsTheGenerationAfterTheLimit) {
  coordinator_.hangs = true;
  const auto result = Begin();
  executor_.AdvanceBy(kLimitUs);
  ASSERT_TRUE(result->ended.has_value());
  EXPECT_EQ(result->ended->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(result->ended->status().message(), "the coordinator's commit"));
  EXPECT_TRUE(fs::exists(Folder(1) + "/manifest")) << "it may be committed";
}

TEST_F(CutEngineTest, ACutThatCannotBeAbandonedEndsTheGenerationAfterTheLimit) {
  ps0_.abandons = "disk full";
  ps1_.hangs_in_abandoning = true;
  const auto result = Begin();
  executor_.AdvanceBy(kLimitUs);
  ASSERT_TRUE(result->ended.has_value());
  EXPECT_EQ(result->ended->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(result->ended->status().message(),
                                "the end of its writing, after embedding_ps 0: disk full"))
      << result->ended->status();
}

TEST_F(CutEngineTest, TheTimeOfACutThatWaitsBeginsWhenItStarts) {
  ps0_.writing_us = kLimitUs * 2 / 3;
  const auto first = Begin();
  const auto second = Begin();
  executor_.AdvanceBy(kLimitUs * 4 / 3);
  ASSERT_TRUE(first->ended.has_value());
  EXPECT_TRUE((*first->ended)->committed);
  executor_.AdvanceBy(kLimitUs);
  ASSERT_TRUE(second->ended.has_value());
  ASSERT_TRUE(second->ended->ok()) << second->ended->status();
  EXPECT_TRUE((*second->ended)->committed);
}

TEST_F(CutEngineTest, AGenerationThatIsOverIsAnErrorThatARestartMayCure) {
  coordinator_.fails = absl::FailedPreconditionError("generation 4 has begun");
  const auto result = RunOne();
  EXPECT_EQ(result->ended->status().code(), absl::StatusCode::kAborted);
  // It may be committed all the same: the folder is the coordinator's to judge.
  EXPECT_TRUE(fs::exists(Folder(1) + "/manifest"));
  // And nothing is begun any more.
  EXPECT_EQ(RunOne()->ended->status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ps0_.begun.size(), 1u);
}

TEST_F(CutEngineTest, AFileThatTheCoordinatorDoesNotSeeEndsTheRun) {
  coordinator_.fails = absl::DataLossError("no file table_4_0.rows");
  const absl::Status status = RunOne()->ended->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(status.message(), "cut_0003_000001")) << status;
}

TEST_F(CutEngineTest, APsThatCannotBeReachedIsAnError) {
  ps1_.fails = absl::InvalidArgumentError("not this cut");
  const auto result = RunOne();
  EXPECT_FALSE(result->marked);
  EXPECT_EQ(result->ended->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(result->ended->status().message(), "BeginCut to embedding_ps 1"));
}

TEST_F(CutEngineTest, ARecordThatWasTrainedTwiceEndsTheRunForGood) {
  RunOne();
  --number_;
  const absl::Status status = RunOne()->ended->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(status.message(), "nn_worker 0")) << status;
}

TEST_F(CutEngineTest, TheLedgerCountsFromTheCutThatTheGenerationBeganFrom) {
  EXPECT_EQ(engine_->consumed().rows, 5u);
  RunOne();
  EXPECT_EQ(engine_->consumed().rows, 12u);
}

TEST_F(CutEngineTest, LostAndRepeatedMessagesChangeNothing) {
  loss_ = .2;
  for (int i = 0; i < 30; ++i) {
    ps0_.abandons = i % 3 == 1 ? "disk full" : "";
    auto result = Begin();
    executor_.AdvanceBy(60'000'000);
    ASSERT_TRUE(result->ended.has_value());
    ASSERT_TRUE(result->ended->ok()) << result->ended->status();
    EXPECT_EQ((*result->ended)->committed, i % 3 != 1);
    EXPECT_EQ(fs::exists(Folder(number_)), i % 3 != 1);
  }
  EXPECT_EQ(ps0_.begun.size(), 30u);
  EXPECT_EQ(ps1_.begun.size(), 30u);
  EXPECT_EQ(coordinator_.commits.size(), 20u);
}

TEST_F(CutEngineTest, KillPointsAreReachedInTheirPlaces) {
  JobConfig job;
  for (const auto point : {KillPoint::RANK_BEFORE_MARK, KillPoint::RANK_AFTER_MARK,
                           KillPoint::RANK_BEFORE_COMMIT, KillPoint::RANK_AFTER_COMMIT}) {
    KillPoint* kill = job.add_kill_points();
    kill->set_point(point);
    kill->set_generation(kFakeGeneration);
  }
  MakeEngine(job);
  RunOne();
  EXPECT_EQ(killed_at_, (std::vector<std::string>{
                            "0 marks, 0 files, 0 commits", "2 marks, 0 files, 0 commits",
                            "2 marks, 4 files, 0 commits", "2 marks, 4 files, 1 commits"}));
}

TEST_F(CutEngineTest, TablesAreLoadedAndCountedAtAllPss) {
  loss_ = .2;
  absl::optional<absl::Status> loaded;
  engine_->embedding_ps()->LoadTables("/cuts/one",
                                      [&](absl::Status status) { loaded = std::move(status); });
  absl::optional<absl::StatusOr<std::vector<TableStats>>> stats;
  engine_->embedding_ps()->TableStats([&](auto result) { stats = std::move(result); });
  executor_.AdvanceBy(60'000'000);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_TRUE(loaded->ok()) << *loaded;
  EXPECT_EQ(ps0_.loaded, std::vector<std::string>{"/cuts/one"});
  EXPECT_EQ(ps1_.loaded, std::vector<std::string>{"/cuts/one"});
  ASSERT_TRUE(stats.has_value());
  ASSERT_TRUE(stats->ok()) << stats->status();
  ASSERT_EQ((*stats)->size(), 1u);
  EXPECT_EQ((**stats)[0].rows(), 10u);
  EXPECT_EQ((**stats)[0].bytes(), 200u);
}

}  // namespace
}  // namespace satrap
