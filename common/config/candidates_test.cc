#include "common/config/candidates.h"

#include <string>

#include "common/config/testing/validation_check.h"

namespace satrap {
namespace {

JobConfig CandidateJob(const std::string& loss, const std::string& candidates) {
  JobConfig job = SmallJob();
  CHECK_OK(ParseText("tasks { loss: " + loss + " } candidates { feature: 'C2' " + candidates + " }",
                     "model", job.mutable_model()));
  return job;
}

TEST(CandidatesConfigTest, ListsAreForTraining) {
  JobConfig job = CandidateJob("SAMPLED_SOFTMAX", "count: 10");
  EXPECT_TRUE(NeedsCandidateList(job));
  EXPECT_EQ(CandidateFeatureOf(job), 1);
  job.set_action(JobConfig::EVALUATE);
  EXPECT_FALSE(NeedsCandidateList(job));
  EXPECT_EQ(CandidateFeatureOf(SmallJob()), -1);
  job = CandidateJob("IN_BATCH_SOFTMAX", "subtract_log_q: false");
  EXPECT_FALSE(NeedsCandidateList(job));
}

TEST(CandidatesConfigTest, HitsAreRemovedBySoftmaxAndKeptByNceUnlessTheJobSaysSo) {
  CandidatesConfig candidates;
  EXPECT_TRUE(RemovesHits(candidates, TaskConfig::SAMPLED_SOFTMAX));
  EXPECT_TRUE(RemovesHits(candidates, TaskConfig::IN_BATCH_SOFTMAX));
  EXPECT_FALSE(RemovesHits(candidates, TaskConfig::NCE));
  candidates.set_remove_accidental_hits(true);
  EXPECT_TRUE(RemovesHits(candidates, TaskConfig::NCE));
}

}  // namespace
}  // namespace satrap
