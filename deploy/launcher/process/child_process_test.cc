#include "deploy/launcher/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

class ChildProcessTest : public ::testing::Test {
 protected:
  std::string log_ = ::testing::TempDir() + "child_process_test." + std::to_string(getpid());
  void TearDown() override { unlink(log_.c_str()); }

  absl::StatusOr<ChildProcess> StartShell(const std::string& script) {
    return ChildProcess::Start({"/bin/sh", "-c", script}, log_);
  }
  static int WaitForEnd(ChildProcess* child) {
    siginfo_t info;
    EXPECT_EQ(waitid(P_PID, child->pid(), &info, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(child->HasEnded());
    return child->wait_status();
  }
  void WriteLog(const std::string& text) { std::ofstream(log_) << text; }
};

TEST_F(ChildProcessTest, WritesItsOutputToItsLog) {
  auto child = StartShell("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(DescribeExit(WaitForEnd(&*child)), "exited with code 3");
  std::ifstream file(log_);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, "out\nerr\n");
}

TEST_F(ChildProcessTest, HasTheDescriptorThatItIsToInheritAndNoOther) {
  int pipes[2][2];
  for (auto& ends : pipes) ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int inherited = pipes[0][1];
  const std::string other = "/proc/self/fd/" + std::to_string(pipes[1][1]);
  auto child = ChildProcess::Start(
      {"/bin/sh", "-c",
       "echo x >/proc/self/fd/" + std::to_string(inherited) + " && [ ! -e " + other + " ]"},
      /*output=*/2, inherited);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(DescribeExit(WaitForEnd(&*child)), "exited with code 0");
  char text[3];
  EXPECT_EQ(read(pipes[0][0], text, sizeof(text)), 2);
  EXPECT_EQ(fcntl(inherited, F_GETFD), FD_CLOEXEC) << "this process keeps it as it was";
  for (auto& ends : pipes) {
    close(ends[0]);
    close(ends[1]);
  }
}

TEST_F(ChildProcessTest, SaysWhichSignalKilledIt) {
  auto child = StartShell("exec sleep 60");
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_FALSE(child->HasEnded());
  child->Signal(SIGKILL);
  EXPECT_EQ(DescribeExit(WaitForEnd(&*child)), "was killed by signal 9 (Killed)");
}

TEST_F(ChildProcessTest, IsAProcessGroupOfItsOwnWithNoSignalBlocked) {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);
  auto child = StartShell("exec sleep 60");
  sigprocmask(SIG_UNBLOCK, &term, nullptr);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(getpgid(child->pid()), child->pid());
  child->Signal(SIGTERM);
  EXPECT_EQ(WTERMSIG(WaitForEnd(&*child)), SIGTERM);
}

TEST_F(ChildProcessTest, DiesWithItsParent) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    auto child = StartShell("exec sleep 60");
    const pid_t pid = child->pid();
    if (write(pipe_fds[1], &pid, sizeof(pid)) != sizeof(pid)) _exit(1);
    raise(SIGKILL);
  }
  pid_t child = 0;
  ASSERT_EQ(read(pipe_fds[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  waitpid(parent, nullptr, 0);
  // The descriptor becomes readable once the orphan has ended, even if its new parent has reaped it
  // already.
  const int orphan = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (orphan >= 0) {
    pollfd ended = {orphan, POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, 5000), 1) << "process " << child << " outlives its parent";
    close(orphan);
  } else {
    EXPECT_EQ(errno, ESRCH);
  }
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

TEST_F(ChildProcessTest, NamesTheProgramThatIsNotThere) {
  const auto child = ChildProcess::Start({"/no/such/program"}, log_);
  EXPECT_EQ(child.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(child.status().message(), HasSubstr("/no/such/program"));
}

TEST_F(ChildProcessTest, NamesTheLogThatCannotBeWritten) {
  const auto child = ChildProcess::Start({"/bin/true"}, "/no/such/folder/log");
  EXPECT_THAT(child.status().message(), HasSubstr("/no/such/folder/log: No such file"));
}

TEST_F(ChildProcessTest, TheLastErrorOfALogIsItsLastErrorLine) {
  WriteLog("T info  a/0 x\nT error a/0 first\nT error a/0 second\nT info  a/0 y\n\n");
  EXPECT_EQ(LastErrorOf(log_), "T error a/0 second");
  WriteLog("T info  a/0 x\nCHECK failed: n > 0 at f.cc:3 \nT info  a/0 y\n");
  EXPECT_EQ(LastErrorOf(log_), "CHECK failed: n > 0 at f.cc:3");
  WriteLog("just this\n");
  EXPECT_EQ(LastErrorOf(log_), "just this");
  WriteLog("");
  EXPECT_EQ(LastErrorOf(log_), "");
  EXPECT_EQ(LastErrorOf("/no/such/file"), "");
}

TEST_F(ChildProcessTest, TheLastErrorIsOfTheLastGeneration) {
  WriteLog("---- generation 1 ----\nT error old\n---- generation 2 ----\nT info begins\n");
  EXPECT_EQ(LastErrorOf(log_), "T info begins");
  WriteLog("---- generation 1 ----\nT error old\n---- generation 2 ----\n");
  EXPECT_EQ(LastErrorOf(log_), "");
}

}  // namespace
}  // namespace satrap
