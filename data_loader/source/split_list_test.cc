#include "data_loader/source/split_list.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/testing/temp_dir.h"

namespace satrap {
namespace {

JobConfig JobIn(const TempDir& dir) {
  JobConfig job;
  job.set_data_root(dir.path());
  job.mutable_data()->mutable_criteo_tsv();
  return job;
}

TEST(SplitListTest, CutsPlainFilesBySizeInTheOrderOfTheirNames) {
  TempDir dir;
  dir.Write("b.txt", "0123456789");
  dir.Write("a.txt", "0123");
  JobConfig job = JobIn(dir);
  job.mutable_data()->add_train_files("*.txt");
  job.mutable_data()->add_train_files("a.txt");  // counts once
  job.mutable_data()->set_split_bytes(4);
  const auto splits = ListSplits(job, TRAIN_STREAM);
  ASSERT_TRUE(splits.ok()) << splits.status();
  ASSERT_EQ(splits->size(), 4u);
  EXPECT_EQ((*splits)[0].path, dir.path() + "/a.txt");
  EXPECT_EQ((*splits)[1].path, dir.path() + "/b.txt");
  EXPECT_EQ((*splits)[3].from, 8u);
  EXPECT_EQ((*splits)[3].to, 10u);
  EXPECT_EQ((*splits)[0].file_bytes, 4u);
  EXPECT_EQ((*splits)[3].file_bytes, 10u);
}

TEST(SplitListTest, TheFolderOfTheDataIsNoGlob) {
  TempDir dir;
  const std::string root = dir.path() + "/run[1]*\\";
  std::filesystem::create_directory(root);
  dir.Write("run[1]*\\/a.txt", "0123");
  JobConfig job = JobIn(dir);
  job.set_data_root(root);
  for (const char* glob : {"a.*", "a.txt"}) {
    job.mutable_data()->clear_train_files();
    job.mutable_data()->add_train_files(glob);
    const auto splits = ListSplits(job, TRAIN_STREAM);
    ASSERT_TRUE(splits.ok()) << splits.status();
    ASSERT_EQ(splits->size(), 1u);
    EXPECT_EQ((*splits)[0].path, root + "/a.txt");
  }
  job.mutable_data()->add_train_files("b.*");
  EXPECT_NE(ListSplits(job, TRAIN_STREAM).status().message().find(root + "/b.*"),
            std::string::npos);
}

TEST(SplitListTest, TheGlobOfANameMatchesThatNameOnly) {
  TempDir dir;
  JobConfig job = JobIn(dir);
  for (const std::string name :
       {"a[1].txt", "a*.txt", "a?.txt", "a\\*.txt", "a1.txt", "a[!1].txt"}) {
    dir.Write(name, "0123");
  }
  for (const std::string name :
       {"a[1].txt", "a*.txt", "a?.txt", "a\\*.txt", "a1.txt", "a[!1].txt"}) {
    job.mutable_data()->clear_test_files();
    job.mutable_data()->add_test_files(GlobOf(name));
    const auto splits = ListSplits(job, TEST_STREAM);
    ASSERT_TRUE(splits.ok()) << splits.status();
    ASSERT_EQ(splits->size(), 1u) << name;
    EXPECT_EQ((*splits)[0].path, dir.path() + "/" + name);
  }
}

TEST(SplitListTest, ACompressedFileIsOneSplitWhateverItsNameSays) {
  TempDir dir;
  dir.Write("a.txt", std::string("\x1f\x8b", 2) + std::string(100, 'x'));
  dir.Write("b.gz", "\x28\xb5\x2f\xfd" + std::string(100, 'x'));
  JobConfig job = JobIn(dir);
  job.mutable_data()->add_train_files("*");
  job.mutable_data()->set_split_bytes(4);
  const auto splits = ListSplits(job, TRAIN_STREAM);
  ASSERT_TRUE(splits.ok());
  ASSERT_EQ(splits->size(), 2u);
  EXPECT_EQ((*splits)[0].compression, Compression::kGzip);
  EXPECT_EQ((*splits)[1].compression, Compression::kZstd);
}

TEST(SplitListTest, AFileWhoseRecordsMaySpanLinesIsOneSplit) {
  TempDir dir;
  dir.Write("a.csv", "0123456789");
  JobConfig job = JobIn(dir);
  job.mutable_data()->mutable_csv()->set_multiline(true);
  job.mutable_data()->add_train_files("a.csv");
  job.mutable_data()->set_split_bytes(4);
  const auto splits = ListSplits(job, TRAIN_STREAM);
  ASSERT_TRUE(splits.ok()) << splits.status();
  ASSERT_EQ(splits->size(), 1u);
  EXPECT_EQ((*splits)[0].to, 10u);
}

TEST(SplitListTest, AGlobThatMatchesNothingIsAnErrorThatNamesIt) {
  TempDir dir;
  JobConfig job = JobIn(dir);
  job.mutable_data()->add_test_files("day_*.gz");
  const auto splits = ListSplits(job, TEST_STREAM);
  EXPECT_EQ(splits.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(splits.status().message().find(dir.path() + "/day_*.gz"), std::string::npos);
  EXPECT_NE(splits.status().message().find("data.test_files"), std::string::npos);
}

TEST(SplitListTest, AFolderIsNoFile) {
  TempDir dir;
  JobConfig job = JobIn(dir);
  job.mutable_data()->add_train_files(dir.path());
  EXPECT_EQ(ListSplits(job, TRAIN_STREAM).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SplitListTest, AStreamOfASeededSplitReadsTheTrainFiles) {
  TempDir dir;
  dir.Write("a.txt", "x");
  JobConfig job = JobIn(dir);
  job.mutable_data()->add_train_files("a.txt");
  EXPECT_TRUE(ListSplits(job, VALID_STREAM)->empty());
  job.mutable_data()->mutable_seeded_split()->set_valid_fraction(0.1);
  EXPECT_EQ(ListSplits(job, VALID_STREAM)->size(), 1u);
  EXPECT_TRUE(ListSplits(job, TEST_STREAM)->empty());
}

TEST(SplitListTest, SyntheticSplitsAreRowRanges) {
  JobConfig job;
  job.mutable_data()->mutable_synthetic()->set_train_samples(250);
  job.mutable_data()->set_split_rows(100);
  auto splits = ListSplits(job, TRAIN_STREAM);
  ASSERT_EQ(splits->size(), 3u);
  EXPECT_EQ((*splits)[2].from, 200u);
  EXPECT_EQ((*splits)[2].to, 250u);
  // Splits must begin at multiples of the batch size, because the batches that cycle_batches keeps
  // do.
  job.set_global_batch_size(64);
  job.mutable_data()->mutable_synthetic()->set_cycle_batches(2);
  splits = ListSplits(job, TRAIN_STREAM);
  ASSERT_EQ(splits->size(), 4u);
  EXPECT_EQ((*splits)[1].from, 64u);
}

TEST(SplitListTest, TheProblemsOfAllStreamsThatAJobReadsAreToldEachOnce) {
  TempDir dir;
  dir.Write("a.txt", "0123");
  JobConfig job = JobIn(dir);
  job.mutable_data()->add_train_files("a.txt");
  EXPECT_EQ(CheckFilesOfJob(job), absl::OkStatus());
  job.mutable_data()->add_train_files("b.txt");
  job.mutable_data()->add_test_files("c.txt");
  job.mutable_data()->mutable_seeded_split()->set_valid_fraction(0.5);  // reads the train files
  EXPECT_EQ(
      CheckFilesOfJob(job),
      absl::NotFoundError("data.train_files: no file matches " + dir.path() +
                          "/b.txt\ndata.test_files: no file matches " + dir.path() + "/c.txt"));
  job.set_action(JobConfig::EVALUATE);
  EXPECT_EQ(CheckFilesOfJob(job),
            absl::NotFoundError("data.test_files: no file matches " + dir.path() + "/c.txt"));
}

}  // namespace
}  // namespace satrap
