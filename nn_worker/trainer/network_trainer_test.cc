#include "nn_worker/trainer/network_trainer.h"

#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/metrics/score_windows.h"
#include "nn_worker/trainer/testing/trainer_job.h"
#include "nn_worker/trainer/testing/trainer_ranks.h"

namespace satrap {
namespace {

constexpr HostDeviceOptions kReversed = {{host::ExecutionOrder::kReverse}};

class SyncEqualsOneMachineTest : public testing::TestWithParam<std::vector<size_t>> {};

TEST_P(SyncEqualsOneMachineTest, InAllWeightsAfterAHundredSteps) {
  const std::vector<size_t>& cuts = GetParam();
  TrainerRanks one(1);
  TrainerRanks many(static_cast<int>(cuts.size()));
  const std::vector<float> untrained = one.Weights(0);
  for (uint64_t step = 0; step < 100; ++step) {
    const StepResult a = one.Step(step, TrainerBatch(step), {kTrainerBatch});
    const StepResult b = many.Step(step, TrainerBatch(step), cuts);
    ASSERT_EQ(a.samples, kTrainerBatch);
    ASSERT_EQ(b.samples, kTrainerBatch);
    ASSERT_FLOAT_EQ(a.weight, b.weight);
    ASSERT_NEAR(a.loss, b.loss, 1e-2);
  }
  EXPECT_GT(LargestDifference(one.Weights(0), untrained), .1);
  EXPECT_LT(LargestDifference(one.TableValues(), many.TableValues()), 1e-5);
  for (size_t r = 0; r < cuts.size(); ++r) {
    EXPECT_LT(LargestDifference(one.Weights(0), many.Weights(r)), 1e-5);
    EXPECT_EQ(many.Weights(r), many.Weights(0));
  }
}

INSTANTIATE_TEST_SUITE_P(Cuts, SyncEqualsOneMachineTest,
                         testing::Values(std::vector<size_t>{30, 60},
                                         std::vector<size_t>{7, 7, 40, 60},
                                         std::vector<size_t>{1, 20, 59, 60}));

TEST(NetworkTrainerTest, AStepTellsTheLabelsOfAllRanksThatCount) {
  const std::vector<FakeSample> batch = TrainerBatch(3);
  uint64_t labelled = 0;
  double positives = 0;
  for (const FakeSample& sample : batch) {
    if (sample.masked || sample.weight == 0) continue;
    ++labelled;
    positives += sample.label;
  }
  ASSERT_LT(labelled, kTrainerBatch);
  ASSERT_GT(positives, 0);
  for (const std::vector<size_t>& cuts :
       {std::vector<size_t>{kTrainerBatch}, {10, 10, kTrainerBatch}}) {
    TrainerRanks ranks(static_cast<int>(cuts.size()));
    const StepResult result = ranks.Step(0, batch, cuts);
    EXPECT_EQ(result.labelled, labelled);
    EXPECT_EQ(result.positives, positives);
  }
}

// One sample of one rank has a large gradient; the other rank has gradients of usual size.
TEST(NetworkTrainerTest, ALargeGradientIsToldOnEveryRankAndApplied) {
  TrainerRanks ranks(2);
  EXPECT_FALSE(ranks.Step(0, TrainerBatch(0), {30, 60}).large);
  std::vector<FakeSample> batch = TrainerBatch(1);
  batch[40].weight = 1e17f;
  const std::vector<float> before = ranks.Weights(0);
  const StepResult result = ranks.Step(1, batch, {30, 60});
  EXPECT_TRUE(result.large);
  EXPECT_TRUE(result.finite);
  EXPECT_NE(ranks.Weights(0), before);
  EXPECT_EQ(ranks.Weights(0), ranks.Weights(1));
}

TEST(NetworkTrainerTest, AFullBatchIsDividedByItsWeightExactly) {
  TrainerRanks ranks(2);
  const StepResult result = ranks.Step(0, TrainerBatch(0), {30, 60});
  EXPECT_EQ(result.normalizer, result.weight);
}

// If gradients were means over so few samples, they would be B / n times as large, and the squares
// of these large gradients would be added to Adagrad's accumulators.
TEST(NetworkTrainerTest, AStepOfOneSampleAddsOneOfBSquaredToTheAccumulators) {
  const std::vector<FakeSample> one = {FakeSample{{.5f, .25f}, {{1}, {2}, {3}, {4}, {5}}, 1, 2}};
  TrainerRanks as_a_batch(1, TrainerJob(), 1), as_a_tail(1, TrainerJob(), kTrainerBatch);
  const StepResult batch = as_a_batch.Step(0, one, {1});
  const StepResult tail = as_a_tail.Step(0, one, {1});
  EXPECT_EQ(batch.normalizer, 2);
  EXPECT_EQ(tail.normalizer, 2 * kTrainerBatch);
  EXPECT_EQ(batch.loss, tail.loss);

  const auto added = [](const TrainerRanks& ranks) {
    double sum = 0;
    for (const float a : ranks.tables().Accumulators()) sum += a - FakeTables::kInitialAccumulator;
    return sum;
  };
  ASSERT_GT(added(as_a_batch), 1e-3);
  EXPECT_NEAR(added(as_a_tail) * kTrainerBatch * kTrainerBatch / added(as_a_batch), 1, .02);
}

TEST(NetworkTrainerTest, ATailInPartsIsOneMachinesStepOnIt) {
  TrainerRanks one(1), many(3);
  for (uint64_t step = 0; step < 30; ++step) {
    std::vector<FakeSample> batch = TrainerBatch(step);
    if (step % 3 == 2) batch.resize(20);
    const size_t n = batch.size();
    const StepResult a = one.Step(step, batch, {n});
    const StepResult b = many.Step(step, batch, {n / 3, n / 2, n});
    ASSERT_FLOAT_EQ(a.normalizer, b.normalizer);
  }
  EXPECT_LT(LargestDifference(one.TableValues(), many.TableValues()), 1e-5);
  for (int r = 0; r < 3; ++r) {
    EXPECT_LT(LargestDifference(one.Weights(0), many.Weights(r)), 1e-5);
  }
}

// Each of two ranks holds the first part of a batch of its own. Both batches have the same samples,
// so the gradients of the two ranks may differ only by what dropout keeps.
TEST(NetworkTrainerTest, InHybridModeTwoRanksDropOtherValuesOfPartsThatBeginAlike) {
  std::vector<FakeSample> batch = TrainerBatch(0);
  batch.resize(20);
  const auto gradients_of_rank = [&batch](TrainerRanks* ranks, int num_ranks) {
    std::vector<std::vector<float>> gradients(num_ranks);
    std::vector<std::future<absl::StatusOr<StepResult>>> results;
    for (int r = 0; r < num_ranks; ++r) {
      auto promise = std::make_shared<std::promise<absl::StatusOr<StepResult>>>();
      results.push_back(promise->get_future());
      ranks->trainer(r)->JoinStep(
          5, ranks->trainer(r)->Prepare(ranks->MakePart(batch, /*first_sample=*/0)), StepFlags(),
          [promise](absl::StatusOr<StepResult> result) { promise->set_value(std::move(result)); });
    }
    for (int r = 0; r < num_ranks; ++r) {
      const StepResult result = results[r].get().value();
      for (const TableGradients& table : result.gradients.header.tables()) {
        const auto values = result.gradients.payload.View<float>(
            table.gradients().offset_bytes(), table.num_rows() * table.row_values());
        gradients[r].insert(gradients[r].end(), values.begin(), values.end());
      }
    }
    return gradients;
  };
  TrainerRanks sync(2, TrainerJob(), kTrainerBatch, /*ordered=*/true),
      hybrid(2, TrainerJob(), kTrainerBatch, /*ordered=*/false);
  const std::vector<std::vector<float>> alike = gradients_of_rank(&sync, 2);
  EXPECT_EQ(alike[0], alike[1]);
  const std::vector<std::vector<float>> different = gradients_of_rank(&hybrid, 2);
  EXPECT_NE(different[0], different[1]);
}

// The device runs its operations as late as the contract allows. So if a value is read too early,
// the result is far from the CPU's. And if a result depends on an order that no event ensures, it
// differs between the orders.
TEST(NetworkTrainerTest, ADeviceTrainsAsTheCpuDoesWhateverItsOrder) {
  TrainerRanks cpu(2);
  TrainerRanks device(2, TrainerJob(), kTrainerBatch, /*ordered=*/true, HostDeviceOptions());
  TrainerRanks reversed(2, TrainerJob(), kTrainerBatch, /*ordered=*/true, kReversed);
  for (uint64_t step = 0; step < 5; ++step) {
    const StepResult a = cpu.Step(step, TrainerBatch(step), {20, kTrainerBatch});
    const StepResult b = device.Step(step, TrainerBatch(step), {20, kTrainerBatch});
    const StepResult c = reversed.Step(step, TrainerBatch(step), {20, kTrainerBatch});
    EXPECT_NEAR(b.loss, a.loss, 1e-4);
    EXPECT_EQ(b.weight, a.weight);
    EXPECT_EQ(c.loss, b.loss);
  }
  EXPECT_LT(LargestDifference(device.Weights(0), cpu.Weights(0)), 1e-4);
  EXPECT_LT(LargestDifference(device.TableValues(), cpu.TableValues()), 1e-4);
  EXPECT_EQ(reversed.Saved(0), device.Saved(0));
  EXPECT_EQ(reversed.TableValues(), device.TableValues());
  const MetricValues score = device.Score(TrainerBatch(9), {20, kTrainerBatch});
  EXPECT_NEAR(score.logloss(), cpu.Score(TrainerBatch(9), {20, kTrainerBatch}).logloss(), 1e-4);
  EXPECT_EQ(reversed.Score(TrainerBatch(9), {20, kTrainerBatch}).SerializeAsString(),
            score.SerializeAsString());
  // The AUC of the progress line is computed from logits, too.
  EXPECT_NEAR(device.trainer(0)->RecentAuc(), cpu.trainer(0)->RecentAuc(), 1e-3);
  EXPECT_EQ(reversed.trainer(0)->RecentAuc(), device.trainer(0)->RecentAuc());
}

TEST(NetworkTrainerTest, ScoresWhatARankTrainsBeforeItTrainsIt) {
  EvaluationConfig config;
  config.set_window_samples(kTrainerBatch);
  config.set_window_data_seconds(3600);
  std::vector<ScoreWindow> windows;
  ScoreWindows scores(config, 0,
                      [&windows](const ScoreWindow& window) { windows.push_back(window); });
  // Without batch norm and dropout, a training pass gives the logits of an evaluation.
  JobConfig job = TrainerJob();
  for (LayerConfig& layer : *job.mutable_model()->mutable_layers()) {
    if (!layer.has_mlp()) continue;
    layer.mutable_mlp()->clear_batch_norm();
    layer.mutable_mlp()->clear_dropout();
  }
  TrainerRanks ranks(2, job, kTrainerBatch, /*ordered=*/true, absl::nullopt, nullptr, "", &scores);
  std::vector<FakeSample> batch = TrainerBatch(0);
  for (FakeSample& sample : batch) sample.time = 7'200'001;
  // Rank 1 scores nothing.
  const MetricValues before = ranks.Score({batch.begin(), batch.begin() + 40}, {40, 40});
  ranks.Step(0, batch, {40, kTrainerBatch});
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].end, static_cast<int64_t>(kTrainerBatch)) << "samples of both ranks";
  EXPECT_EQ(windows[0].samples, before.samples()) << "of rank 0 with a known label";
  EXPECT_EQ(windows[0].steps, 1u);
  EXPECT_NEAR(windows[0].logloss, before.logloss(), 1e-6);
  EXPECT_NEAR(windows[0].calibration, before.calibration(), 1e-6);
  EXPECT_NEAR(windows[0].auc, before.auc(), .02);

  // A step of weight 0 does not count, because nothing is trained.
  for (FakeSample& sample : batch) sample.weight = 0;
  ranks.Step(1, batch, {40, kTrainerBatch});
  EXPECT_EQ(windows.size(), 1u);

  batch = TrainerBatch(1);
  for (FakeSample& sample : batch) sample.time = 10'800'001;
  ranks.Step(1, batch, {40, kTrainerBatch});
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_TRUE(windows[1].by_data_time);
  EXPECT_EQ(windows[1].begin, 7'200'000);
  EXPECT_EQ(windows[1].logloss, windows[0].logloss);
  EXPECT_FALSE(windows[2].by_data_time);
}

TEST(NetworkTrainerTest, LearnsWhatCanBeLearned) {
  TrainerRanks ranks(1);
  StepResult first, last;
  for (uint64_t step = 0; step < 300; ++step) {
    const StepResult result = ranks.Step(step, TrainerBatch(step % 20), {kTrainerBatch});
    if (step == 0) first = result;
    last = result;
  }
  EXPECT_LT(last.loss / last.weight, .8 * first.loss / first.weight);
}

TEST(NetworkTrainerTest, SixteenBitValuesOnTheWireChangeLittle) {
  TrainerRanks exact(1), f16(1), bf16(1);
  for (uint64_t step = 0; step < 20; ++step) {
    exact.Step(step, TrainerBatch(step), {kTrainerBatch});
    f16.Step(step, TrainerBatch(step), {kTrainerBatch}, F16);
    bf16.Step(step, TrainerBatch(step), {kTrainerBatch}, BF16);
  }
  EXPECT_LT(LargestDifference(exact.TableValues(), f16.TableValues()), .005);
  EXPECT_LT(LargestDifference(exact.TableValues(), bf16.TableValues()), .05);
  EXPECT_GT(LargestDifference(exact.TableValues(), bf16.TableValues()), 0);
}

TEST(NetworkTrainerTest, ANonFiniteRankMakesTheStepNonFiniteEverywhere) {
  TrainerRanks ranks(2);
  const std::vector<float> before = ranks.Weights(0);
  std::vector<FakeSample> batch = TrainerBatch(0);
  batch[0].numeric[0] = std::numeric_limits<float>::infinity();
  batch[0].masked = false;
  batch[0].weight = 1;
  const StepResult result = ranks.Step(0, batch, {30, 60});
  EXPECT_FALSE(result.finite);
  EXPECT_EQ(result.gradients.header.tables_size(), 0);
  EXPECT_EQ(ranks.Weights(0), before);
  EXPECT_EQ(ranks.Weights(1), before);
}

// What one rank has learned in `steps` steps. If `ahead`, it prepares each part as soon as the
// previous part is joined; otherwise, only when the step of the previous part has ended.
std::string Trained(uint64_t steps, bool ahead, const absl::optional<HostDeviceOptions>& device) {
  TrainerRanks ranks(1, TrainerJob(), kTrainerBatch, /*ordered=*/true, device);
  NetworkTrainer* const trainer = ranks.trainer(0);
  const auto prepare = [&](uint64_t step) {
    return trainer->Prepare(ranks.MakePart(TrainerBatch(step), 0));
  };
  std::unique_ptr<PreparedPart> next = prepare(0);
  for (uint64_t step = 0; step < steps; ++step) {
    std::promise<absl::Status> ended;
    trainer->JoinStep(step, std::move(next), StepFlags(),
                      [&](absl::StatusOr<StepResult> result) { ended.set_value(result.status()); });
    if (ahead) next = prepare(step + 1);
    CHECK_OK(ended.get_future().get());
    if (!ahead) next = prepare(step + 1);
  }
  return ranks.Saved(0);
}

TEST(NetworkTrainerTest, PartsThatArePreparedBesideAStepGiveTheSameBits) {
  EXPECT_EQ(Trained(20, /*ahead=*/true, absl::nullopt),
            Trained(20, /*ahead=*/false, absl::nullopt));
  EXPECT_EQ(Trained(6, /*ahead=*/true, kReversed),
            Trained(6, /*ahead=*/false, HostDeviceOptions()));
}

TEST(NetworkTrainerTest, WithoutWeightNothingChanges) {
  TrainerRanks ranks(2);
  const std::vector<float> before = ranks.Weights(0);
  std::vector<FakeSample> batch = TrainerBatch(0);
  for (FakeSample& sample : batch) sample.weight = 0;
  const StepResult result = ranks.Step(0, batch, {30, 60});
  EXPECT_EQ(result.weight, 0);
  EXPECT_EQ(ranks.Weights(0), before);
}

TEST(NetworkTrainerTest, FlagsAreSummedAndARankMayJoinWithoutAPart) {
  TrainerRanks ranks(2);
  std::vector<std::future<StepResult>> results;
  for (int r = 0; r < 2; ++r) {
    auto promise = std::make_shared<std::promise<StepResult>>();
    results.push_back(promise->get_future());
    StepFlags flags;
    flags.idle = true;
    flags.stop = r == 1;
    ranks.trainer(r)->JoinStep(0, nullptr, flags, [promise](absl::StatusOr<StepResult> result) {
      promise->set_value(*std::move(result));
    });
  }
  for (auto& future : results) {
    const StepResult result = future.get();
    EXPECT_EQ(result.idle_ranks, 2);
    EXPECT_TRUE(result.stop);
    EXPECT_EQ(result.weight, 0);
    EXPECT_EQ(result.samples, 0u);
  }
}

TEST(NetworkTrainerTest, MetricsAreTheSameForAnyNumberOfRanks) {
  TrainerRanks one(1), four(4);
  const MetricValues a = one.Score(TrainerBatch(0), {60});
  const MetricValues b = four.Score(TrainerBatch(0), {10, 10, 45, 60});
  EXPECT_EQ(a.samples(), b.samples());
  EXPECT_NEAR(a.auc(), b.auc(), 1e-12);
  EXPECT_NEAR(a.logloss(), b.logloss(), 1e-12);
}

TEST(NetworkTrainerTest, WithLocalBatchNormAnyRankScoresAlikeAndAsTheSavedModel) {
  JobConfig job = TrainerJob();
  MlpConfig* deep = job.mutable_model()->mutable_layers(2)->mutable_mlp();
  deep->mutable_batch_norm()->set_scope(BatchNormConfig::LOCAL);
  TrainerRanks four(4, job);
  for (uint64_t step = 0; step < 20; ++step) four.Step(step, TrainerBatch(step), {9, 9, 45, 60});
  for (int r = 1; r < 4; ++r) EXPECT_EQ(four.Saved(r), four.Saved(0));

  const MetricValues spread = four.Score(TrainerBatch(99), {10, 10, 45, 60});
  for (const std::vector<size_t>& cuts : {std::vector<size_t>{60, 60, 60, 60}, {0, 0, 60, 60}}) {
    const MetricValues on_one = four.Score(TrainerBatch(99), cuts);
    EXPECT_NEAR(on_one.auc(), spread.auc(), 1e-12);
    EXPECT_NEAR(on_one.logloss(), spread.logloss(), 1e-12);
  }
  const std::string saved = four.Saved(0);
  TrainerRanks untrained(4, job);
  four.Load(0, untrained.Saved(0));
  EXPECT_NE(four.Score(TrainerBatch(99), {60, 60, 60, 60}).logloss(), spread.logloss());
  four.Load(0, saved);
  EXPECT_NEAR(four.Score(TrainerBatch(99), {60, 60, 60, 60}).logloss(), spread.logloss(), 1e-12);
}

TEST(NetworkTrainerTest, APartThatIsNotOfThisJobIsRefused) {
  TrainerRanks ranks(1);
  PartInput part;
  part.header.mutable_part()->set_samples(3);
  std::promise<absl::Status> promise;
  ranks.trainer(0)->JoinStep(
      0, ranks.trainer(0)->Prepare(part), StepFlags(),
      [&](absl::StatusOr<StepResult> result) { promise.set_value(result.status()); });
  EXPECT_EQ(promise.get_future().get().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace satrap
