#include "deploy/cli/chaos/child_run.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include "gmock/gmock.h"

namespace satrap {
namespace {

constexpr char kName[] = "the run";

// Waits for a signal without dying of it. Returns its number, or -1 if none comes.
int AwaitSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  kill(getppid(), SIGTERM);
  const timespec limit = {10, 0};
  return sigtimedwait(&signals, nullptr, &limit);
}

TEST(RunInChild, TellsHowTheChildHasEnded) {
  EXPECT_TRUE(RunInChild(kName, [] { return 0; }).ok());
  const absl::Status failed = RunInChild(kName, [] { return 7; });
  EXPECT_EQ(failed.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(failed.message(), "the run exited with code 7");
  EXPECT_EQ(RunInChild(kName, [] { return 1; }).message(),
            "the run has failed; its messages are above");
  EXPECT_EQ(RunInChild(kName, [] { return raise(SIGKILL); }).message(),
            "the run was killed by signal 9 (Killed)");
}

TEST(RunInChild, AChildThatCannotBeWatchedIsEndedAndTold) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  close(next);
  // Allow only one more open file, which the signals will use.
  const rlimit limit = {static_cast<rlim_t>(next) + 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const absl::Status status = RunInChild(kName, [] {
    while (true) pause();
    return 0;
  });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.message(), "cannot watch the run: Too many open files");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

TEST(RunInChild, AProcessThatIgnoresItsChildrenLearnsHowThisOneHasEnded) {
  const sighandler_t before = signal(SIGCHLD, SIG_IGN);
  const absl::Status status = RunInChild(kName, [] { return 7; });
  EXPECT_EQ(signal(SIGCHLD, before), SIG_IGN) << "as before";
  EXPECT_EQ(status.message(), "the run exited with code 7");
}

TEST(RunInChild, ASignalToTheParentIsPassedOnAndTheChildIsWaitedFor) {
  int came[2];
  ASSERT_EQ(pipe(came), 0);
  const absl::Status stopped = RunInChild(kName, [&came] {
    const char signal = static_cast<char>(AwaitSignal());
    return write(came[1], &signal, 1) == 1 ? 0 : 1;
  });
  EXPECT_EQ(stopped.code(), absl::StatusCode::kCancelled) << stopped;
  EXPECT_EQ(stopped.message(), "stopped by Terminated after the run had ended");
  char signal = 0;
  ASSERT_EQ(read(came[0], &signal, 1), 1);
  EXPECT_EQ(signal, SIGTERM);
  close(came[0]);
  close(came[1]);
}

TEST(RunInChild, AChildThatDoesNotCareIsEndedByTheSignal) {
  const absl::Status stopped = RunInChild(kName, [] {
    kill(getppid(), SIGINT);
    while (true) pause();
    return 0;
  });
  EXPECT_EQ(stopped.message(), "the run was stopped by Interrupt");
}

TEST(RunInChild, ASecondSignalIsPassedOnToo) {
  const absl::Status stopped = RunInChild(kName, [] {
    if (AwaitSignal() != SIGTERM) return 2;
    sigset_t terms;
    sigemptyset(&terms);
    sigaddset(&terms, SIGTERM);
    // Wait more than a second: before that, a second signal would count as a repeat of the first.
    const timespec pause = {1, 500000000};
    if (sigtimedwait(&terms, nullptr, &pause) != -1) return 3;
    return AwaitSignal() == SIGTERM ? 0 : 4;
  });
  EXPECT_EQ(stopped.message(), "stopped by Terminated after the run had ended");
}

TEST(RunInChild, SignalsAreAsBeforeOnceTheChildHasEnded) {
  EXPECT_TRUE(RunInChild(kName, [] { return 0; }).ok());
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
    _exit(RunInChild(
              kName,
              [&alive] {
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
