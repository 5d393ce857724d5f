#include "common/checkpoint/file_system.h"

#include <unistd.h>

#include <cstdlib>

#include "common/config/text_format.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class DiskFileSystemTest : public testing::Test {
 protected:
  DiskFileSystemTest() {
    std::string pattern = testing::TempDir() + "file_system_test_XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  std::string At(const std::string& name) const { return root_ + "/" + name; }
  void Write(const std::string& name, absl::string_view bytes) {
    auto file = disk_->Create(At(name));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(bytes).ok());
    ASSERT_TRUE((*file)->Sync().ok());
  }

  FileSystem* const disk_ = DiskFileSystem();
  std::string root_;
};

TEST_F(DiskFileSystemTest, ARenamedLinkReplacesTheOneBefore) {
  ASSERT_TRUE(disk_->CreateFolders(At("a/b")).ok());
  Write("a/file", "first");
  Write("a/b/file", "second");
  ASSERT_TRUE(disk_->CreateLink("a", At("link")).ok());
  EXPECT_EQ(*ReadWholeFile(At("link/file")), "first");
  ASSERT_TRUE(disk_->CreateLink("a/b", At("link.new")).ok());
  ASSERT_TRUE(disk_->Rename(At("link.new"), At("link")).ok());
  EXPECT_EQ(*ReadWholeFile(At("link/file")), "second");
  EXPECT_TRUE(disk_->SyncFolder(root_).ok());
}

TEST_F(DiskFileSystemTest, RemovesAFolderWithAllItHoldsAndALinkWithoutItsTarget) {
  ASSERT_TRUE(disk_->CreateFolders(At("a/b")).ok());
  Write("a/b/file", "bytes");
  ASSERT_TRUE(disk_->CreateLink("a", At("link")).ok());
  EXPECT_EQ(disk_->List(root_)->size(), 2u);
  ASSERT_TRUE(disk_->Remove(At("link")).ok());
  EXPECT_EQ(*ReadWholeFile(At("a/b/file")), "bytes");
  ASSERT_TRUE(disk_->Remove(At("a")).ok());
  EXPECT_TRUE(disk_->List(root_)->empty());
  EXPECT_TRUE(disk_->Remove(At("a")).ok()) << "of what is not there";
}

TEST_F(DiskFileSystemTest, ErrorsNameThePath) {
  for (const absl::Status& status :
       {disk_->SyncFolder(At("none")), disk_->List(At("none")).status(),
        disk_->Create(At("none/file")).status(), disk_->Rename(At("none"), At("other"))}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_NE(status.message().find(root_), absl::string_view::npos) << status;
  }
  ASSERT_TRUE(disk_->CreateFolders(At("a")).ok());
  EXPECT_EQ(disk_->CreateLink("b", At("a")).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace satrap
