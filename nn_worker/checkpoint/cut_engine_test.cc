#include "nn_worker/checkpoint/cut_engine.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "gtest/gtest.h"
#include "nn_worker/checkpoint/saved_model.h"
#include "nn_worker/checkpoint/testing/cut_engine_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

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
  EXPECT_EQ(manifest->min_reader_version(), kOldestManifestVersion);
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

TEST_F(CutEngineTest, TheNamesOfACutAndOfTheFoldersAboveItAreDurable) {
  RunOne();
  for (const std::string& folder : {CheckpointsDir(run_), run_}) {
    EXPECT_EQ(
        std::count(file_system_.synced_folders.begin(), file_system_.synced_folders.end(), folder),
        1)
        << folder;
  }
}

TEST_F(CutEngineTest, OfEpochsThatAreOverTheLedgerKeepsTheTotalsOnly) {
  CutPlan plan;
  plan.position.set_epoch(1);
  RunOne(plan);
  const auto manifest = ReadManifest(Folder(1));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  ASSERT_EQ(manifest->ledger().epochs_size(), 1);
  EXPECT_EQ(manifest->ledger().epochs(0).splits_size(), 0);
  EXPECT_EQ(manifest->ledger().epochs(0).rows(), 12u);
}

TEST_F(CutEngineTest, AGenerationThatIsOverIsAnErrorThatARestartMayCure) {
  coordinator_.fails = absl::FailedPreconditionError("generation 4 has begun");
  const auto result = RunOne();
  EXPECT_EQ(result->ended->status().code(), absl::StatusCode::kAborted);
  // The cut may be committed nevertheless, so its folder is left to the coordinator.
  EXPECT_TRUE(fs::exists(Folder(1) + "/manifest"));
  // The engine begins no further cut.
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

TEST_F(CutEngineTest, AnErrorOfOnePsIsNotKeptUntilTheOthersAnswer) {
  ps0_.fails = absl::InvalidArgumentError("not this cut");
  ps1_.hangs_in_marking = true;
  const auto result = Begin();
  executor_.AdvanceBy(1'000'000);
  ASSERT_TRUE(result->ended.has_value());
  EXPECT_EQ(result->ended->status().code(), absl::StatusCode::kInvalidArgument);
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
  const auto result = RunOne();
  EXPECT_EQ(engine_->consumed().rows, 12u);
  EXPECT_EQ((*result->ended)->ledger_pieces, 1u) << "block 100, after the released ones";
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
