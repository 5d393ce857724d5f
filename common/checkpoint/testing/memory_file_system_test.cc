// Tests what other tests rely on: MemoryFileSystem behaves like the machine's own disk
// (file_system_test.cc), reports its operations, and fails those that its hook refuses.

#include "common/file/testing/memory_file_system.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

absl::Status Write(const std::string& path, const std::string& text, MemoryFileSystem* disk) {
  auto file = disk->Create(path);
  if (!file.ok()) return file.status();
  const absl::Status appended = (*file)->Append(text);
  return appended.ok() ? (*file)->Sync() : appended;
}

class MemoryFileSystemTest : public ::testing::Test {
 protected:
  MemoryFileSystemTest() { EXPECT_TRUE(disk_.CreateFolders("/a/b").ok()); }
  std::string Content(const std::string& path) {
    const auto content = ReadFile(path, &disk_);
    return content.ok() ? *content : std::string(content.status().message());
  }
  MemoryFileSystem disk_;
};

TEST_F(MemoryFileSystemTest, AFileHoldsWhatWasAppended) {
  ASSERT_TRUE(Write("/a/b/file", "one", &disk_).ok());
  EXPECT_EQ(Content("/a/b/file"), "one");
  auto file = disk_.Open("/a/b/file");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size_bytes(), 3u);
  ASSERT_TRUE((*file)->Skip(2).ok());
  char byte = 0;
  EXPECT_EQ(*(*file)->Read(absl::MakeSpan(&byte, 1)), 1u);
  EXPECT_EQ(byte, 'e');
  EXPECT_EQ(*(*file)->Read(absl::MakeSpan(&byte, 1)), 0u) << "at the end";
  ASSERT_TRUE(Write("/a/b/file", "2", &disk_).ok());
  EXPECT_EQ(Content("/a/b/file"), "2") << "what it held before is gone";
}

TEST_F(MemoryFileSystemTest, NothingIsMadeWhereThereIsNoFolder) {
  EXPECT_EQ(Write("/elsewhere/file", "x", &disk_).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(disk_.Open("/a/b/file").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(disk_.List("/elsewhere").status().code(), absl::StatusCode::kNotFound);
  disk_.Put("/elsewhere/deep/file", "x");
  EXPECT_THAT(*disk_.List("/elsewhere"), ElementsAre("deep")) << "Put makes them";
}

TEST_F(MemoryFileSystemTest, AHardLinkIsASecondNameAndReplacesNothing) {
  ASSERT_TRUE(Write("/a/one", "x", &disk_).ok());
  ASSERT_TRUE(disk_.HardLink("/a/one", "/a/two").ok());
  EXPECT_EQ(disk_.HardLink("/a/one", "/a/two").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(disk_.HardLink("/a/none", "/a/three").code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(disk_.Remove("/a/one").ok());
  EXPECT_EQ(Content("/a/two"), "x");
}

TEST_F(MemoryFileSystemTest, RenamingReplacesFilesAndLinks) {
  ASSERT_TRUE(Write("/a/one", "x", &disk_).ok());
  ASSERT_TRUE(disk_.CreateLink("one", "/a/latest").ok());
  EXPECT_EQ(disk_.CreateLink("two", "/a/latest").code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(disk_.CreateLink("two", "/a/new").ok());
  ASSERT_TRUE(disk_.Rename("/a/new", "/a/latest").ok());
  EXPECT_EQ(disk_.TargetOf("/a/latest"), "two");
  ASSERT_TRUE(disk_.Rename("/a/one", "/a/latest").ok());
  EXPECT_EQ(Content("/a/latest"), "x");
  EXPECT_FALSE(disk_.Exists("/a/one"));
  EXPECT_EQ(disk_.Rename("/a/one", "/a/two").code(), absl::StatusCode::kNotFound);
}

TEST_F(MemoryFileSystemTest, AFolderGoesWithAllItHoldsAndNothingElse) {
  for (const char* path : {"/a/b/file", "/a/b/c/file", "/a/bc"}) disk_.Put(path, "x");
  ASSERT_TRUE(disk_.CreateLink("file", "/a/b/link").ok());
  EXPECT_THAT(*disk_.List("/a/b"), UnorderedElementsAre("file", "link", "c"));
  ASSERT_TRUE(disk_.Remove("/a/b").ok());
  ASSERT_TRUE(disk_.Remove("/a/b").ok()) << "there is none";
  EXPECT_THAT(*disk_.List("/a"), ElementsAre("bc"));
}

TEST_F(MemoryFileSystemTest, OperationsAreToldInTheirOrder) {
  disk_.TakeOperations();
  ASSERT_TRUE(Write("/a/one", "x", &disk_).ok());
  ASSERT_TRUE(disk_.SyncFolder("/a").ok());
  ASSERT_TRUE(disk_.HardLink("/a/one", "/a/two").ok());
  ASSERT_TRUE(disk_.Rename("/a/two", "/a/three").ok());
  ASSERT_TRUE(disk_.CreateLink("one", "/a/link").ok());
  ASSERT_TRUE(disk_.Remove("/a/one").ok());
  disk_.Put("/a/put", "no operation");
  EXPECT_EQ(Content("/a/put"), "no operation");
  EXPECT_THAT(disk_.TakeOperations(),
              ElementsAre("create /a/one", "append /a/one", "sync /a/one", "sync_folder /a",
                          "hard_link /a/one /a/two", "rename /a/two /a/three", "link one /a/link",
                          "remove /a/one"));
  EXPECT_THAT(disk_.TakeOperations(), IsEmpty());
}

TEST_F(MemoryFileSystemTest, WhatTheHookRefusesHasNotHappened) {
  ASSERT_TRUE(Write("/a/one", "x", &disk_).ok());
  auto open = disk_.Create("/a/open");
  ASSERT_TRUE(open.ok());
  disk_.SetHook([](const std::string&) { return absl::ResourceExhaustedError("no space left"); });
  EXPECT_EQ(disk_.Create("/a/two").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE((*open)->Append("x").ok());
  EXPECT_FALSE((*open)->Sync().ok());
  EXPECT_FALSE(disk_.Rename("/a/one", "/a/two").ok());
  EXPECT_FALSE(disk_.HardLink("/a/one", "/a/two").ok());
  EXPECT_FALSE(disk_.CreateLink("one", "/a/two").ok());
  EXPECT_FALSE(disk_.CreateFolders("/a/two").ok());
  EXPECT_FALSE(disk_.Remove("/a/one").ok());
  EXPECT_FALSE(disk_.SyncFolder("/a").ok());
  EXPECT_FALSE(disk_.Exists("/a/two"));
  EXPECT_EQ(Content("/a/one"), "x");
  EXPECT_EQ(Content("/a/open"), "");
  disk_.SetOpenHook([](const std::string& path) {
    return path == "/a/one" ? absl::DataLossError("a bad sector") : absl::OkStatus();
  });
  EXPECT_EQ(disk_.Open("/a/one").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(disk_.Open("/a/open").ok());
}

TEST_F(MemoryFileSystemTest, AnExclusiveLockExcludesAllOthersOfTheFile) {
  disk_.Put("/a/one", "x");
  ASSERT_TRUE(disk_.HardLink("/a/one", "/a/second").ok());
  EXPECT_EQ(disk_.TryLock("/a/none", LockKind::kShared).status().code(),
            absl::StatusCode::kNotFound);
  auto shared = disk_.TryLock("/a/one", LockKind::kShared);
  auto other = disk_.TryLock("/a/second", LockKind::kShared);
  ASSERT_TRUE(shared.ok() && other.ok());
  EXPECT_EQ(disk_.LockHolders("/a/one"), "2 locks");
  EXPECT_EQ(disk_.TryLock("/a/one", LockKind::kExclusive).status().code(),
            absl::StatusCode::kUnavailable);
  shared->reset();
  EXPECT_FALSE(disk_.TryLock("/a/one", LockKind::kExclusive).ok()) << "the other name's is held";
  other->reset();
  auto exclusive = disk_.TryLock("/a/one", LockKind::kExclusive);
  ASSERT_TRUE(exclusive.ok());
  EXPECT_FALSE(disk_.TryLock("/a/second", LockKind::kShared).ok());
  disk_.Put("/a/one", "another file of this name");
  EXPECT_TRUE(disk_.TryLock("/a/one", LockKind::kExclusive).ok());
}

}  // namespace
}  // namespace satrap
