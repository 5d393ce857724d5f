#include <string>

#include "common/config/testing/validation_check.h"

namespace satrap {
namespace {

// A job that trains with sampled softmax.
JobConfig CandidateJob(const std::string& candidates = "feature: 'item' count: 10",
                       const std::string& loss = "SAMPLED_SOFTMAX",
                       const std::string& head = "candidate_logits {}") {
  JobConfig job = JobWithData(R"(
      csv { columns { name: 'label' kind: LABEL } columns { name: 'user' kind: ID }
            columns { name: 'item' kind: ID } columns { name: 'tags' kind: MULTI_ID } }
      train_files: 'train.csv'
      features { name: 'user' table: 'ids' }
      features { name: 'item' table: 'ids' }
      features { name: 'tags' table: 'ids' })");
  job.clear_model();
  const std::string model =
      absl::StrCat("layers { name: 'logit' inputs: 'user.embedding' inputs: 'item.embedding' ",
                   head, " } ", "tasks { name: 'next' loss: ", loss, " } ",
                   candidates.empty() ? "" : absl::StrCat("candidates { ", candidates, " }"));
  CHECK_OK(ParseText(model, "model", job.mutable_model()));
  return job;
}

TEST(ValidateCandidatesTest, SampledSoftmaxNceAndInBatchSoftmaxAreAccepted) {
  EXPECT_EQ(ProblemsOf(CandidateJob()), "");
  EXPECT_EQ(ProblemsOf(CandidateJob("feature: 'item' count: 10", "NCE")), "");
  EXPECT_EQ(ProblemsOf(CandidateJob("feature: 'item'", "IN_BATCH_SOFTMAX", "in_batch_logits {}")),
            "");
}

TEST(ValidateCandidatesTest, ALossNeedsItsLayer) {
  EXPECT_EQ(ProblemsOf(CandidateJob("feature: 'item' count: 10", "NCE", "in_batch_logits {}")),
            "model.tasks[0].output: must be a layer of kind candidate_logits for NCE, got 'logit'");
  EXPECT_EQ(ProblemsOf(CandidateJob("feature: 'item'", "IN_BATCH_SOFTMAX", "candidate_logits {}")),
            "model.tasks[0].output: must be a layer of kind in_batch_logits for IN_BATCH_SOFTMAX, "
            "got 'logit'");
}

TEST(ValidateCandidatesTest, AHeadLayerNeedsItsLoss) {
  EXPECT_EQ(ProblemsOf(CandidateJob("", "BCE")),
            "model.layers[name=logit]: must be the output of a task of model.tasks with loss "
            "SAMPLED_SOFTMAX or NCE");
  EXPECT_EQ(ProblemsOf(CandidateJob("", "BCE", "in_batch_logits {}")),
            "model.layers[name=logit]: must be the output of a task of model.tasks with loss "
            "IN_BATCH_SOFTMAX");
}

TEST(ValidateCandidatesTest, TheLossesNeedCandidatesAndCandidatesALoss) {
  EXPECT_EQ(ProblemsOf(CandidateJob("")),
            "model.candidates: must name the feature whose ids are the items, for the losses "
            "SAMPLED_SOFTMAX, NCE and IN_BATCH_SOFTMAX");
  JobConfig job = SmallJob();
  job.mutable_model()->mutable_candidates()->set_feature("C1");
  EXPECT_EQ(ProblemsOf(job),
            "model.candidates: needs a task with loss SAMPLED_SOFTMAX, NCE or "
            "IN_BATCH_SOFTMAX, but the job has none");
}

TEST(ValidateCandidatesTest, TheFeatureHasOneIdInEverySample) {
  EXPECT_EQ(ProblemsOf(CandidateJob("feature: 'thing' count: 10")),
            "model.candidates.feature: must be a feature of data.features, got 'thing'");
  const auto refused = [](const std::string& feature) {
    return "model.candidates.feature: every sample must have exactly one id: feature '" + feature +
           "' must read an ID column, with `missing: AS_ID`, `pooling: SUM`, and `transfer: AUTO` "
           "or `transfer: ROWS`";
  };
  EXPECT_EQ(ProblemsOf(CandidateJob("feature: 'tags' count: 10")), refused("tags"));
  JobConfig job = CandidateJob();
  FeatureConfig* const item = job.mutable_data()->mutable_features(1);
  item->set_missing(FeatureConfig::SKIP);
  EXPECT_EQ(ProblemsOf(job), refused("item"));
  item->clear_missing();
  item->set_transfer(FeatureConfig::POOLED);
  EXPECT_EQ(ProblemsOf(job), refused("item"));
  item->set_transfer(FeatureConfig::ROWS);
  EXPECT_EQ(ProblemsOf(job), "");
  item->clear_column();
  item->add_cross_columns("user");
  item->add_cross_columns("item");
  EXPECT_EQ(ProblemsOf(job), refused("item"));
}

TEST(ValidateCandidatesTest, CountsAreThoseOfTheLoss) {
  EXPECT_EQ(ProblemsOf(CandidateJob("feature: 'item'")),
            "model.candidates.count: must be at least 1 with SAMPLED_SOFTMAX or NCE, got 0");
  EXPECT_EQ(ProblemsOf(
                CandidateJob("feature: 'item' count: 5", "IN_BATCH_SOFTMAX", "in_batch_logits {}")),
            "model.candidates.count: must be 0 with IN_BATCH_SOFTMAX, got 5");
  EXPECT_EQ(ProblemsOf(CandidateJob("feature: 'item' count: 5 distortion: -1")),
            "model.candidates.distortion: must be in [0, 10], got -1");
}

TEST(ValidateCandidatesTest, TopicsNeedAList) {
  JobConfig job = CandidateJob();
  job.mutable_data()->clear_train_files();
  job.mutable_data()->mutable_kafka()->add_brokers("localhost:9092");
  job.mutable_data()->mutable_kafka()->add_topics("clicks");
  EXPECT_EQ(
      ProblemsOf(job),
      "model.candidates.list: must name a file, because the items of topics cannot be counted "
      "when the run begins");
  job.mutable_model()->mutable_candidates()->set_list("items.tsv");
  EXPECT_EQ(ProblemsOf(job), "");
}

// A candidate loss is judged by recall among all items, but validation sees only the items of a
// part.
TEST(ValidateCandidatesTest, ThereIsNoMetricToValidateBy) {
  JobConfig job = CandidateJob();
  job.mutable_data()->add_valid_files("valid.csv");
  EXPECT_EQ(ProblemsOf(job),
            "evaluation.task: task 'next' has no metric to validate by, because its loss is "
            "SAMPLED_SOFTMAX: leave out the validation data, or name another task");
}

}  // namespace
}  // namespace satrap
