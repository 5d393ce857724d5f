// Tests a disk that is full while a cut is written: docs/consistency.md, "What each failure does".
//
// The tests fill a disk in two ways. One is a real small file system in memory; mounting it needs a
// namespace, which some machines do not allow. The other works everywhere: it limits, while a
// process runs, the size of the files that the process may write.

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/fault/fault_fixture.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kRecords = 100000;
constexpr double kSecondsToEnd = 120;
// Batches are small, so that many cuts follow the one that is abandoned. If the run's last cut were
// abandoned, the run would fail. And the launcher reports an abandoned cut only when it next polls
// the coordinator.
const std::vector<std::string> kSlowly = {"--set", "global_batch_size=64", "--set",
                                          "checkpoint.every_steps=100"};
// The space that a full disk has left: enough for logs, but not for a cut.
constexpr uint64_t kLeftBytes = 64 << 10;
constexpr size_t kDiskBytes = 64 << 20;
// The limit for a file's size, in tests that limit files. The files of the first cut are larger
// already.
constexpr uint64_t kLargestFileBytes = 1 << 10;

std::string Abandoned() { return "a cut was abandoned"; }

bool WriteText(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return written;
}

// Enters a namespace in which an unprivileged user may mount file systems. User and group keep
// their numbers, so that new files belong to them.
bool EnterUserNamespace() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
         WriteText("/proc/self/uid_map", absl::StrCat(user, " ", user, " 1")) &&
         WriteText("/proc/self/setgroups", "deny") &&
         WriteText("/proc/self/gid_map", absl::StrCat(group, " ", group, " 1"));
}

// Gives this process, and those that it starts from now on, a namespace for mounts. Returns whether
// that is allowed. REQUIRES: this process has one thread
bool HasOwnMounts() {
  static const bool has = [] {
    if (unshare(CLONE_NEWNS) != 0 && !EnterUserNamespace()) return false;
    return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }();
  return has;
}

// Limits the size of every file that the process writes from now on.
void LimitFiles(pid_t pid, rlim_t bytes) {
  rlimit limit;
  ASSERT_EQ(prlimit(pid, RLIMIT_FSIZE, nullptr, &limit), 0) << strerror(errno);
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  ASSERT_EQ(prlimit(pid, RLIMIT_FSIZE, &limit, nullptr), 0) << strerror(errno);
}

class DiskTest : public FaultFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    FaultFixture::SetUp();
    if (!is_small()) return;
    std::filesystem::create_directory(RunDir());
    const std::string size = absl::StrCat("size=", kDiskBytes);
    mounted_ = HasOwnMounts() && mount("none", RunDir().c_str(), "tmpfs", 0, size.c_str()) == 0;
    if (mounted_) return;
    printf("skipped: this machine does not allow a mount of one's own (unshare): %s\n",
           strerror(errno));
    GTEST_SKIP() << "no mount of one's own is allowed here";
  }

  void TearDown() override {
    FaultFixture::TearDown();
    if (!mounted_) return;
    umount2(RunDir().c_str(), MNT_DETACH);
    std::error_code error;
    std::filesystem::remove_all(dir_, error);
  }

  static bool is_small() { return absl::string_view(GetParam()) == "SmallDisk"; }
  std::string Filler() const { return RunDir() + "/filler"; }

  void FillDisk() {
    if (!is_small()) return LimitFiles(RoleProcess(RunDir(), "embedding_ps", 1), kLargestFileBytes);
    FillWhatIsFree();
  }
  // Fills the free space. Call this repeatedly, because space becomes free when a cut is abandoned
  // or an old one is removed.
  void FillWhatIsFree() {
    struct statvfs disk;
    ASSERT_EQ(statvfs(RunDir().c_str(), &disk), 0);
    const uint64_t free_bytes = disk.f_bavail * disk.f_frsize;
    if (free_bytes <= kLeftBytes) return;
    const int fd = open(Filler().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ASSERT_GE(fd, 0);
    const std::string block(free_bytes - kLeftBytes, 'x');
    // A cut may be using up the space at the same time.
    const bool failed = write(fd, block.data(), block.size()) < 0;
    EXPECT_TRUE(!failed || errno == ENOSPC) << strerror(errno);
    close(fd);
  }
  void MakeRoom() {
    if (!is_small()) return LimitFiles(RoleProcess(RunDir(), "embedding_ps", 1), RLIM_INFINITY);
    EXPECT_TRUE(std::filesystem::remove(Filler()));
  }
  // Keeps the disk full until the launcher's output has `text`.
  bool StaysFullUntil(const Command& run, const std::string& text) {
    return WaitUntil(
        [&] {
          if (is_small()) FillWhatIsFree();
          return ReadFile(run.err_path).find(text) != std::string::npos;
        },
        60);
  }

  bool mounted_ = false;
};

TEST_P(DiskTest, ACutIsAbandonedWithAWarningAndTheRunGoesOn) {
  const Command run = StartRun(WriteCountingJob(kRecords), kSlowly);
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  FillDisk();
  ASSERT_TRUE(StaysFullUntil(run, Abandoned())) << ReadFile(run.err_path);
  const int cuts = Cuts();
  MakeRoom();
  ASSERT_TRUE(WaitForCuts(cuts + 1)) << ReadFile(run.err_path);
  const CommandEnd end = WaitFor(run, kSecondsToEnd);
  ExpectFinished(end, kRecords);
  EXPECT_EQ(Generations(), 1);
  EXPECT_THAT(end.err, HasSubstr("checkpoints/"));
}

TEST_P(DiskTest, ADiskThatStaysFullEndsTheRunAndResumeGoesOn) {
  const Command run = StartRun(WriteCountingJob(kRecords), kSlowly);
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  FillDisk();
  ASSERT_TRUE(StaysFullUntil(run, "the job failed")) << ReadFile(run.err_path);
  const CommandEnd end = WaitFor(run, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 1);
  // Either all cuts failed for 30 s, or training ended earlier and the last cut failed.
  EXPECT_THAT(end.err, AllOf(HasSubstr("could not be written"), HasSubstr("satrap resume")));
  EXPECT_EQ(Generations(), 1) << "a restart does not make room";
  EXPECT_TRUE(NobodyIsLeft());
  if (is_small()) MakeRoom();
  ExpectFinished(Resume(), kRecords);
}

INSTANTIATE_TEST_SUITE_P(EachWay, DiskTest, ::testing::Values("SmallDisk", "SmallFiles"),
                         [](const auto& info) { return std::string(info.param); });

class LogEntryTest : public FaultFixture {};

// Only the coordinator writes the log, so its limit does not affect the files of the cut.
TEST_F(LogEntryTest, ACutWhoseEntryCannotBeWrittenIsAbandonedAndTheRunGoesOn) {
  const Command run = StartRun(WriteCountingJob(kRecords), kSlowly);
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const pid_t coordinator = RoleProcess(RunDir(), "coordinator", 0);
  LimitFiles(coordinator, 0);
  ASSERT_TRUE(
      WaitUntil([&] { return ReadFile(run.err_path).find(Abandoned()) != std::string::npos; }, 60))
      << ReadFile(run.err_path);
  const int cuts = Cuts();
  LimitFiles(coordinator, RLIM_INFINITY);
  ASSERT_TRUE(WaitForCuts(cuts + 1)) << ReadFile(run.err_path);
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_EQ(Generations(), 1);
}

}  // namespace
}  // namespace satrap
