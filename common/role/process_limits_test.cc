#include "common/role/process_limits.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/shortage.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class ProcessLimitsTest : public testing::Test {
 protected:
  ProcessLimitsTest() { EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
  ~ProcessLimitsTest() override { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

  rlimit before_;
};

TEST_F(ProcessLimitsTest, AreEnoughOnAnOrdinaryMachine) {
  EXPECT_TRUE(CheckProcessLimits(/*needs_loopback=*/true).ok());
}

TEST_F(ProcessLimitsTest, TheSoftLimitOfDescriptorsIsRaised) {
  const rlimit few = {32, before_.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_TRUE(CheckProcessLimits(false).ok());
  rlimit raised;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_GT(raised.rlim_cur, 32u);
}

// Call this in a separate process, because a hard limit cannot be raised again. It ends the
// process.
void ExpectShort(rlim_t hard) {
  const rlimit few = {hard, hard};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(2);
  const absl::Status status = CheckProcessLimits(false);
  fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  _exit(ShortageOf(status) == Shortage::kDescriptors ? 0 : 1);
}

TEST(ProcessLimitsDeathTest, TooFewDescriptorsAreNamedWithTheCure) {
  EXPECT_EXIT(ExpectShort(16), testing::ExitedWithCode(0),
              "this process may open 16 files and sockets, .* needs 64 more: raise the limit "
              ".`ulimit -n`.");
}

// Each thread's stack needs half of the memory that the process may map, so only one thread can be
// started.
void ExpectFewThreads() {
  constexpr rlim_t kBytes = rlim_t{8} << 30;
  const rlimit memory = {kBytes, kBytes};
  if (setrlimit(RLIMIT_DATA, &memory) != 0) _exit(2);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kBytes / 2);
  if (pthread_setattr_default_np(&attributes) != 0) _exit(3);
  const absl::Status status = CheckProcessLimits(false);
  fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  _exit(ShortageOf(status) == Shortage::kProcesses ? 0 : 1);
}

TEST(ProcessLimitsDeathTest, TooFewThreadsAreNamedWithTheCure) {
  EXPECT_EXIT(ExpectFewThreads(), testing::ExitedWithCode(0),
              "this process can start only 1 of the 32 threads that it needs .Resource temporarily "
              "unavailable.: "
              "raise the limit .`ulimit -u`");
}

TEST(ProcessLimitsDeathTest, ALoopbackThatIsDownIsNamedWithTheCure) {
  EXPECT_EXIT(
      {
        // In a new network namespace the loopback is down. Not every machine allows a new
        // namespace.
        if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
          fprintf(stderr, "127.0.0.1 was not tried: ip link set lo up\n");
          _exit(0);
        }
        const absl::Status status = CheckProcessLimits(true);
        fprintf(stderr, "%s\n", std::string(status.message()).c_str());
        _exit(ShortageOf(status) == Shortage::kAddress ? 0 : 1);
      },
      testing::ExitedWithCode(0), "127.0.0.1 .*ip link set lo up");
}

}  // namespace
}  // namespace satrap
