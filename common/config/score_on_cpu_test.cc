#include "common/config/score_on_cpu.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/config/testing/validation_check.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

const absl::Status& NoCard() {
  static const auto* const kNoCard =
      new absl::Status(absl::FailedPreconditionError("there is no card"));
  return *kNoCard;
}

JobConfig OnCards(JobConfig::Action action) {
  JobConfig job = SmallJob();
  job.set_action(action);
  job.mutable_nn_worker()->set_device(NnWorkerConfig::CUDA);
  return job;
}

TEST(ScoreOnCpuTest, AJobThatScoresIsToldOfTheCpu) {
  for (const auto action : {JobConfig::EVALUATE, JobConfig::PREDICT}) {
    EXPECT_EQ(SuggestScoringOnCpu(NoCard(), OnCards(action)),
              absl::FailedPreconditionError(
                  "there is no card; or score on the CPU: --set nn_worker.device=CPU"));
  }
  EXPECT_EQ(SuggestScoringOnCpu(NoCard(), OnCards(JobConfig::TRAIN)), NoCard());
  JobConfig job = OnCards(JobConfig::EVALUATE);
  job.mutable_nn_worker()->set_device(NnWorkerConfig::HOST);
  EXPECT_EQ(SuggestScoringOnCpu(NoCard(), job), NoCard());
}

TEST(ScoreOnCpuTest, TheJobIsValidWithWhatIsToBeSet) {
  JobConfig job = OnCards(JobConfig::TRAIN);
  NnWorkerConfig* const nn_worker = job.mutable_nn_worker();
  nn_worker->set_precision(NnWorkerConfig::TF32);
  nn_worker->set_device_memory_bytes(int64_t{1} << 30);
  nn_worker->set_gradient_sums(NnWorkerConfig::NCCL);
  nn_worker->set_graph_capture(false);
  ASSERT_EQ(ProblemsOf(job), "");
  ASSERT_NE(ProblemsOf(job, {"nn_worker.device=CPU"}), "");
  job.set_action(JobConfig::EVALUATE);
  std::vector<std::string> sets =
      absl::StrSplit(std::string(SuggestScoringOnCpu(NoCard(), job).message()), " --set ");
  sets.erase(sets.begin());
  EXPECT_EQ(sets.size(), 5u);
  // The settings are checked in the job of the trained run, whose action is TRAIN. EVALUATE comes
  // from the user's command. That command also sets init_from, without which a job that scores is
  // not valid.
  job.set_action(JobConfig::TRAIN);
  EXPECT_EQ(ProblemsOf(job, sets), "");
}

}  // namespace
}  // namespace satrap
