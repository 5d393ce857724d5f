#include "deploy/cli/chaos_baseline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_EQ(*text, "test AUC 0.50000; of 3 undisturbed runs 0.60000 to 0.64000, mean 0.62000");
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
