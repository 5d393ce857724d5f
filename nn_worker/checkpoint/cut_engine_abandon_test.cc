// Tests cuts that are not committed: they are abandoned, or have not ended within the limit.

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "gtest/gtest.h"
#include "nn_worker/checkpoint/testing/cut_engine_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

using CutEngineAbandonTest = CutEngineTest;

TEST_F(CutEngineAbandonTest, AtMostOneFailedOperationOfTheDiskAbandonsTheCutAndTheNextIsWhole) {
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
    EXPECT_TRUE(absl::EndsWith((*failed->ended)->cause, ": no space left"))
        << (*failed->ended)->cause;
    EXPECT_FALSE(fs::exists(Folder(number_)));
    const auto next = RunOne();
    ASSERT_TRUE(next->ended->ok()) << next->ended->status();
    EXPECT_TRUE((*next->ended)->committed);
    // The ledger keeps the records that were handed over with the abandoned cut.
    EXPECT_EQ(Ledger::FromState(ReadManifest(Folder(number_))->ledger())->OfAll().rows,
              5 + 7 * number_);
  }
}

TEST_F(CutEngineAbandonTest, WhatAPsCannotWriteAbandonsTheCutAtAllOfThem) {
  ps1_.abandons = "disk full";
  const auto result = RunOne();
  EXPECT_FALSE((*result->ended)->committed);
  EXPECT_EQ((*result->ended)->cause, "embedding_ps 1: disk full");
  EXPECT_EQ(ps0_.abandoned, std::vector<uint64_t>{1});
  EXPECT_EQ(ps1_.abandoned, std::vector<uint64_t>{1});
  EXPECT_FALSE(fs::exists(Folder(1)));
  EXPECT_TRUE(coordinator_.commits.empty());
}

TEST_F(CutEngineAbandonTest, TheFolderOfAnAbandonedCutStaysUntilItsLastFileIsWritten) {
  disk_ = &slow_disk_;
  MakeEngine();
  ps0_.abandons = "disk full";
  const auto result = Begin();
  executor_.RunReady();
  slow_disk_.RunReady();  // makes the folder
  executor_.AdvanceBy(1'000'000);
  ASSERT_FALSE(ps1_.abandoned.empty());
  EXPECT_EQ(slow_disk_.num_ready(), 1u) << "dense.bin alone";
  while (slow_disk_.num_ready() > 0) {
    EXPECT_TRUE(fs::exists(Folder(1)));
    slow_disk_.RunReady();
    executor_.RunReady();
  }
  ASSERT_TRUE(result->ended.has_value());
  EXPECT_FALSE(fs::exists(Folder(1)));
}

TEST_F(CutEngineAbandonTest, ALateAnswerAboutAnAbandonedCutIsNotTakenForTheNextOnes) {
  ps0_.writing_us = 200'000;
  ps1_.abandons = "disk full";
  const auto first = Begin();
  executor_.AdvanceBy(100'000);
  ASSERT_TRUE(first->ended.has_value());
  ps1_.abandons = "";
  const auto second = Begin();
  executor_.AdvanceBy(150'000);  // meanwhile ps0 reports the first as abandoned
  EXPECT_FALSE(second->ended.has_value());
  executor_.AdvanceBy(200'000);
  ASSERT_TRUE(second->ended.has_value());
  EXPECT_TRUE((*second->ended)->committed) << (*second->ended)->cause;
}

TEST_F(CutEngineAbandonTest, TheThirdInARowThatIsAbandonedIsAnErrorThatNamesTheCause) {
  ps1_.abandons = "disk full";
  EXPECT_TRUE(RunOne()->ended->ok());
  EXPECT_TRUE(RunOne()->ended->ok());
  executor_.AdvanceBy(30'000'000);
  const absl::Status status = RunOne()->ended->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "3 cuts in a row could not be written; the last of them, cut_0003_000003: "
            "embedding_ps 1: disk full. Remove the cause, then continue with `satrap resume`");
}

TEST_F(CutEngineAbandonTest, ManyWithinSecondsAreNoErrorYet) {
  ps1_.abandons = "disk full";
  const auto run_for_a_second = [&] {
    const auto result = Begin();
    executor_.AdvanceBy(1'000'000);
    EXPECT_TRUE(result->ended.has_value() && result->ended->ok());
    return (*result->ended)->committed;
  };
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(run_for_a_second());
  ps1_.abandons = "";
  EXPECT_TRUE(run_for_a_second());
  ps1_.abandons = "disk full again";
  executor_.AdvanceBy(60'000'000);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(run_for_a_second()) << "the time begins anew, too";
}

TEST_F(CutEngineAbandonTest, OneThatIsWaitedForIsBegunAgainAfterGrowingPauses) {
  ps1_.abandons = "disk full";
  CutPlan plan;
  plan.best = true;
  // Begins the next cut as soon as the current one is abandoned, as ranks do.
  std::vector<int64_t> begun_us;
  for (int i = 0; i < 5; ++i) {
    const auto result = Begin(plan);
    const size_t before = ps0_.begun.size();
    while (ps0_.begun.size() == before) executor_.AdvanceBy(10'000);
    begun_us.push_back(executor_.NowUs());
    while (!result->ended.has_value()) executor_.AdvanceBy(1'000);
    ASSERT_TRUE(result->ended->ok()) << result->ended->status();
  }
  for (int i = 1; i < 5; ++i) {
    EXPECT_GE(begun_us[i] - begun_us[i - 1], int64_t{100'000} << (i - 1)) << i;
  }
}

TEST_F(CutEngineAbandonTest, ACommittedOneBetweenBeginsTheCountAnew) {
  for (int i = 0; i < 4; ++i) {
    ps1_.abandons = i % 2 == 0 ? "disk full" : "";
    EXPECT_TRUE(RunOne()->ended->ok());
    EXPECT_TRUE(RunOne()->ended->ok());
  }
}

TEST_F(CutEngineAbandonTest, ALastOneThatIsAbandonedIsAnError) {
  ps0_.abandons = "disk full";
  CutPlan plan;
  plan.last = true;
  const absl::Status status = RunOne(plan)->ended->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "embedding_ps 0: disk full")) << status;
}

TEST_F(CutEngineAbandonTest, AfterTwoCopyLimitsInARowUpdatesAreHeld) {
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

TEST_F(CutEngineAbandonTest, ACutThatCannotEnterTheLogIsAbandonedEverywhereAndTheNextIsWhole) {
  coordinator_.abandons = "log/00000007: no space left";
  const auto result = RunOne();
  ASSERT_TRUE(result->ended->ok()) << result->ended->status();
  EXPECT_FALSE((*result->ended)->committed);
  EXPECT_EQ((*result->ended)->cause, "the coordinator: log/00000007: no space left");
  EXPECT_FALSE((*result->ended)->copy_limit);
  EXPECT_EQ(ps0_.abandoned, std::vector<uint64_t>{1});
  EXPECT_EQ(ps1_.abandoned, std::vector<uint64_t>{1});
  EXPECT_FALSE(fs::exists(Folder(1)));
  coordinator_.abandons = "";
  EXPECT_TRUE((*RunOne()->ended)->committed);
  EXPECT_EQ(Ledger::FromState(ReadManifest(Folder(2))->ledger())->OfAll().rows, 5u + 2 * 7u);
}

TEST_F(CutEngineAbandonTest, CutsThatCannotEnterTheLogCountAmongTheThreeThatEndTheRun) {
  ps1_.abandons = "disk full";
  EXPECT_TRUE(RunOne()->ended->ok());
  ps1_.abandons = "";
  coordinator_.abandons = "no space left";
  EXPECT_TRUE(RunOne()->ended->ok());
  executor_.AdvanceBy(30'000'000);
  const absl::Status status = RunOne()->ended->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "the coordinator: no space left")) << status;
}

TEST_F(CutEngineAbandonTest, ALastOneThatCannotEnterTheLogIsAnError) {
  coordinator_.abandons = "no space left";
  CutPlan plan;
  plan.last = true;
  const absl::Status status = RunOne(plan)->ended->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "the coordinator: no space left")) << status;
}

TEST_F(CutEngineAbandonTest, AWriteThatHangsEndsTheGenerationAfterTheLimit) {
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

TEST_F(CutEngineAbandonTest, ACommitWithoutAnAnswerEndsTheGenerationAfterTheLimit) {
  coordinator_.hangs = true;
  const auto result = Begin();
  executor_.AdvanceBy(kLimitUs);
  ASSERT_TRUE(result->ended.has_value());
  EXPECT_EQ(result->ended->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(result->ended->status().message(), "the coordinator's commit"));
  EXPECT_TRUE(fs::exists(Folder(1) + "/manifest")) << "it may be committed";
}

TEST_F(CutEngineAbandonTest, ACutThatCannotBeAbandonedEndsTheGenerationAfterTheLimit) {
  ps0_.abandons = "disk full";
  ps1_.hangs_in_abandoning = true;
  const auto result = Begin();
  executor_.AdvanceBy(kLimitUs);
  ASSERT_TRUE(result->ended.has_value());
  EXPECT_EQ(result->ended->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(result->ended->status().message(),
                                "the removal of its folder, after this error: embedding_ps 0: disk "
                                "full"))
      << result->ended->status();
}

TEST_F(CutEngineAbandonTest, TheTimeOfACutThatWaitsBeginsWhenItStarts) {
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

}  // namespace
}  // namespace satrap
