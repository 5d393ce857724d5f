// Tests processes that lack a resource of their machine: docs/operations.md, the table of causes.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

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
using ::testing::Not;

constexpr int64_t kRecords = 100000;
constexpr double kSecondsToEnd = 120;
// There are so many steps between two cuts that no restart reaches the next cut, and so the count
// of restarts never begins anew.
const std::vector<std::string> kFewCuts = {"--set", "checkpoint.every_steps=100"};

// A process with this limit cannot start a thread, because each would get a larger stack than there
// are addresses. pthread_create then returns EAGAIN, as it does where no process or thread is left.
// A limit on the number of processes would not do, because root is exempt from it.
constexpr rlim_t kStackOfNoThread = rlim_t{1} << 50;
// Each shard of a table maps 32 MiB for its first row, so with this many shards the two tables of
// the job map 8 GiB, though they fill only a few MB. Everything else that a process of the run maps
// is well below the limit.
const std::vector<std::string> kManyShards = {"--set", "embedding_ps.shards=128"};
constexpr rlim_t kMemoryOfHalfTheShards = rlim_t{4} << 30;
constexpr char kStackIsLimited[] = "this machine has a hard limit for the size of stacks";

class ShortageTest : public FaultFixture {
 protected:
  std::vector<std::string> TrainWith(const std::vector<std::string>& wrapper,
                                     const std::string& job) {
    std::vector<std::string> all = wrapper;
    all.insert(all.end(), {ProgramPath("deploy/satrap_cli"), "--install_dir=.", "train", job,
                           "--run_dir", RunDir()});
    return all;
  }
  // Trains, and kills a PS after the first cut. Processes that are started after that have the
  // limit, which no restart changes, so the run must fail. Its end is in `end_`.
  void TrainUntilLimited(__rlimit_resource resource, rlimit limit,
                         const std::vector<std::string>& more_sets = {}) {
    std::vector<std::string> sets = kFewCuts;
    sets.insert(sets.end(), more_sets.begin(), more_sets.end());
    const Command run = StartRun(WriteCountingJob(kRecords), sets);
    ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
    const pid_t starter = ParentOf(RoleProcess(RunDir(), "embedding_ps", 0));
    ASSERT_GT(starter, 0);
    ASSERT_EQ(prlimit(starter, resource, &limit, nullptr), 0);
    Signal("embedding_ps", 0, SIGKILL);
    end_ = WaitFor(run, kSecondsToEnd);
    EXPECT_EQ(end_.exit_code, 1) << end_.err;
  }
  // Resumes the run by processes without the limit.
  void ExpectThatAResumeFinishes() {
    EXPECT_TRUE(NobodyIsLeft());
    ExpectFinished(Resume(), kRecords);
  }

  CommandEnd end_;
};

TEST_F(ShortageTest, TooFewDescriptorsAreToldBeforeAnythingStarts) {
  const std::string job = WriteCountingJob(kRecords);
  const CommandEnd end =
      WaitFor(StartProgram(TrainWith({"prlimit", "--nofile=16:16"}, job)), kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 1) << end.err;
  EXPECT_THAT(end.err,
              AllOf(HasSubstr("this process may open 16 files and sockets"),
                    HasSubstr("raise the limit (`ulimit -n`)"), Not(HasSubstr("generation"))));
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(ShortageTest, ALoopbackThatIsDownIsToldBeforeAnythingStarts) {
  const std::vector<std::string> alone = {"unshare", "--map-root-user", "--net"};
  if (WaitFor(StartProgram({"unshare", "--map-root-user", "--net", "true"})).exit_code != 0) {
    GTEST_SKIP() << "no network of one's own is allowed here";
  }
  const CommandEnd end =
      WaitFor(StartProgram(TrainWith(alone, WriteCountingJob(kRecords))), kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 1) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr("127.0.0.1 cannot be used"), HasSubstr("ip link set lo up"),
                             Not(HasSubstr("generation"))));
}

TEST_F(ShortageTest, TooFewDescriptorsEndTheRunAtTheSecondTimeWithTheCure) {
  ASSERT_NO_FATAL_FAILURE(TrainUntilLimited(RLIMIT_NOFILE, {16, 16}));
  EXPECT_THAT(end_.err, AllOf(HasSubstr("may open 16 files and sockets"),
                              HasSubstr("\n  in 5 s generation 2 continues"),
                              HasSubstr("so no restart cures it: raise the limit (`ulimit -n`)"),
                              Not(HasSubstr("max_restarts"))));
  ExpectThatAResumeFinishes();
}

TEST_F(ShortageTest, ThreadsThatCannotBeStartedAreToldBeforeAnythingStarts) {
  const std::string limit = absl::StrCat("--stack=", kStackOfNoThread, ":");
  if (WaitFor(StartProgram({"prlimit", limit, "true"})).exit_code != 0) {
    GTEST_SKIP() << kStackIsLimited;
  }
  const CommandEnd end = WaitFor(
      StartProgram(TrainWith({"prlimit", limit}, WriteCountingJob(kRecords))), kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 1) << end.err;
  EXPECT_THAT(
      end.err,
      AllOf(
          HasSubstr(
              "this process can start only 0 of the 32 threads that it needs (Resource temporarily "
              "unavailable)"),
          HasSubstr("raise the limit (`ulimit -u`"), Not(HasSubstr("generation"))));
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(ShortageTest, ThreadsThatCannotBeStartedEndTheRunAtTheSecondTimeWithTheCure) {
  rlimit stack;
  ASSERT_EQ(getrlimit(RLIMIT_STACK, &stack), 0);
  if (stack.rlim_max < kStackOfNoThread) GTEST_SKIP() << kStackIsLimited;
  ASSERT_NO_FATAL_FAILURE(TrainUntilLimited(RLIMIT_STACK, {kStackOfNoThread, stack.rlim_max}));
  EXPECT_THAT(
      end_.err,
      AllOf(
          HasSubstr(
              "this process can start only 0 of the 32 threads that it needs (Resource temporarily "
              "unavailable)"),
          HasSubstr("\n  in 5 s generation 2 continues"),
          HasSubstr("so no restart cures it: raise the limit (`ulimit -u`, the "
                    "container's pids), or lower `threads` and `replicas`"),
          Not(HasSubstr("max_restarts"))));
  EXPECT_EQ(Generations(), 1) << "not even the coordinator could start";
  ExpectThatAResumeFinishes();
}

TEST_F(ShortageTest, TooLittleMemoryForATableEndsTheRunAtTheSecondTimeWithTheCure) {
  ASSERT_NO_FATAL_FAILURE(TrainUntilLimited(
      RLIMIT_DATA, {kMemoryOfHalfTheShards, kMemoryOfHalfTheShards}, kManyShards));
  EXPECT_THAT(end_.err,
              AllOf(HasSubstr(", while it loads the rows of the cut: no memory for "),
                    HasSubstr(" more bytes of a table: Cannot allocate memory"),
                    HasSubstr("\n  in 5 s generation 3 continues"),
                    HasSubstr("so no restart cures it: give it more memory, or use fewer or "
                              "shorter rows, smaller batches or more machines"),
                    Not(HasSubstr("max_restarts"))));
  EXPECT_EQ(Generations(), 3);
  ExpectThatAResumeFinishes();
}

TEST_F(ShortageTest, AStopReachesARunThatIsRestartedAgainAndAgain) {
  const Command run = StartRun(WriteCountingJob(kRecords), kFewCuts);
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const std::string restarted = "\n  in 4 s generation ";
  for (int deaths = 0; CountOf(ReadFile(run.err_path), restarted) == 0; ++deaths) {
    ASSERT_LT(deaths, 12) << ReadFile(run.err_path);
    const size_t before = CountOf(ReadFile(run.err_path), " continues from ");
    Signal("embedding_ps", 0, SIGKILL);
    ASSERT_TRUE(
        WaitUntil([&] { return CountOf(ReadFile(run.err_path), " continues from ") > before; }, 60))
        << ReadFile(run.err_path);
  }
  const int generations = Generations();
  const CommandEnd stop = Satrap({"stop", RunDir()});
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  EXPECT_THAT(stop.out, HasSubstr("has stopped; `satrap resume "));
  EXPECT_THAT(stop.err, HasSubstr("stopped on request between two generations"));
  const CommandEnd end = WaitFor(run, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(Generations(), generations) << "no other one was begun for the stop";
  ExpectThatAResumeFinishes();
}

}  // namespace
}  // namespace satrap
