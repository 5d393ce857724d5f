#include "common/file/durable_file.h"

#include <unistd.h>

#include "common/config/text_format.h"
#include "common/numeric/crc32c.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class DurableFileTest : public testing::Test {
 protected:
  bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }
  const TempDir temp_;
  const std::string path_ = temp_.At("file");
};

TEST_F(DurableFileTest, IsThereWholeAfterCommit) {
  auto file = DurableFile::Create(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("12345").ok());
  EXPECT_FALSE(Exists(path_)) << "before Commit only the partial file is there";
  ASSERT_TRUE((*file)->Append("6789").ok());
  EXPECT_EQ((*file)->size_bytes(), 9u);
  EXPECT_EQ((*file)->crc32c(), Crc32c("123456789"));
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(*ReadWholeFile(path_), "123456789");
  EXPECT_FALSE(Exists(path_ + ".partial"));
}

TEST_F(DurableFileTest, LeavesTheOldFileWhenItIsNotCommitted) {
  {
    auto old_file = DurableFile::Create(path_);
    ASSERT_TRUE((*old_file)->Append("old").ok());
    ASSERT_TRUE((*old_file)->Commit().ok());
    auto file = DurableFile::Create(path_);
    ASSERT_TRUE((*file)->Append("new").ok());
  }
  EXPECT_EQ(*ReadWholeFile(path_), "old");
  EXPECT_FALSE(Exists(path_ + ".partial"));
}

TEST_F(DurableFileTest, NamesAFolderThatIsNotThere) {
  const auto file = DurableFile::Create(path_ + "/below/file");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(file.status().message().find(path_), absl::string_view::npos);
}

// /dev/full behaves like a full disk.
TEST_F(DurableFileTest, SaysWhenTheDiskIsFull) {
  ASSERT_EQ(symlink("/dev/full", (path_ + ".partial").c_str()), 0);
  auto file = DurableFile::Create(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  absl::Status status = (*file)->Append("some bytes");
  if (status.ok()) status = (*file)->Commit();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_FALSE(Exists(path_));
}

}  // namespace
}  // namespace satrap
