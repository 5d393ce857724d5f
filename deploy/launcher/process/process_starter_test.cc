#include "deploy/launcher/process/process_starter.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <utility>

#include "common/base/shortage.h"
#include "deploy/launcher/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

// Waits until a process, which need not be a child of this one, has ended. False after 10 s.
bool WaitUntilGone(pid_t pid) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return true;
  pollfd waited = {fd, POLLIN, 0};
  const bool gone = poll(&waited, 1, 10000) == 1;
  close(fd);
  return gone;
}

class ProcessStarterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto starter = ProcessStarter::Fork();
    ASSERT_TRUE(starter.ok()) << starter.status();
    starter_ = *std::move(starter);
  }
  void TearDown() override { unlink(log_.c_str()); }

  pid_t StartShell(const std::string& script) {
    const auto pid = starter_->Start({"/bin/sh", "-c", script}, log_);
    EXPECT_TRUE(pid.ok()) << pid.status();
    return pid.value_or(0);
  }
  // Waits until at least one process has exited.
  std::vector<ProcessStarter::Exit> NextExits() {
    pollfd waited = {starter_->fd(), POLLIN, 0};
    EXPECT_EQ(poll(&waited, 1, 10000), 1);
    const auto exits = starter_->TakeExits();
    EXPECT_TRUE(exits.ok()) << exits.status();
    return exits.value_or(std::vector<ProcessStarter::Exit>());
  }

  std::string log_ = ::testing::TempDir() + "process_starter_test." + std::to_string(getpid());
  std::unique_ptr<ProcessStarter> starter_;
};

TEST_F(ProcessStarterTest, StartsProgramsAndTellsHowTheyEnd) {
  const pid_t pid = StartShell("echo said; exit 3");
  const auto exits = NextExits();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].pid, pid);
  EXPECT_EQ(DescribeExit(exits[0].wait_status), "exited with code 3");
  std::ifstream file(log_);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, "said\n");
}

TEST_F(ProcessStarterTest, PassesSignalsOnToThoseThatRun) {
  const pid_t ended = StartShell("exit 0");
  ASSERT_EQ(NextExits().size(), 1u);
  const pid_t running = StartShell("exec sleep 60");
  EXPECT_TRUE(starter_->Signal({ended, running}, SIGKILL).ok());
  const auto exits = NextExits();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].pid, running);
  EXPECT_EQ(DescribeExit(exits[0].wait_status), "was killed by signal 9 (Killed)");
}

TEST_F(ProcessStarterTest, SaysWhatCannotBeStarted) {
  const auto pid = starter_->Start({"/no/such/program"}, log_);
  EXPECT_EQ(pid.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(pid.status().message(), HasSubstr("/no/such/program"));
  EXPECT_GT(StartShell("exit 0"), 0) << "it still serves";
}

TEST_F(ProcessStarterTest, SaysWhatItLackedToStartOne) {
  ASSERT_GT(StartShell("exit 0"), 0) << "it has opened what it serves with";
  rlimit before;
  ASSERT_EQ(prlimit(starter_->pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit few = {3, before.rlim_max};
  ASSERT_EQ(prlimit(starter_->pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  const auto pid = starter_->Start({"/bin/true"}, log_);
  EXPECT_EQ(ShortageOf(pid.status()), Shortage::kDescriptors) << pid.status();
  ASSERT_EQ(prlimit(starter_->pid(), RLIMIT_NOFILE, &before, nullptr), 0);
  EXPECT_GT(StartShell("exit 0"), 0) << "a neighbour has given some back";
}

TEST_F(ProcessStarterTest, ItsDeathEndsAllProgramsAndIsAnError) {
  const pid_t program = StartShell("exec sleep 60");
  kill(starter_->pid(), SIGKILL);
  EXPECT_TRUE(WaitUntilGone(program));
  const auto started = starter_->Start({"/bin/true"}, log_);
  EXPECT_EQ(started.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(started.status().message(),
              HasSubstr("the process that starts the others (process " +
                        std::to_string(starter_->pid()) + ") has died"));
  EXPECT_EQ(starter_->TakeExits().status().code(), absl::StatusCode::kAborted);
}

TEST_F(ProcessStarterTest, AnotherOneServesInItsPlaceWhenAllIsGoneThatItHadStarted) {
  const pid_t ended = StartShell("exit 3");
  ASSERT_EQ(NextExits().size(), 1u);
  const pid_t program = StartShell("exec sleep 60");
  const pid_t before = starter_->pid();
  kill(before, SIGKILL);
  ASSERT_EQ(starter_->Start({"/bin/true"}, log_).status().code(), absl::StatusCode::kAborted);
  const absl::Status replaced = starter_->Replace(/*timeout_ms=*/60000);
  ASSERT_TRUE(replaced.ok()) << replaced;
  EXPECT_NE(starter_->pid(), before);
  EXPECT_TRUE(WaitUntilGone(program));
  const auto exits = starter_->TakeExits();
  ASSERT_TRUE(exits.ok()) << exits.status();
  ASSERT_EQ(exits->size(), 1u) << "the end of " << ended << " was told before";
  EXPECT_EQ((*exits)[0].pid, program);
  EXPECT_EQ(DescribeExit((*exits)[0].wait_status), "was killed by signal 9 (Killed)");
  StartShell("exit 4");
  EXPECT_EQ(DescribeExit(NextExits()[0].wait_status), "exited with code 4");
}

TEST_F(ProcessStarterTest, ItsDestructorEndsAllPrograms) {
  const pid_t program = StartShell("exec sleep 60");
  starter_.reset();
  EXPECT_TRUE(WaitUntilGone(program));
}

// The launcher is a child of this process here. When it is killed, the starter's program must end,
// too.
TEST_F(ProcessStarterTest, DiesWithItsLauncher) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    auto starter = ProcessStarter::Fork();
    const pid_t started = starter.ok() ? *(*starter)->Start({"/bin/sleep", "60"}, log_) : 0;
    if (write(pipe_fds[1], &started, sizeof(started)) < 0) _exit(1);
    while (true) pause();
  }
  pid_t program = 0;
  ASSERT_EQ(read(pipe_fds[0], &program, sizeof(program)), static_cast<ssize_t>(sizeof(program)));
  ASSERT_GT(program, 0);
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  EXPECT_TRUE(WaitUntilGone(program));
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

}  // namespace
}  // namespace satrap
