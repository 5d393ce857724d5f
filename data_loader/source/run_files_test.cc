#include "data_loader/source/run_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/testing/temp_dir.h"

namespace satrap {
namespace {

constexpr size_t kKiB = 1024;

class RunFilesTest : public testing::Test {
 protected:
  RunFilesTest() {
    job_.set_data_root(dir_.path());
    job_.mutable_data()->mutable_criteo_tsv();
    job_.mutable_data()->add_train_files("day_*");
  }
  SplitList List() {
    auto list = ListRunFiles(job_);
    EXPECT_TRUE(list.ok()) << list.status();
    return *std::move(list);
  }
  absl::Status Check(const SplitList& fixed) { return CheckRunFiles(job_, fixed, List()); }
  // Expects that the error names the file, and says what it was, what it is, and what to do.
  void ExpectChanged(const absl::Status& status, const std::string& was, const std::string& is) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    for (const std::string& text :
         {dir_.path() + "/day_0 has changed", was, is, std::string("begin a new run")}) {
      EXPECT_TRUE(absl::StrContains(status.message(), text)) << status << " lacks " << text;
    }
  }

  TempDir dir_;
  JobConfig job_;
};

TEST_F(RunFilesTest, EachStreamHasItsFilesInTheOrderOfTheGlobs) {
  dir_.Write("day_1", "b");
  dir_.Write("day_0", "a");
  const std::string absolute = dir_.Write("test", "");
  job_.mutable_data()->add_test_files(absolute);
  job_.mutable_data()->mutable_seeded_split()->set_valid_fraction(0.1);
  const SplitList list = List();
  ASSERT_EQ(list.streams_size(), 3);
  ASSERT_EQ(list.streams(0).files_size(), 2);
  EXPECT_EQ(list.streams(0).files(0).path(), "day_0") << "relative to data_root";
  EXPECT_EQ(list.streams(0).files(0).bytes(), 1u);
  EXPECT_EQ(list.streams(0).files(1).path(), "day_1");
  EXPECT_NE(list.streams(0).files(0).content(), list.streams(0).files(1).content());
  EXPECT_EQ(list.streams(1).files(1).content(), list.streams(0).files(1).content())
      << "the valid stream is taken from the train files";
  EXPECT_EQ(list.streams(2).files(0).path(), absolute);
  EXPECT_EQ(list.streams(2).stream(), 2u);
  job_.set_action(JobConfig::EVALUATE);
  EXPECT_EQ(List().streams_size(), 1);
}

TEST_F(RunFilesTest, ASyntheticStreamHasNoFiles) {
  job_.mutable_data()->mutable_synthetic();
  const SplitList list = List();
  ASSERT_EQ(list.streams_size(), 3);
  for (const StreamFiles& stream : list.streams()) EXPECT_EQ(stream.files_size(), 0);
}

TEST_F(RunFilesTest, TheHashIsOfTheBeginningAndTheEnd) {
  const std::string text(200 * kKiB, 'x');
  const std::string path = dir_.Write("day_0", text);
  const auto hash_with = [&](size_t changed) {
    std::string other = text;
    other[changed] = 'y';
    dir_.Write("day_0", other);
    return *ContentHash(path, other.size());
  };
  const uint64_t hash = *ContentHash(path, text.size());
  EXPECT_NE(hash_with(0), hash);
  EXPECT_NE(hash_with(64 * kKiB - 1), hash);
  EXPECT_EQ(hash_with(64 * kKiB), hash);
  EXPECT_EQ(hash_with(136 * kKiB - 1), hash);
  EXPECT_NE(hash_with(136 * kKiB), hash);
  EXPECT_NE(hash_with(200 * kKiB - 1), hash);
  // The two hashed pieces never overlap; all of a file of up to 128 KiB is hashed.
  EXPECT_EQ(*ContentHash(dir_.Write("a", "a"), 1), 0xd24ec4f1a98c6e5bu) << "XXH64 of \"a\"";
  EXPECT_EQ(ContentHash(path, text.size() + 1).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(RunFilesTest, FilesThatAreAsTheyWereAreReadFurtherAndNewOnesAreNoPartOfTheRun) {
  dir_.Write("day_0", "a\n");
  const SplitList fixed = List();
  dir_.Write("day_1", "b\n");
  EXPECT_TRUE(Check(fixed).ok());
}

TEST_F(RunFilesTest, AFileMayGrow) {
  const std::string text(300 * kKiB, 'x');
  dir_.Write("day_0", text);
  const SplitList fixed = List();
  dir_.Write("day_0", text + "more");
  const absl::Status status = Check(fixed);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(RunFilesTest, AFileThatChangedIsRefused) {
  dir_.Write("day_0", "1\t2\n");
  dir_.Write("day_1", "3\n");
  const SplitList fixed = List();
  dir_.Write("day_0", "1\t3\n");
  ExpectChanged(Check(fixed), "it had 4 bytes and hash ", "now it has 4 bytes and, up to the old");
  dir_.Write("day_0", "9\t2\nand more\n");
  ExpectChanged(Check(fixed), "it had 4 bytes and hash ", "now it has 13 bytes and, up to the old");
  dir_.Write("day_0", "1\t");
  ExpectChanged(Check(fixed), "it had 4 bytes", "now it has 2 bytes.");
  std::filesystem::remove(dir_.path() + "/day_0");
  ExpectChanged(Check(fixed), "it had 4 bytes", "now it is not there.");
  dir_.Write("day_0", "1\t2\n");
  EXPECT_TRUE(Check(fixed).ok());
}

TEST_F(RunFilesTest, AMissingGlobIsFoundBeforeAnythingIsAsked) {
  EXPECT_EQ(ListRunFiles(job_).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace satrap
