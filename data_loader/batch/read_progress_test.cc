#include "data_loader/batch/read_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/testing/temp_dir.h"

namespace satrap {
namespace {

TEST(ReadProgressTest, KeepsBadLinesAndTheirPlaces) {
  TempDir dir;
  std::vector<std::string> logged;
  ReadProgress::Options options;
  options.quarantine_dir = dir.path() + "/quarantine";
  options.loader_index = 2;
  options.log = [&](const std::string& line) { logged.push_back(line); };
  ReadProgress progress(options);
  EXPECT_EQ(progress.Snapshot().quarantine_file(), "");
  ASSERT_TRUE(progress.AddBad({"day_0", 120, 3, TRAIN_STREAM, "a NUL byte", "x\ty", 4, 5, 6}).ok());
  ASSERT_TRUE(progress.AddBad({"day_1", 7, 0, TEST_STREAM, "not 40 columns", "z"}).ok());
  EXPECT_EQ(TempDir::Read(dir.path() + "/quarantine/g0001-loader-2.txt"), "x\ty\nz\n");
  EXPECT_EQ(TempDir::Read(dir.path() + "/quarantine/g0001-loader-2.tsv"),
            "day_0\t120\t3\ttrain\ta NUL byte\t4\t5\t6\n"
            "day_1\t7\t0\ttest\tnot 40 columns\t0\t0\t0\n");
  EXPECT_EQ(progress.quarantined(), 2u);
  EXPECT_EQ(progress.Snapshot().quarantine_file(), dir.path() + "/quarantine/g0001-loader-2.txt");
  ASSERT_EQ(logged.size(), 2u);
  EXPECT_NE(logged[0].find("day_0 byte 120 line 3: a NUL byte"), std::string::npos);
}

TEST(ReadProgressTest, AFilesNameTakesOneFieldOfALine) {
  TempDir dir;
  ReadProgress::Options options;
  options.quarantine_dir = dir.path();
  ReadProgress progress(options);
  ASSERT_TRUE(progress.AddBad({"a\tb\nc", 0, 1, TEST_STREAM, "bad", "x"}).ok());
  EXPECT_EQ(TempDir::Read(dir.path() + "/g0001-loader-0.tsv"),
            "a\\tb\\nc\t0\t1\ttest\tbad\t0\t0\t0\n");
}

TEST(ReadProgressTest, LogsASampleOfManyBadRecords) {
  int logged = 0;
  ReadProgress::Options options;
  options.log = [&](const std::string&) { ++logged; };
  ReadProgress progress(options);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(progress.AddBad(BadLine()).ok());
  EXPECT_EQ(logged, 10 + 9);  // 16, 32, ... 4096
}

TEST(ReadProgressTest, MoreThanTheShareOfTenThousandRecordsIsAnError) {
  ReadProgress::Options options;
  options.max_bad_fraction = 0.25;
  ReadProgress progress(options);
  ReadCounts counts;
  counts.records = counts.scanned = 7499;
  progress.Add(TRAIN_STREAM, counts);
  for (int i = 0; i < 2499; ++i) ASSERT_TRUE(progress.AddBad(BadLine()).ok());
  EXPECT_TRUE(progress.AddBad(BadLine()).ok()) << "2,500 of 9,999 is more, but of too few";
  EXPECT_EQ(progress.AddBad(BadLine()).code(), absl::StatusCode::kFailedPrecondition);
  progress.AddReader(TEST_STREAM);
  EXPECT_TRUE(progress.EndReader(TEST_STREAM).ok()) << "each stream has its own share";
}

TEST(ReadProgressTest, WhatWasConsumedBeforeCountsTowardsTheShare) {
  ReadProgress::Options options;
  options.max_bad_fraction = 0.25;
  options.consumed_records = 7;
  options.consumed_bad_records = 1;
  ReadProgress progress(options);
  progress.AddReader(TRAIN_STREAM);
  progress.AddReader(TRAIN_STREAM);
  ReadCounts again;  // read once more and left out
  again.records = again.scanned = again.skipped = 3;
  progress.Add(TRAIN_STREAM, again);
  ASSERT_TRUE(progress.AddBad(BadLine()).ok());
  ASSERT_TRUE(progress.EndReader(TRAIN_STREAM).ok());
  EXPECT_TRUE(progress.EndReader(TRAIN_STREAM).ok()) << "2 of 9";
  EXPECT_EQ(progress.skipped(), 3u);
  progress.AddReader(TRAIN_STREAM);
  ASSERT_TRUE(progress.AddBad(BadLine()).ok());
  EXPECT_THAT(std::string(progress.EndReader(TRAIN_STREAM).message()),
              testing::HasSubstr("3 of 10 records"));
}

TEST(ReadProgressTest, BadAndEmptyLinesOfEvaluationAreCountedApart) {
  ReadProgress progress{ReadProgress::Options()};
  for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
    BadLine bad;
    bad.stream = stream;
    ASSERT_TRUE(progress.AddBad(bad).ok());
    ReadCounts counts;
    counts.empty_lines = 2;
    progress.Add(stream, counts);
  }
  const LoaderProgress seen = progress.Snapshot();
  EXPECT_EQ(seen.quarantined(), 3u);
  EXPECT_EQ(seen.evaluation_quarantined(), 2u);
  EXPECT_EQ(seen.empty_lines(), 6u);
  EXPECT_EQ(seen.evaluation_empty_lines(), 4u);
}

TEST(ReadProgressTest, TheErrorNamesTheFirstBadRecordOfItsStream) {
  TempDir dir;
  ReadProgress::Options options;
  options.max_bad_fraction = 0.25;
  options.quarantine_dir = dir.path();
  ReadProgress progress(options);
  progress.AddReader(TRAIN_STREAM);
  ASSERT_TRUE(progress.AddBad({"test.csv", 5, 2, TEST_STREAM, "a NUL byte", "x"}).ok());
  ASSERT_TRUE(progress.AddBad({"a\nb", 123, 9, TRAIN_STREAM, "an unknown label", "y"}).ok());
  ASSERT_TRUE(progress.AddBad({"c", 7, 1, TRAIN_STREAM, "too few columns", "z"}).ok());
  EXPECT_EQ(progress.EndReader(TRAIN_STREAM).message(),
            absl::StrCat("2 of 2 records of the train stream are bad, more than "
                         "data.max_bad_fraction (0.25); see ",
                         dir.path(),
                         "/g0001-loader-0.tsv; the first: a\\nb, byte 123: an unknown label"));
}

TEST(ReadProgressTest, OfATopicTheErrorNamesTheOffsetAndTheDeadLetterTopic) {
  TempDir dir;
  std::vector<std::string> logged;
  ReadProgress::Options options;
  options.max_bad_fraction = 0.25;
  options.quarantine_dir = dir.path();
  options.log = [&](const std::string& line) { logged.push_back(line); };
  ReadProgress progress(options);
  progress.AddReader(TRAIN_STREAM);
  BadLine bad = {"clicks/3", 70, 1, TRAIN_STREAM, "an unknown label", "y"};
  bad.is_message = true;
  bad.dead_letter_topic = "dead";
  ASSERT_TRUE(progress.AddBad(bad).ok());
  EXPECT_NE(logged[0].find("clicks/3 offset 70 line 1"), std::string::npos) << logged[0];
  EXPECT_EQ(progress.EndReader(TRAIN_STREAM).message(),
            "1 of 1 records of the train stream are bad, more than data.max_bad_fraction (0.25); "
            "see the topic dead; the first: clicks/3, offset 70: an unknown label");
  EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << "no quarantine file";
}

TEST(ReadProgressTest, AStreamOfFewRecordsIsJudgedWhenItsLastReaderEnds) {
  ReadProgress::Options options;
  options.max_bad_fraction = 0.25;
  ReadProgress progress(options);
  for (int i = 0; i < 3; ++i) progress.AddReader(TRAIN_STREAM);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(progress.AddBad(BadLine()).ok());
  EXPECT_TRUE(progress.EndReader(TRAIN_STREAM).ok()) << "others have not read yet";
  ReadCounts counts;
  counts.records = counts.scanned = 8;
  progress.Add(TRAIN_STREAM, counts);
  EXPECT_TRUE(progress.EndReader(TRAIN_STREAM).ok());
  EXPECT_EQ(progress.EndReader(TRAIN_STREAM).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ReadProgressTest, ALineThatCannotBeKeptIsAnError) {
  TempDir dir;
  ReadProgress::Options options;
  options.quarantine_dir = dir.Write("a_file", "") + "/quarantine";
  ReadProgress progress(options);
  EXPECT_FALSE(progress.AddBad(BadLine()).ok());
  EXPECT_FALSE(progress.AddBad(BadLine()).ok()) << "and stays one";
}

TEST(ReadProgressTest, OneFileThatCannotBeMadeIsAnErrorEachTime) {
  for (const char* taken : {"g0001-loader-0.tsv", "g0001-loader-0.txt"}) {
    TempDir dir;
    std::filesystem::create_directory(dir.path() + "/" + taken);
    ReadProgress::Options options;
    options.quarantine_dir = dir.path();
    ReadProgress progress(options);
    for (int i = 0; i < 2; ++i) {
      const absl::Status status = progress.AddBad(BadLine());
      EXPECT_NE(status.message().find(taken), std::string::npos) << status;
    }
    EXPECT_EQ(progress.Snapshot().quarantine_file(), "");
  }
}

TEST(ReadProgressTest, EstimatesTheRecordsOfAnEpochFromBytes) {
  ReadProgress::Options options;
  options.train_disk_bytes = 1000;
  ReadProgress progress(options);
  EXPECT_EQ(progress.Snapshot().expected_train_samples(), 0u);
  ReadCounts counts;
  counts.records = counts.scanned = 10;
  counts.disk_bytes = 100;
  counts.empty_lines = 4;
  progress.Add(TRAIN_STREAM, counts);
  EXPECT_EQ(progress.Snapshot().expected_train_samples(), 100u);
  EXPECT_EQ(progress.Snapshot().records(), 10u);
  EXPECT_EQ(progress.Snapshot().empty_lines(), 4u);
  options.train_rows = 77;
  EXPECT_EQ(ReadProgress(options).Snapshot().expected_train_samples(), 77u);
}

}  // namespace
}  // namespace satrap
