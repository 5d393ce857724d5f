#include "deploy/launcher/process/stop_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace satrap {
namespace {

void SendToSelf(int signal) { ASSERT_EQ(kill(getpid(), signal), 0); }

TEST(StopSignals, TheFirstIsTakenAndRemembered) {
  StopSignals signals;
  EXPECT_EQ(signals.Take(), 0);
  EXPECT_EQ(signals.first(), 0);
  SendToSelf(SIGTERM);
  EXPECT_EQ(signals.Take(), SIGTERM);
  EXPECT_EQ(signals.Take(), 0);
  EXPECT_EQ(signals.first(), SIGTERM);
}

TEST(StopSignals, WhatAProgramRepeatsWithinASecondIsOneSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    int64_t now_ms = 5000;
    StopSignals signals([&now_ms] { return now_ms; });
    SendToSelf(signal);
    EXPECT_EQ(signals.Take(), signal);
    SendToSelf(signal);
    EXPECT_EQ(signals.Take(), 0) << signal;
    now_ms = 5999;
    SendToSelf(signal);
    EXPECT_EQ(signals.Take(), 0) << signal;
    now_ms = 6000;
    EXPECT_EQ(signals.Take(), 0) << signal;
    SendToSelf(signal);
    EXPECT_EQ(signals.Take(), signal) << "it was sent again, and not in the same moment";
  }
}

TEST(StopSignals, ARepeatThatWaitedForABusyReaderIsOneSignal) {
  int64_t now_ms = 5000;
  StopSignals signals([&now_ms] { return now_ms; });
  SendToSelf(SIGTERM);
  EXPECT_EQ(signals.Take(), SIGTERM);
  SendToSelf(SIGTERM);
  now_ms = 9000;
  EXPECT_EQ(signals.Take(), 0) << "nobody knows when it came";
  SendToSelf(SIGTERM);
  EXPECT_EQ(signals.Take(), SIGTERM) << "none waited, so it came now";
}

TEST(StopSignals, TheSecondBeginsWhenABusyReaderHasReadTheFirst) {
  int64_t now_ms = 5000;
  StopSignals signals([&now_ms] { return now_ms; });
  SendToSelf(SIGTERM);
  now_ms = 9000;
  EXPECT_EQ(signals.Take(), SIGTERM);
  now_ms = 9999;
  EXPECT_EQ(signals.Take(), 0);
  SendToSelf(SIGTERM);
  EXPECT_EQ(signals.Take(), 0);
}

TEST(StopSignals, AnotherSignalCountsAtOnce) {
  StopSignals signals([] { return 0; });
  SendToSelf(SIGINT);
  EXPECT_EQ(signals.Take(), SIGINT);
  SendToSelf(SIGTERM);
  EXPECT_EQ(signals.Take(), SIGTERM);
  EXPECT_EQ(signals.first(), SIGINT);
}

TEST(StopSignals, WhatNobodyHasTakenIsConsumed) {
  {
    StopSignals signals;
    SendToSelf(SIGTERM);
  }
  StopSignals again;
  EXPECT_EQ(again.Take(), 0);
}

TEST(StopSignals, WhatIsLeftUnreadHasItsUsualEffect) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    {
      StopSignals signals;
      SendToSelf(SIGTERM);
      signals.LeaveUnread();
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

// Must run in a child process, which makes a pseudo-terminal its own, so that keys pressed there
// send it signals. Returns 0, or the number of the step that failed.
int PressKeys() {
  const int keyboard = posix_openpt(O_RDWR | O_NOCTTY);
  if (keyboard < 0 || grantpt(keyboard) != 0 || unlockpt(keyboard) != 0) return 1;
  if (setsid() < 0 || open(ptsname(keyboard), O_RDWR) < 0) return 2;
  StopSignals signals([] { return 0; });
  const auto next = [&signals](int timeout_ms) {
    pollfd waited = {signals.fd(), POLLIN, 0};
    poll(&waited, 1, timeout_ms);
    return signals.Take();
  };
  const char ctrl_c = 3;
  if (write(keyboard, &ctrl_c, 1) != 1 || next(10000) != SIGINT) return 3;
  // Another program passes on the same Ctrl-C, which must not count.
  if (kill(getpid(), SIGINT) != 0 || next(0) != 0) return 4;
  if (write(keyboard, &ctrl_c, 1) != 1 || next(10000) != SIGINT) return 5;
  return 0;
}

TEST(StopSignals, AKeyThatIsPressedTwiceIsTwoSignals) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(PressKeys());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0) << "see PressKeys";
}

}  // namespace
}  // namespace satrap
