#include "nn_worker/collective/job_reduction.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

JobConfig Job(NnWorkerConfig::Device device, int replicas,
              NnWorkerConfig::GradientSums sums = NnWorkerConfig::AUTO) {
  JobConfig job;
  job.mutable_nn_worker()->set_device(device);
  job.mutable_nn_worker()->set_replicas(replicas);
  job.mutable_nn_worker()->set_gradient_sums(sums);
  return job;
}

TEST(JobReductionTest, SeveralCardsAddUpByThemselvesUnlessTheJobSaysOtherwise) {
  EXPECT_TRUE(SumsOnDevices(Job(NnWorkerConfig::CUDA, 2)));
  EXPECT_TRUE(SumsOnDevices(Job(NnWorkerConfig::CUDA, 2, NnWorkerConfig::NCCL)));
  EXPECT_FALSE(SumsOnDevices(Job(NnWorkerConfig::CUDA, 2, NnWorkerConfig::GLOO)));
}

TEST(JobReductionTest, OneRankHasNothingToAddUp) {
  EXPECT_FALSE(SumsOnDevices(Job(NnWorkerConfig::CUDA, 1)));
  EXPECT_FALSE(SumsOnDevices(Job(NnWorkerConfig::CUDA, 1, NnWorkerConfig::NCCL)));
}

TEST(JobReductionTest, OtherDevicesAddUpThroughTheHost) {
  EXPECT_FALSE(SumsOnDevices(Job(NnWorkerConfig::CPU, 2)));
  EXPECT_FALSE(SumsOnDevices(Job(NnWorkerConfig::HOST, 2)));
}

// NCCL does not promise the same bits on every run.
TEST(JobReductionTest, ReproducibleRunsAddUpThroughTheHost) {
  JobConfig job = Job(NnWorkerConfig::CUDA, 2);
  job.set_reproducible(true);
  EXPECT_FALSE(SumsOnDevices(job));
}

TEST(JobReductionTest, AnErrorSaysHowToDoWithout) {
  const absl::Status error = SuggestGloo(absl::FailedPreconditionError("cannot load libnccl.so.2"));
  EXPECT_EQ(error.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(error.message(), "cannot load libnccl.so.2; or set nn_worker.gradient_sums to GLOO");
  const absl::Status aborted = absl::CancelledError("connecting was aborted");
  EXPECT_EQ(SuggestGloo(aborted), aborted);
}

TEST(JobReductionTest, RanksThatOnlyScoreDoNotConnectTheirCards) {
  JobConfig job = Job(NnWorkerConfig::CUDA, 2, NnWorkerConfig::NCCL);
  job.set_action(JobConfig::PREDICT);
  EXPECT_FALSE(SumsOnDevices(job));
}

}  // namespace
}  // namespace satrap
