#include "deploy/cli/chaos/chaos_baseline.h"

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

// TrainUndisturbed starts the running program again, and here that program is the test itself.
// Instead of training, the second process does what the job's name asks for: it exits with a given
// code, or behaves as described for one of the names below.
constexpr char kKilled[] = "killed";
constexpr char kInterrupting[] = "interrupting";  // a signal comes while the run finishes

int TrainInPlaceOfSatrap(const std::string& job) {
  if (job == kKilled) raise(SIGKILL);
  if (job == kInterrupting) {
    signal(SIGTERM, SIG_IGN);
    kill(getppid(), SIGTERM);
    return 0;
  }
  int code = 0;
  return absl::SimpleAtoi(job, &code) ? code : 2;
}

absl::Status StatusOfTraining(const std::string& job) {
  return TrainUndisturbed(".", job, /*sets=*/{}, "/none/run").status();
}

TEST(TrainUndisturbed, TellsHowTheTrainingHasEndedBeforeItLooksForARun) {
  const absl::Status killed = StatusOfTraining(kKilled);
  EXPECT_EQ(killed.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(killed.message(), "the undisturbed run in /none/run was killed by signal 9 (Killed)");
  EXPECT_EQ(StatusOfTraining("7").message(), "the undisturbed run in /none/run exited with code 7");
  EXPECT_EQ(StatusOfTraining("1").message(),
            "the undisturbed run in /none/run has failed; its messages are above");
}

TEST(TrainUndisturbed, ASignalWhileTheTrainingFinishesIsNotSaidToHaveStoppedIt) {
  const absl::Status interrupted = StatusOfTraining(kInterrupting);
  EXPECT_EQ(interrupted.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(interrupted.message(),
            "stopped by Terminated after the undisturbed run in /none/run had ended");
}

RunResult WithAuc(double auc) {
  RunResult result;
  result.mutable_test()->set_auc(auc);
  return result;
}

RunResult WithDigest(uint64_t digest) {
  RunResult result;
  result.set_model_digest(digest);
  return result;
}

TEST(CompareRuns, TellsTheSpreadOfTheUndisturbedOnes) {
  const auto text =
      CompareRuns(JobConfig(), WithAuc(0.5), {WithAuc(0.62), WithAuc(0.6), WithAuc(0.64)});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "test AUC 0.50000; 3 undisturbed runs had 0.60000 to 0.64000, mean 0.62000");
}

TEST(CompareRuns, ComparesTheBitsOfReproducibleRuns) {
  JobConfig job;
  job.set_reproducible(true);
  const auto same = CompareRuns(job, WithDigest(0xab), {WithDigest(0xab), WithDigest(0xab)});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_THAT(*same, HasSubstr("00000000000000ab, as that of each of 2"));
  const auto other = CompareRuns(job, WithDigest(0xab), {WithDigest(0xab), WithDigest(0xcd)});
  EXPECT_EQ(other.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("00000000000000cd"));
}

TEST(CompareRuns, DoesNotApplyWithoutRunsOrTestData) {
  EXPECT_EQ(CompareRuns(JobConfig(), WithAuc(0.5), {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CompareRuns(JobConfig(), RunResult(), {RunResult()}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  // satrap --install_dir=DIR train JOB --run_dir=DIR
  if (argc > 3 && strcmp(argv[2], "train") == 0) return satrap::TrainInPlaceOfSatrap(argv[3]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
