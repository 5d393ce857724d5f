// Tests runs that grow and shrink while they train: docs/consistency.md, "Generations".

#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/fault/fault_fixture.h"

namespace satrap {
namespace {

// Enough records that, even on a busy machine, a run does not end before `scale` has reached it.
constexpr int64_t kRecords = 300000;
constexpr double kSecondsToEnd = 120;
const std::vector<std::string> kReproducible = {"--set", "mode=SYNC", "--set", "reproducible=true"};

class ScaleTest : public FaultFixture {
 protected:
  // The digest of the model of an undisturbed run.
  std::string UndisturbedDigest() {
    // All tests have the same digest, because the numbers of processes must not change it.
    static std::string digest;
    if (digest.empty()) {
      ExpectFinished(WaitFor(StartRun(WriteCountingJob(kRecords), kReproducible), kSecondsToEnd),
                     kRecords);
      digest = ModelDigest();
      EXPECT_EQ(digest.size(), 16u);
      std::filesystem::rename(RunDir(), Path("undisturbed"));
    }
    return digest;
  }

  // Waits until the run trains in a generation of its present size, then changes the size.
  void Scale(const Command& run, const std::vector<std::string>& fields) {
    ASSERT_TRUE(WaitForCuts(Cuts() + 1)) << ReadFile(run.err_path);
    std::vector<std::string> args = {"scale", RunDir()};
    args.insert(args.end(), fields.begin(), fields.end());
    const CommandEnd end = Satrap(args);
    EXPECT_EQ(end.exit_code, 0) << end.err;
  }

  // Scales from 1 to 4 and then to 2 embedding PSs, and from 1 to 2 loaders.
  void TrainGrowAndShrink(std::vector<std::string> args, int64_t records) {
    for (const char* set : {"embedding_ps.replicas=1", "data_loader.replicas=1"}) {
      args.insert(args.end(), {"--set", set});
    }
    const Command run = StartRun(WriteCountingJob(records), args);
    Scale(run, {"embedding_ps.replicas=4", "data_loader.replicas=2"});
    Scale(run, {"embedding_ps.replicas=2"});
    ExpectFinished(WaitFor(run, kSecondsToEnd), records);
    EXPECT_EQ(Sizes(), "1 PSs, 1 loaders; 4 PSs, 2 loaders; 2 PSs, 2 loaders");
  }

  // The sizes of the generations, without repeats.
  std::string Sizes() const {
    std::string sizes;
    std::string last;
    for (const RunLogEntry& entry : Log()) {
      if (!entry.has_generation()) continue;
      const JobConfig& job = entry.generation().job();
      const std::string size = absl::StrCat(job.embedding_ps().replicas(), " PSs, ",
                                            job.data_loader().replicas(), " loaders");
      if (size != last) absl::StrAppend(&sizes, sizes.empty() ? "" : "; ", size);
      last = size;
    }
    return sizes;
  }
};

TEST_F(ScaleTest, AHybridRunGrowsAndShrinksUnderTraining) {
  // A hybrid run is faster.
  TrainGrowAndShrink({"--set", "mode=HYBRID"}, 2 * kRecords);
}

TEST_F(ScaleTest, ASyncRunThatGrowsAndShrinksGetsTheModelOfAnUndisturbedOne) {
  const std::string undisturbed = UndisturbedDigest();
  TrainGrowAndShrink(kReproducible, kRecords);
  EXPECT_EQ(ModelDigest(), undisturbed);
}

TEST_F(ScaleTest, ASyncRunThatIsKilledAndScaledGetsTheModelOfAnUndisturbedOne) {
  const std::string undisturbed = UndisturbedDigest();
  const Command run = StartRun(WriteCountingJob(kRecords), kReproducible);
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  Signal("nn_worker", 0, SIGKILL);
  ASSERT_TRUE(WaitForGenerations(2)) << ReadFile(run.err_path);
  Scale(run, {"embedding_ps.replicas=3"});
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_EQ(ModelDigest(), undisturbed);
}

// No test machine has both the programs and the card that the change of the job asks for.
TEST_F(ScaleTest, ASizeThatCannotBeginIsNamedAndTheRunGoesOnAsItWas) {
  const Command run = StartRun(WriteCountingJob(kRecords), {"--set", "mode=HYBRID"});
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const CommandEnd scaled = Satrap({"scale", RunDir(), "nn_worker.device=CUDA"});
  EXPECT_EQ(scaled.exit_code, 1) << scaled.out;
  EXPECT_THAT(scaled.err, testing::HasSubstr("continues as before, because the change could not "
                                             "begin: nn_worker.device from CPU to CUDA"));
  const int cuts = Cuts();
  EXPECT_TRUE(WaitForCuts(cuts + 1)) << ReadFile(run.err_path);
  EXPECT_EQ(Satrap({"stop", RunDir()}).exit_code, 0);
  WaitFor(run, kSecondsToEnd);
  const CommandEnd refused = Resume({"--set", "nn_worker.device=CUDA"});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  ExpectFinished(Resume(), kRecords);
}

}  // namespace
}  // namespace satrap
