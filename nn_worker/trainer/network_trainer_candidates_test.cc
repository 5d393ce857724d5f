// Tests NetworkTrainer with candidates: compares sampled softmax, NCE and in-batch softmax with a
// scalar reference.

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/config/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/trainer/network_trainer.h"
#include "nn_worker/trainer/testing/trainer_ranks.h"

namespace satrap {
namespace {

// Users and items share a table, so a user's vector is also one of its rows. Scores are 2 <u, v> +
// b.
JobConfig CandidatesJob(const std::string& loss, const std::string& candidates) {
  const bool in_batch = loss == "IN_BATCH_SOFTMAX";
  JobConfig job;
  CHECK_OK(ParseText(absl::StrCat(R"(
        data { features { name: "user" table: "t" } features { name: "item" table: "t" } }
        tables { name: "t" id: 3 segments { name: "bias" dim: 1 }
                 segments { name: "embedding" dim: 4 } }
        model {
          layers { name: "logit" inputs: "user.embedding" inputs: "item.embedding" )",
                                  in_batch ? "in_batch_logits { scale: 2 } }"
                                           : R"(inputs: "candidates.embedding" inputs: "item.bias"
                                 inputs: "candidates.bias"
                                 candidate_logits { scale: 2 bias: true } })",
                                  "tasks { name: 'next' loss: ", loss,
                                  " } candidates { feature: 'item' ", candidates, "} }"),
                     "job", &job));
  return job;
}

std::vector<FakeSample> Pairs(uint64_t step, size_t count) {
  std::vector<FakeSample> samples = TrainerBatch(step);
  samples.resize(count);
  for (FakeSample& sample : samples) {
    sample.ids = {{100 + sample.ids[0][0]}, {sample.ids[1][0]}};
    sample.numeric.clear();
  }
  return samples;
}

constexpr char kTen[] = "count: 10";
const std::vector<uint64_t>& Ten() {
  static const auto* const kItems = new std::vector<uint64_t>{3, 1, 4, 15, 9, 2, 6, 5, 35, 8};
  return *kItems;
}

// The loss of a part, computed sample by sample in double precision.
double LossOf(const JobConfig& job, const std::vector<FakeSample>& samples, TrainerRanks* ranks) {
  const TaskConfig::Loss loss = job.model().tasks(0).loss();
  const CandidatesConfig& candidates = job.model().candidates();
  const bool in_batch = loss == TaskConfig::IN_BATCH_SOFTMAX;
  const bool remove = candidates.has_remove_accidental_hits() ? candidates.remove_accidental_hits()
                                                              : loss != TaskConfig::NCE;
  std::vector<uint64_t> items;
  if (in_batch) {
    for (const FakeSample& sample : samples) items.push_back(sample.ids[1][0]);
  } else {
    items = ranks->mutable_tables()->candidates;
  }
  double sum = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const FakeSample& sample = samples[i];
    if (sample.masked) continue;
    const std::vector<float> user = ranks->mutable_tables()->ValuesOf(0, sample.ids[0][0]);
    const auto score = [&](uint64_t item) {
      const std::vector<float> row = ranks->mutable_tables()->ValuesOf(0, item);
      double z = in_batch ? 0 : row[0];
      for (size_t c = 1; c < row.size(); ++c) z += 2.0 * user[c] * row[c];
      return z - (candidates.subtract_log_q() ? FakeTables::LogQOf(item) : 0);
    };
    const uint64_t own = sample.ids[1][0];
    const double positive = score(own);
    double exponentials = std::exp(positive);
    double nce = std::log1p(std::exp(-positive));
    for (size_t j = 0; j < items.size(); ++j) {
      if (in_batch && j == i) continue;
      if (remove && items[j] == own) continue;
      exponentials += std::exp(score(items[j]));
      nce += std::log1p(std::exp(score(items[j])));
    }
    sum += sample.weight * (loss == TaskConfig::NCE ? nce : std::log(exponentials) - positive);
  }
  return sum;
}

struct Case {
  const char* loss;
  std::string candidates;
};
const std::vector<Case>& Cases() {
  static const auto* const kCases = new std::vector<Case>{
      {"SAMPLED_SOFTMAX", kTen},
      {"SAMPLED_SOFTMAX", "count: 10 subtract_log_q: false"},
      {"SAMPLED_SOFTMAX", "count: 10 remove_accidental_hits: false"},
      {"NCE", kTen},
      {"NCE", "count: 10 remove_accidental_hits: true"},
      {"IN_BATCH_SOFTMAX", ""},
      {"IN_BATCH_SOFTMAX", "subtract_log_q: false remove_accidental_hits: false"},
  };
  return *kCases;
}

TEST(NetworkTrainerCandidatesTest, TheLossIsThatOfAScalarReference) {
  for (const Case& of : Cases()) {
    const JobConfig job = CandidatesJob(of.loss, of.candidates);
    TrainerRanks ranks(1, job);
    if (job.model().candidates().count() > 0) ranks.mutable_tables()->candidates = Ten();
    for (uint64_t step = 0; step < 5; ++step) {
      const std::vector<FakeSample> samples = Pairs(step, kTrainerBatch - step);
      const double want = LossOf(job, samples, &ranks);
      const StepResult result = ranks.Step(step, samples, {samples.size()});
      EXPECT_NEAR(result.loss, want, 1e-4 * want) << of.loss << " " << of.candidates;
      EXPECT_TRUE(result.finite);
    }
  }
}

// A gradient is right if a small step along it changes the loss by the amount that the gradient
// predicts. The dense tests check the gradients of the layers and of the losses; this test checks
// how they reach the rows.
TEST(NetworkTrainerCandidatesTest, GradientsReachTheRowsOfUsersItemsAndCandidates) {
  for (const Case& of : Cases()) {
    const JobConfig job = CandidatesJob(of.loss, of.candidates);
    TrainerRanks ranks(1, job);
    if (job.model().candidates().count() > 0) ranks.mutable_tables()->candidates = Ten();
    const std::vector<FakeSample> samples = Pairs(0, kTrainerBatch);
    ranks.MakePart(samples, /*first_sample=*/0);  // all rows are there
    std::set<uint64_t> keys(Ten().begin(), Ten().end());
    if (job.model().candidates().count() == 0) keys.clear();
    for (const FakeSample& sample : samples) {
      if (sample.masked || sample.weight == 0) continue;
      keys.insert({sample.ids[0][0], sample.ids[1][0]});
    }
    const auto embedding = [&](uint64_t key) {
      std::vector<float> row = ranks.mutable_tables()->ValuesOf(0, key);
      row.erase(row.begin());
      return row;
    };
    std::map<uint64_t, std::vector<float>> rows;
    for (const uint64_t key : keys) rows[key] = embedding(key);
    const std::vector<float> before = ranks.TableValues();
    const double first = LossOf(job, samples, &ranks);
    const StepResult result = ranks.Step(0, samples, {samples.size()});
    for (const uint64_t key : keys) EXPECT_NE(embedding(key), rows[key]) << of.loss << " " << key;
    // Adagrad has moved a value by -.05 g / sqrt(.1 + g^2).
    const std::vector<float> after = ranks.TableValues();
    double change = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const double moved = static_cast<double>(after[i]) - before[i];
      const double ratio = -moved / .05;
      change += moved * ratio * std::sqrt(FakeTables::kInitialAccumulator / (1 - ratio * ratio));
    }
    change *= result.normalizer;
    EXPECT_NEAR(LossOf(job, samples, &ranks) - first, change, .05 * std::abs(change))
        << of.loss << " " << of.candidates;
  }
}

// All parts of a batch have the same candidates, whose gradients add up.
TEST(NetworkTrainerCandidatesTest, UnequalPartsAreOneMachine) {
  for (const char* loss : {"SAMPLED_SOFTMAX", "NCE"}) {
    const JobConfig job = CandidatesJob(loss, kTen);
    TrainerRanks one(1, job), three(3, job);
    one.mutable_tables()->candidates = three.mutable_tables()->candidates = Ten();
    for (uint64_t step = 0; step < 20; ++step) {
      const std::vector<FakeSample> samples = Pairs(step, kTrainerBatch);
      const StepResult whole = one.Step(step, samples, {kTrainerBatch});
      const StepResult parts = three.Step(step, samples, {9, 9, kTrainerBatch});
      EXPECT_NEAR(parts.loss, whole.loss, 1e-4 * whole.loss);
    }
    const std::vector<float> rows = one.TableValues(), of_parts = three.TableValues();
    ASSERT_EQ(rows.size(), of_parts.size());
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_NEAR(of_parts[i], rows[i], 2e-5);
  }
}

TEST(NetworkTrainerCandidatesTest, APartMayHaveFewerCandidatesThanTheJobAsksFor) {
  const JobConfig job = CandidatesJob("SAMPLED_SOFTMAX", kTen);
  TrainerRanks ranks(1, job);
  for (const size_t count : {size_t{10}, size_t{1}, size_t{4}}) {
    ranks.mutable_tables()->candidates.assign(Ten().begin(),
                                              Ten().begin() + static_cast<int64_t>(count));
    const std::vector<FakeSample> samples = Pairs(count, kTrainerBatch);
    const double want = LossOf(job, samples, &ranks);
    EXPECT_NEAR(ranks.Step(count, samples, {kTrainerBatch}).loss, want, 1e-4 * want) << count;
  }
}

// An evaluation has no candidates, so the only metric is the number of samples.
TEST(NetworkTrainerCandidatesTest, AnEvaluationCountsSamples) {
  for (const Case& of : Cases()) {
    TrainerRanks ranks(2, CandidatesJob(of.loss, of.candidates));
    const std::vector<FakeSample> samples = Pairs(0, kTrainerBatch);
    const MetricValues values = ranks.Score(samples, {20, kTrainerBatch});
    EXPECT_GT(values.samples(), 0u);
    EXPECT_FALSE(values.has_auc());
    EXPECT_FALSE(values.has_logloss());
  }
}

}  // namespace
}  // namespace satrap
