#include "common/checkpoint/storage_check.h"

#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/shortage.h"
#include "common/file/file_error.h"
#include "common/file/testing/forwarding_file_system.h"
#include "common/file/testing/memory_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRun[] = "/runs/demo";
constexpr uint64_t kWriter = 0x1234;
constexpr uint64_t kRunId = 0xabcdef;

class StorageCheckTest : public testing::Test {
 protected:
  StorageCheckTest() { EXPECT_TRUE(disk_.CreateFolders(kRun).ok()); }
  absl::Status Check(FileSystem* disk) { return CheckStorage(kRun, "fuse.s3fs", kWriter, disk); }
  // Operations that begin with `which` fail with `error`.
  void Fail(const std::string& which, const absl::Status& error) {
    disk_.SetHook([which, error](const std::string& operation) {
      return absl::StartsWith(operation, which) ? error : absl::OkStatus();
    });
  }
  std::vector<std::string> Names() { return disk_.List(kRun).value(); }

  MemoryFileSystem disk_;
};

TEST_F(StorageCheckTest, AFolderThatDoesEverythingPassesAndIsLeftAsItWas) {
  EXPECT_TRUE(Check(&disk_).ok()) << Check(&disk_);
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_TRUE(
      CheckStorage(testing::TempDir() + "/storage_check", "", kWriter, DiskFileSystem()).ok());
  EXPECT_TRUE(DiskFileSystem()->Remove(testing::TempDir() + "/storage_check").ok());
}

TEST_F(StorageCheckTest, EachCallThatFailsIsNamedWithFileSystemAndWhatWorks) {
  const std::map<std::string, std::string> calls = {
      {"folders", "mkdir"},      {"create", "open"},
      {"append", "write"},       {"sync /", "fsync"},
      {"hard_link", "link"},     {"rename", "rename"},
      {"link entry", "symlink"}, {"sync_folder", "fsync of a folder"}};
  for (const auto& [operation, call] : calls) {
    Fail(operation, absl::DataLossError("Operation not supported"));
    const absl::Status status = Check(&disk_);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << operation;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(kRun),
                      HasSubstr("`" + call + "` does not work on its file system (fuse.s3fs): "),
                      HasSubstr("Operation not supported"), HasSubstr("NFS 4, CephFS and Lustre")));
    EXPECT_THAT(Names(), IsEmpty()) << operation;
  }
}

TEST_F(StorageCheckTest, AServerThatDoesNotAnswerSaysNothingOfTheFileSystem) {
  Fail("hard_link", FileError("link", "/runs/demo/entry", ETIMEDOUT));
  const absl::Status status = Check(&disk_);
  EXPECT_EQ(status, FileError("link", "/runs/demo/entry", ETIMEDOUT));
  EXPECT_EQ(ShortageOf(status), Shortage::kMount);
}

TEST_F(StorageCheckTest, ALinkThatIsNotPermittedIsNoMatterOfRights) {
  Fail("hard_link", absl::PermissionDeniedError("Operation not permitted"));
  EXPECT_THAT(std::string(Check(&disk_).message()), HasSubstr("hard links"));
}

TEST_F(StorageCheckTest, AFolderOfAnotherUserIsAMatterOfRights) {
  for (const std::string operation : {"folders", "create"}) {
    Fail(operation, absl::PermissionDeniedError("Permission denied"));
    const absl::Status status = Check(&disk_);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(kRun), HasSubstr("the right to write"), HasSubstr("user ")));
  }
}

TEST_F(StorageCheckTest, AFullDiskMayHaveRoomLater) {
  Fail("append", absl::ResourceExhaustedError("No space left on device"));
  EXPECT_EQ(Check(&disk_).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(StorageCheckTest, ALinkThatReplacesANameIsRefused) {
  struct Replacing final : ForwardingFileSystem {
    using ForwardingFileSystem::ForwardingFileSystem;
    absl::Status HardLink(const std::string& from, const std::string& to) override {
      disk()->Remove(to).IgnoreError();
      return disk()->HardLink(from, to);
    }
  } disk(&disk_);
  EXPECT_THAT(std::string(Check(&disk).message()),
              AllOf(HasSubstr("`link` does not work"), HasSubstr("replaces a name")));
}

TEST_F(StorageCheckTest, ALinkOrARenameThatOnlyMakesANameIsRefused) {
  struct Empty final : ForwardingFileSystem {
    using ForwardingFileSystem::ForwardingFileSystem;
    absl::Status HardLink(const std::string& from, const std::string& to) override {
      if (links) return Create(to).status();
      return disk()->HardLink(from, to);
    }
    absl::Status Rename(const std::string& from, const std::string& to) override {
      const absl::Status removed = disk()->Remove(from);
      return removed.ok() ? Create(to).status() : removed;
    }
    bool links = true;
  } disk(&disk_);
  EXPECT_THAT(
      std::string(Check(&disk).message()),
      AllOf(HasSubstr("`link` does not work"), HasSubstr("does not have the expected content")));
  disk.links = false;
  EXPECT_THAT(
      std::string(Check(&disk).message()),
      AllOf(HasSubstr("`rename` does not work"), HasSubstr("does not have the expected content")));
}

TEST_F(StorageCheckTest, AFolderThatListsOtherNamesIsRefused) {
  struct Forgetful final : ForwardingFileSystem {
    using ForwardingFileSystem::ForwardingFileSystem;
    absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
      auto names = disk()->List(folder);
      if (names.ok()) std::erase(*names, "entry");
      return names;
    }
  } disk(&disk_);
  EXPECT_THAT(
      std::string(Check(&disk).message()),
      AllOf(HasSubstr("`readdir` does not work"), HasSubstr("latest, other instead of entry")));
}

TEST_F(StorageCheckTest, WithoutLocksThereIsNoRun) {
  struct Lockless final : ForwardingFileSystem {
    using ForwardingFileSystem::ForwardingFileSystem;
    absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string&, LockKind) override {
      return absl::UnimplementedError("no locks");
    }
  } disk(&disk_);
  EXPECT_THAT(std::string(Check(&disk).message()), HasSubstr("`flock` does not work"));
}

TEST_F(StorageCheckTest, AnotherCoordinatorThatClaimsMeanwhileEndsIt) {
  bool has_claimed = false;
  disk_.SetHook([&](const std::string& operation) {
    if (has_claimed || !absl::StartsWith(operation, "rename")) return absl::OkStatus();
    has_claimed = true;
    return LeaveRunId(kRun, kRunId, &disk_);
  });
  EXPECT_EQ(Check(&disk_).code(), absl::StatusCode::kAborted) << Check(&disk_);
}

// The disk of a coordinator that removes a folder, but is held up after one of the files.
struct HeldUp final : ForwardingFileSystem {
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::Status Remove(const std::string& path) override {
    return disk()->Remove(path + "/" + first);
  }
  std::string first;
};

TEST_F(StorageCheckTest, NoFileThatAnotherCoordinatorRemovesIsMissed) {
  for (const std::string first : {"draft", "other", "entry", "latest"}) {
    bool was_tidied = true;
    for (int at = 1; was_tidied; ++at) {
      MemoryFileSystem disk;
      ASSERT_TRUE(disk.CreateFolders(kRun).ok());
      HeldUp other(&disk);
      other.first = first;
      int operations = 0;
      was_tidied = false;
      disk.SetHook([&](const std::string&) {
        if (++operations != at) return absl::OkStatus();
        was_tidied = true;
        return LeaveRunId(kRun, kRunId, &other);
      });
      const absl::Status status = Check(&disk);
      EXPECT_TRUE(status.ok() || absl::IsAborted(status))
          << first << " before operation " << at << ": " << status;
    }
  }
}

TEST_F(StorageCheckTest, ARoleSeesTheRunOnceItsNumberIsThere) {
  EXPECT_EQ(SeesRun(kRun, kRunId, &disk_).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(LeaveRunId(kRun, kRunId, &disk_).ok());
  EXPECT_TRUE(SeesRun(kRun, kRunId, &disk_).ok());
  EXPECT_EQ(disk_.ContentOf("/runs/demo/run_id"), "0000000000abcdef\n");

  const absl::Status other = SeesRun(kRun, kRunId + 1, &disk_);
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()),
              AllOf(HasSubstr("/runs/demo/run_id is that of another run"),
                    HasSubstr("the same folder under the same path")));
}

TEST_F(StorageCheckTest, TheNumberIsWrittenOnceAndLeftoversGo) {
  disk_.Put("/runs/demo/storage_check.0000000000000007/draft", "left");
  disk_.Put("/runs/demo/storage_check.0000000000000008.going/draft", "left by one that tidied up");
  ASSERT_TRUE(LeaveRunId(kRun, kRunId, &disk_).ok());
  EXPECT_THAT(Names(), testing::ElementsAre("run_id"));
  disk_.TakeOperations();
  ASSERT_TRUE(LeaveRunId(kRun, kRunId, &disk_).ok());
  EXPECT_THAT(disk_.TakeOperations(), IsEmpty());
  ASSERT_TRUE(LeaveRunId(kRun, kRunId + 1, &disk_).ok());
  EXPECT_TRUE(SeesRun(kRun, kRunId + 1, &disk_).ok());
}

}  // namespace
}  // namespace satrap
