#include "deploy/cli/child_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "gmock/gmock.h"

namespace satrap {
namespace {

// Waits for a signal in a process that does not end by it. Returns its number.
int AwaitSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  kill(getppid(), SIGTERM);
  return sigwaitinfo(&signals, nullptr);
}

TEST(RunInChild, TellsHowTheChildHasEnded) {
  EXPECT_TRUE(RunInChild([] { return 0; }).ok());
  const absl::Status failed = RunInChild([] { return 7; });
  EXPECT_EQ(failed.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(failed.message(), "exited with code 7");
  EXPECT_EQ(RunInChild([] { return raise(SIGKILL); }).message(), "was killed by signal 9 (Killed)");
}

TEST(RunInChild, ASignalToTheParentIsPassedOnAndTheChildIsWaitedFor) {
  int came[2];
  ASSERT_EQ(pipe(came), 0);
  const absl::Status stopped = RunInChild([&came] {
    const char signal = static_cast<char>(AwaitSignal());
    return write(came[1], &signal, 1) == 1 ? 0 : 1;
  });
  EXPECT_EQ(stopped.code(), absl::StatusCode::kCancelled) << stopped;
  EXPECT_EQ(stopped.message(), "stopped by Terminated");
  char signal = 0;
  ASSERT_EQ(read(came[0], &signal, 1), 1);
  EXPECT_EQ(signal, SIGTERM);
  close(came[0]);
  close(came[1]);
}

TEST(RunInChild, AChildThatDoesNotCareIsEndedByTheSignal) {
  const absl::Status stopped = RunInChild([] {
    kill(getppid(), SIGINT);
    while (true) pause();
    return 0;
  });
  EXPECT_EQ(stopped.message(), "stopped by Interrupt");
}

TEST(RunInChild, SignalsAreAsBeforeOnceTheChildHasEnded) {
  EXPECT_TRUE(RunInChild([] { return 0; }).ok());
  sigset_t blocked;
  ASSERT_EQ(sigprocmask(SIG_BLOCK, nullptr, &blocked), 0);
  EXPECT_FALSE(sigismember(&blocked, SIGINT));
}

TEST(RunInChild, AChildDiesWithItsParent) {
  int alive[2];
  ASSERT_EQ(pipe(alive), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    close(alive[0]);
    _exit(RunInChild([&alive] {
            const char begun = 1;
            if (write(alive[1], &begun, 1) != 1) return 1;
            while (true) pause();
            return 0;
          }).ok()
              ? 0
              : 1);
  }
  close(alive[1]);
  char byte = 0;
  ASSERT_EQ(read(alive[0], &byte, 1), 1);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  EXPECT_EQ(read(alive[0], &byte, 1), 0) << "nobody can write any more";
  close(alive[0]);
}

}  // namespace
}  // namespace satrap
