#include "common/checkpoint/cut_pin.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/file/testing/forwarding_file_system.h"
#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

// Uses the machine's own disk, because the system's locks are tested.
class CutPinTest : public testing::Test {
 protected:
  CutPinTest() {
    EXPECT_TRUE(disk_->CreateFolders(cut_).ok());
    EXPECT_TRUE(disk_->Create(cut_ + "/manifest").ok());
  }

  bool MayBeRemoved() { return LockToRemoveCut(cut_, disk_).ok(); }

  FileSystem* const disk_ = DiskFileSystem();
  const TempDir temp_;
  const std::string run_ = temp_.path();
  const std::string cut_ = run_ + "/checkpoints/cut_0001_000001";
};

TEST_F(CutPinTest, ACutWithAnyPinMayNotBeRemoved) {
  EXPECT_TRUE(MayBeRemoved());
  auto one = PinCut(cut_, disk_);
  auto two = PinCut(cut_, disk_);
  ASSERT_TRUE(one.ok() && two.ok()) << one.status() << two.status();
  EXPECT_EQ(LockToRemoveCut(cut_, disk_).status().code(), absl::StatusCode::kUnavailable);
  one->reset();
  EXPECT_FALSE(MayBeRemoved());
  two->reset();
  EXPECT_TRUE(MayBeRemoved());
}

TEST_F(CutPinTest, ACutThatIsRemovedOrBeingRemovedCannotBePinned) {
  {
    const auto removal = LockToRemoveCut(cut_, disk_);
    ASSERT_TRUE(removal.ok());
    EXPECT_EQ(PinCut(cut_, disk_).status().code(), absl::StatusCode::kNotFound);
    ASSERT_TRUE(disk_->Remove(cut_ + "/manifest").ok());
  }
  EXPECT_TRUE(HasVanished(cut_, disk_));
  EXPECT_EQ(PinCut(cut_, disk_).status().code(), absl::StatusCode::kNotFound);
  const auto rest = LockToRemoveCut(cut_, disk_);
  ASSERT_TRUE(rest.ok()) << "what is left of it may be removed";
  EXPECT_EQ(*rest, nullptr);
}

// The manifest is removed after a reader has opened it and before the reader locks it.
TEST_F(CutPinTest, TheLockOfAFileWithoutANameIsNoPin) {
  const std::string manifest = cut_ + "/manifest";
  const int fd = open(manifest.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_TRUE(disk_->Remove(manifest).ok());
  // A new link to the open file, whose name was removed above: opening `manifest` opens that file.
  ASSERT_TRUE(disk_->CreateLink(absl::StrCat("/proc/self/fd/", fd), manifest).ok());
  EXPECT_EQ(PinCut(cut_, disk_).status().code(), absl::StatusCode::kNotFound);
  close(fd);
}

TEST_F(CutPinTest, APinEndsWithItsProcessAndNotWithItsForks) {
  auto pin = PinCut(cut_, disk_);
  ASSERT_TRUE(pin.ok());
  int until_parent_is_done[2];
  ASSERT_EQ(pipe(until_parent_is_done), 0);
  // A child like the launcher's starter process, which is forked while the command line has a pin.
  const pid_t child = fork();
  if (child == 0) {
    close(until_parent_is_done[1]);
    char byte;
    _exit(read(until_parent_is_done[0], &byte, 1) == 0 ? 0 : 1);
  }
  pin->reset();
  EXPECT_TRUE(MayBeRemoved());
  close(until_parent_is_done[0]);
  close(until_parent_is_done[1]);
  int status = 0;
  waitpid(child, &status, 0);

  int pinned[2];
  ASSERT_EQ(pipe(pinned), 0);
  const pid_t reader = fork();
  if (reader == 0) {
    const auto held = PinCut(cut_, disk_);
    if (!held.ok() || write(pinned[1], "p", 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte;
  ASSERT_EQ(read(pinned[0], &byte, 1), 1);
  EXPECT_FALSE(MayBeRemoved());
  EXPECT_THAT(disk_->LockHolders(cut_ + "/manifest"), HasSubstr(absl::StrCat("process ", reader)));
  kill(reader, SIGKILL);
  waitpid(reader, &status, 0);
  EXPECT_TRUE(MayBeRemoved());
  EXPECT_EQ(disk_->LockHolders(cut_ + "/manifest"), "");
  close(pinned[0]);
  close(pinned[1]);
}

TEST_F(CutPinTest, AReaderNeedsNoRightToWrite) {
  ASSERT_EQ(chmod((cut_ + "/manifest").c_str(), 0444), 0);
  ASSERT_EQ(chmod(cut_.c_str(), 0555), 0);
  EXPECT_TRUE(PinCut(cut_, disk_).ok());
  ASSERT_EQ(chmod(cut_.c_str(), 0755), 0);
}

// A file system without locks.
class Unlockable final : public ForwardingFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path,
                                                    LockKind /*kind*/) override {
    return absl::UnimplementedError("no locks here: " + path);
  }
};

TEST_F(CutPinTest, WhereLocksDoNotReachNothingIsPinnedAndCutsAreRemoved) {
  Unlockable disk;
  const auto pin = PinCut(cut_, &disk);
  ASSERT_TRUE(pin.ok()) << pin.status();
  EXPECT_EQ(*pin, nullptr);
  const auto removal = LockToRemoveCut(cut_, &disk);
  ASSERT_TRUE(removal.ok()) << removal.status();
  EXPECT_EQ(*removal, nullptr);
}

TEST_F(CutPinTest, ARemovedCutIsToldWithItsRunAndOtherPathsAreNot) {
  const absl::Status removed = RemovedCutError("runs/a/checkpoints/cut_0001_000004");
  EXPECT_EQ(removed.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(removed.message()), HasSubstr("name the run: runs/a"));
  for (const char* other : {"runs/a", "runs/a/checkpoints", "runs/a/checkpoints/best",
                            "cut_0001_000004", "saved/cut_0001_000004", ""}) {
    EXPECT_TRUE(RemovedCutError(other).ok()) << other;
  }
}

}  // namespace
}  // namespace satrap
