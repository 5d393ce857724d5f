#include "tests/integration/run_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "gtest/gtest.h"

namespace satrap {
namespace {

class RunFixtureTest : public RunFixture {
 public:
  using RunFixture::ProcessesWith;
};

// A test that is skipped, so that the fixture's SetUp does not run.
class SkippedFixture : public RunFixture {
  void SetUp() override { GTEST_SKIP() << "as a test without a broker"; }
};

TEST_F(SkippedFixture, EndsNoProcess) {}

TEST(RunFixtureDeathTest, NoSignalGoesToAGroupOrToEverybody) {
  for (const pid_t pid : {0, -1}) EXPECT_DEATH(SendSignal(pid, 0), "CHECK");
  EXPECT_DEATH(RunFixtureTest::ProcessesWith(""), "CHECK");
}

TEST(RunFixtureDeathTest, ASignalGoesToTheProcess) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_EQ(SendSignal(child, SIGTERM), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

}  // namespace
}  // namespace satrap
