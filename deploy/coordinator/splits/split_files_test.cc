#include "deploy/coordinator/splits/split_files.h"

#include "common/checkpoint/order_fingerprint.h"
#include "common/file/testing/memory_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

SplitList ListOf(const std::string& path, uint64_t bytes, uint64_t content = 1) {
  SplitList list;
  FileIdentity* file = list.add_streams()->add_files();
  file->set_path(path);
  file->set_bytes(bytes);
  file->set_content(content);
  return list;
}

class SplitFilesTest : public testing::Test {
 protected:
  SplitFilesTest() {
    EXPECT_TRUE(disk_.CreateFolders("/run").ok());
    job_.set_run_dir("/run");
  }
  // Proposes a list with one file of `bytes` bytes. Returns the size of the file in the list that
  // FixSplitList chooses.
  uint64_t Fix(uint64_t bytes, absl::optional<uint64_t> cut_order = absl::nullopt) {
    const auto list = FixSplitList(job_, ListOf("a", bytes), {}, cut_order, 5, &disk_);
    EXPECT_TRUE(list.ok()) << list.status();
    return list.ok() ? list->streams(0).files(0).bytes() : 0;
  }

  MemoryFileSystem disk_;
  JobConfig job_;
};

TEST_F(SplitFilesTest, TheFirstListIsTheRuns) {
  EXPECT_EQ(Fix(10), 10u);
  EXPECT_EQ(Fix(11), 10u);
  EXPECT_EQ(disk_.List("/run/splits")->size(), 1u);
  EXPECT_TRUE(disk_.Exists("/run/splits/" + SplitListDigest(ListOf("a", 10))));
}

TEST_F(SplitFilesTest, AListIsDurableWhenItIsAnswered) {
  disk_.TakeOperations();
  Fix(10);
  const std::string path = "/run/splits/" + SplitListDigest(ListOf("a", 10));
  const std::string draft = path + ".0000000000000005.partial";
  EXPECT_THAT(disk_.TakeOperations(),
              testing::ElementsAre("folders /run/splits", "sync_folder /run", "create " + draft,
                                   "append " + draft, "sync " + draft,
                                   "rename " + draft + " " + path, "sync_folder /run/splits"));
}

TEST_F(SplitFilesTest, OfSeveralListsTheCutsIsTheRuns) {
  Fix(10);
  const std::string first = "/run/splits/" + SplitListDigest(ListOf("a", 10));
  const std::string kept = disk_.ContentOf(first);
  ASSERT_TRUE(disk_.Remove(first).ok());
  Fix(11);
  disk_.Put(first, kept);  // two coordinators wrote at once
  EXPECT_EQ(Fix(10, OrderFingerprint(job_, ListOf("a", 11))), 11u);
  EXPECT_EQ(Fix(11, OrderFingerprint(job_, ListOf("a", 10))), 10u);
  EXPECT_EQ(Fix(11), 11u) << "without a cut nothing depends on it yet";
}

TEST_F(SplitFilesTest, ADamagedListIsNamed) {
  Fix(10);
  const std::string path = "/run/splits/" + SplitListDigest(ListOf("a", 10));
  disk_.Put(path, "nonsense");
  const auto list = FixSplitList(job_, ListOf("a", 10), {}, absl::nullopt, 5, &disk_);
  EXPECT_EQ(list.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(list.status().message(), HasSubstr(path));
}

TEST(FirstDifference, NamesTheFile) {
  EXPECT_EQ(FirstDifference(ListOf("a", 1), ListOf("a", 1)), "");
  EXPECT_EQ(FirstDifference(ListOf("a", 1), ListOf("b", 1)), "the file b instead of a");
  EXPECT_EQ(FirstDifference(ListOf("a", 1), ListOf("a", 2)), "2 bytes in a, not 1");
  EXPECT_EQ(FirstDifference(ListOf("a", 1, 1), ListOf("a", 1, 2)), "another content of a");
  SplitList two = ListOf("a", 1);
  two.mutable_streams(0)->add_files();
  EXPECT_EQ(FirstDifference(ListOf("a", 1), two), "2 files of stream 0, not 1 of stream 0");
}

}  // namespace
}  // namespace satrap
