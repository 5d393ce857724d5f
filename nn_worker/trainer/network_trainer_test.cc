#include "nn_worker/trainer/network_trainer.h"

#include <atomic>
#include <cmath>
#include <filesystem>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/checkpoint/manifest.h"
#include "common/config/text_format.h"
#include "common/numeric/random.h"
#include "common/rpc/header.h"
#include "common/thread/mutex.h"
#include "common/thread/serial_executor.h"
#include "common/thread/thread_pool_executor.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/backend/deferred_backend.h"
#include "nn_worker/backend/fork_join_pool.h"
#include "nn_worker/checkpoint/cut_engine.h"
#include "nn_worker/checkpoint/saved_model.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/trainer/fake_tables.h"

namespace satrap {
namespace {

constexpr char kJob[] = R"pb(
  data {
    numerics { name: "n0" }
    numerics { name: "n1" }
    features { name: "a" table: "wide" }
    features { name: "b" table: "wide" }
    features { name: "c" table: "narrow" pooling: MEAN transfer: ROWS }
    features { name: "d" table: "narrow" pooling: SUM transfer: POOLED }
    features { name: "e" table: "history" pooling: NONE max_length: 3 }
  }
  tables {
    name: "wide"
    id: 7
    segments { name: "linear" dim: 1 }
    segments { name: "embedding" dim: 4 }
  }
  tables {
    name: "narrow"
    id: 3
    segments { name: "embedding" dim: 4 }
  }
  tables {
    name: "history"
    id: 4
    segments { name: "item" dim: 3 }
  }
  model {
    layers {
      name: "clicked"
      inputs: "e.item"
      inputs: "e.length"
      sequence_pool {}
    }
    layers {
      name: "all"
      inputs: "numeric"
      inputs: "*.embedding"
      inputs: "clicked"
      concat {}
    }
    layers {
      name: "deep"
      inputs: "all"
      mlp {
        units: 8
        units: 4
        batch_norm {}
        dropout: .2
        output_units: 1
      }
    }
    layers {
      name: "fm"
      inputs: "*.embedding"
      fm {}
    }
    layers {
      name: "first"
      inputs: "*.linear"
      sum {}
    }
    layers {
      name: "logit"
      inputs: "deep"
      inputs: "fm"
      inputs: "first"
      add {}
    }
  }
  dense_optimizer {
    learning_rate: .05
    adagrad { initial_accumulator: .1 }
  }
)pb";

constexpr size_t kBatch = 60;

JobConfig Job() {
  JobConfig job;
  const absl::Status status = ParseText(kJob, "job", &job);
  CHECK(status.ok()) << status.ToString();
  return job;
}

// Batches with repeated ids, samples without ids, weights, and labels that are not known.
std::vector<FakeSample> Batch(uint64_t step) {
  SplitMix64 random(step + 1);
  std::vector<FakeSample> batch(kBatch);
  for (FakeSample& sample : batch) {
    sample.numeric = {static_cast<float>(random.NextDouble()),
                      static_cast<float>(random.NextDouble())};
    sample.ids = {{random.Below(20)}, {random.Below(20)}, {}, {}, {}};
    for (size_t feature : {2, 3, 4}) {
      for (uint64_t i = random.Below(feature == 4 ? 6 : 4); i > 0; --i) {
        sample.ids[feature].push_back(random.Below(10));
      }
    }
    sample.label = (sample.ids[0][0] + sample.ids[1][0]) % 3 == 0 ? 1 : 0;
    sample.weight = .5f * static_cast<float>(random.Below(4));
    sample.masked = random.Below(10) == 0;
  }
  return batch;
}

// W ranks, each a NetworkTrainer of its own, over common tables.
class Ranks {
 public:
  explicit Ranks(int num_ranks, const JobConfig& job = Job(), int64_t global_batch_size = kBatch,
                 bool ordered = true, bool deferred = false, CutEngine* cuts = nullptr,
                 const std::string& run_dir = "")
      : job_(job),
        layout_(MakePartLayout(job_)),
        tables_(&layout_),
        collectives_(NewLocalCollectives(num_ranks)) {
    for (int r = 0; r < num_ranks; ++r) {
      pools_.push_back(std::make_unique<ForkJoinPool>(1 + r % 2));
      backends_.push_back(NewCpuBackend(pools_.back().get()));
      if (deferred) {
        backends_.back() = NewDeferredBackend(std::move(backends_.back()), HostAccess::kByViewing);
      }
      NetworkOptions options;
      options.model = job_.model();
      options.inputs = layout_.inputs;
      options.optimizer = job_.dense_optimizer();
      options.max_samples = kBatch;
      options.backend = backends_.back().get();
      options.collective = collectives_[r].get();
      auto network = Network::Create(options);
      CHECK(network.ok()) << network.status().ToString();
      networks_.push_back(*std::move(network));
      NetworkTrainerOptions trainer;
      trainer.layout = &layout_;
      trainer.max_samples = kBatch;
      trainer.global_batch_size = global_batch_size;
      trainer.ordered = ordered;
      trainer.network = networks_.back().get();
      trainer.collective = collectives_[r].get();
      trainer.pool = pools_.back().get();
      trainer.cuts = r == 0 ? cuts : nullptr;
      trainer.run_dir = r == 0 ? run_dir : "";
      trainers_.push_back(std::make_unique<NetworkTrainer>(trainer));
    }
  }

  // Trains one step on the batch, cut at `cuts` (one rank each; equal cuts make an empty part).
  StepResult Step(uint64_t step, std::vector<FakeSample> batch, std::vector<size_t> cuts,
                  WireDtype dtype = F32) {
    cuts.insert(cuts.begin(), 0);
    std::vector<PartInput> parts;
    std::vector<std::future<absl::StatusOr<StepResult>>> results;
    for (size_t r = 0; r < trainers_.size(); ++r) {
      const std::vector<FakeSample> samples(batch.begin() + cuts[r], batch.begin() + cuts[r + 1]);
      parts.push_back(tables_.MakePart(samples, cuts[r], dtype));
    }
    for (size_t r = 0; r < trainers_.size(); ++r) {
      auto promise = std::make_shared<std::promise<absl::StatusOr<StepResult>>>();
      results.push_back(promise->get_future());
      trainers_[r]->JoinStep(
          step, parts[r], StepFlags(),
          [promise](absl::StatusOr<StepResult> result) { promise->set_value(std::move(result)); });
    }
    StepResult last;
    for (size_t r = 0; r < trainers_.size(); ++r) {
      auto result = results[r].get();
      CHECK(result.ok()) << result.status().ToString();
      last = *result;
      if (last.weight > 0 && last.finite) tables_.Push(parts[r], last.gradients);
    }
    if (last.weight > 0 && last.finite) tables_.Apply(last.normalizer);
    return last;
  }

  PartInput MakePart(const std::vector<FakeSample>& samples, uint64_t first_sample) {
    return tables_.MakePart(samples, first_sample, F32);
  }

  MetricValues Score(const std::vector<FakeSample>& batch, const std::vector<size_t>& cuts) {
    size_t begin = 0;
    std::vector<std::future<absl::StatusOr<MetricValues>>> results;
    for (size_t r = 0; r < trainers_.size(); ++r) {
      const std::vector<FakeSample> samples(batch.begin() + begin, batch.begin() + cuts[r]);
      begin = cuts[r];
      trainers_[r]->Score(tables_.MakePart(samples, 0, F32),
                          [](absl::Status status) { CHECK(status.ok()) << status.ToString(); });
      auto promise = std::make_shared<std::promise<absl::StatusOr<MetricValues>>>();
      results.push_back(promise->get_future());
      trainers_[r]->MergeEvaluation([promise](absl::StatusOr<MetricValues> values) {
        promise->set_value(std::move(values));
      });
    }
    MetricValues first = results[0].get().value();
    for (size_t r = 1; r < results.size(); ++r) {
      EXPECT_EQ(results[r].get().value().SerializeAsString(), first.SerializeAsString());
    }
    return first;
  }

  std::vector<float> Weights(int rank) {
    const auto parameters = networks_[rank]->parameters();
    return std::vector<float>(parameters.begin(), parameters.end());
  }
  // As a model holds it: weights, running statistics, the optimizer's state.
  std::string Saved(int rank) { return networks_[rank]->Save(); }
  int size() const { return static_cast<int>(trainers_.size()); }
  void Load(int rank, const std::string& saved) {
    CHECK_OK(networks_[rank]->Load(saved, Network::LoadScope::kAll));
  }
  std::vector<float> TableValues() const { return tables_.Values(); }
  const FakeTables& tables() const { return tables_; }
  NetworkTrainer* trainer(int rank) { return trainers_[rank].get(); }

 private:
  const JobConfig job_;
  const PartLayout layout_;
  FakeTables tables_;
  std::vector<std::unique_ptr<Collective>> collectives_;
  std::vector<std::unique_ptr<ForkJoinPool>> pools_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<std::unique_ptr<Network>> networks_;
  std::vector<std::unique_ptr<NetworkTrainer>> trainers_;
};

float LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class SyncEqualsOneMachineTest : public testing::TestWithParam<std::vector<size_t>> {};

TEST_P(SyncEqualsOneMachineTest, InAllWeightsAfterAHundredSteps) {
  const std::vector<size_t>& cuts = GetParam();
  Ranks one(1);
  Ranks many(static_cast<int>(cuts.size()));
  const std::vector<float> untrained = one.Weights(0);
  for (uint64_t step = 0; step < 100; ++step) {
    const StepResult a = one.Step(step, Batch(step), {kBatch});
    const StepResult b = many.Step(step, Batch(step), cuts);
    ASSERT_EQ(a.samples, kBatch);
    ASSERT_EQ(b.samples, kBatch);
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

TEST(NetworkTrainerTest, AFullBatchIsDividedByItsWeightExactly) {
  Ranks ranks(2);
  const StepResult result = ranks.Step(0, Batch(0), {30, 60});
  EXPECT_EQ(result.normalizer, result.weight);
}

// Gradients that a mean over so few samples would give are B / n times as large, and what they add
// to Adagrad's accumulators is the square of that.
TEST(NetworkTrainerTest, AStepOfOneSampleAddsOneOfBSquaredToTheAccumulators) {
  const std::vector<FakeSample> one = {FakeSample{{.5f, .25f}, {{1}, {2}, {3}, {4}, {5}}, 1, 2}};
  Ranks as_a_batch(1, Job(), 1), as_a_tail(1, Job(), kBatch);
  const StepResult batch = as_a_batch.Step(0, one, {1});
  const StepResult tail = as_a_tail.Step(0, one, {1});
  EXPECT_EQ(batch.normalizer, 2);
  EXPECT_EQ(tail.normalizer, 2 * kBatch);
  EXPECT_EQ(batch.loss, tail.loss);

  const auto added = [](const Ranks& ranks) {
    double sum = 0;
    for (const float a : ranks.tables().Accumulators()) sum += a - FakeTables::kInitialAccumulator;
    return sum;
  };
  ASSERT_GT(added(as_a_batch), 1e-3);
  EXPECT_NEAR(added(as_a_tail) * kBatch * kBatch / added(as_a_batch), 1, .02);
}

TEST(NetworkTrainerTest, ATailInPartsIsOneMachinesStepOnIt) {
  Ranks one(1), many(3);
  for (uint64_t step = 0; step < 30; ++step) {
    std::vector<FakeSample> batch = Batch(step);
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

// Two ranks that hold the beginnings of two batches, with equal samples in them: what dropout keeps
// is all that their gradients may differ by.
TEST(NetworkTrainerTest, InHybridModeTwoRanksDropOtherValuesOfPartsThatBeginAlike) {
  std::vector<FakeSample> batch = Batch(0);
  batch.resize(20);
  const auto gradients_of_rank = [&batch](Ranks* ranks, int num_ranks) {
    std::vector<std::vector<float>> gradients(num_ranks);
    std::vector<std::future<absl::StatusOr<StepResult>>> results;
    for (int r = 0; r < num_ranks; ++r) {
      auto promise = std::make_shared<std::promise<absl::StatusOr<StepResult>>>();
      results.push_back(promise->get_future());
      ranks->trainer(r)->JoinStep(
          5, ranks->MakePart(batch, /*first_sample=*/0), StepFlags(),
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
  Ranks sync(2, Job(), kBatch, /*ordered=*/true), hybrid(2, Job(), kBatch, /*ordered=*/false);
  const std::vector<std::vector<float>> alike = gradients_of_rank(&sync, 2);
  EXPECT_EQ(alike[0], alike[1]);
  const std::vector<std::vector<float>> different = gradients_of_rank(&hybrid, 2);
  EXPECT_NE(different[0], different[1]);
}

TEST(NetworkTrainerTest, ABackendThatRunsOperationsLaterGivesTheSameBits) {
  Ranks at_once(2);
  Ranks later(2, Job(), kBatch, /*ordered=*/true, /*deferred=*/true);
  for (uint64_t step = 0; step < 5; ++step) {
    const StepResult a = at_once.Step(step, Batch(step), {20, kBatch});
    const StepResult b = later.Step(step, Batch(step), {20, kBatch});
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.weight, b.weight);
  }
  EXPECT_EQ(later.Saved(0), at_once.Saved(0));
  EXPECT_EQ(later.TableValues(), at_once.TableValues());
  EXPECT_EQ(later.Score(Batch(9), {20, kBatch}).SerializeAsString(),
            at_once.Score(Batch(9), {20, kBatch}).SerializeAsString());
  // The progress line's figure is made of logits, too.
  EXPECT_EQ(later.trainer(0)->RecentAuc(), at_once.trainer(0)->RecentAuc());
}

TEST(NetworkTrainerTest, LearnsWhatCanBeLearned) {
  Ranks ranks(1);
  StepResult first, last;
  for (uint64_t step = 0; step < 300; ++step) {
    const StepResult result = ranks.Step(step, Batch(step % 20), {kBatch});
    if (step == 0) first = result;
    last = result;
  }
  EXPECT_LT(last.loss / last.weight, .8 * first.loss / first.weight);
}

TEST(NetworkTrainerTest, SixteenBitValuesOnTheWireChangeLittle) {
  Ranks exact(1), f16(1), bf16(1);
  for (uint64_t step = 0; step < 20; ++step) {
    exact.Step(step, Batch(step), {kBatch});
    f16.Step(step, Batch(step), {kBatch}, F16);
    bf16.Step(step, Batch(step), {kBatch}, BF16);
  }
  EXPECT_LT(LargestDifference(exact.TableValues(), f16.TableValues()), .005);
  EXPECT_LT(LargestDifference(exact.TableValues(), bf16.TableValues()), .05);
  EXPECT_GT(LargestDifference(exact.TableValues(), bf16.TableValues()), 0);
}

TEST(NetworkTrainerTest, ANonFiniteRankMakesTheStepNonFiniteEverywhere) {
  Ranks ranks(2);
  const std::vector<float> before = ranks.Weights(0);
  std::vector<FakeSample> batch = Batch(0);
  batch[0].numeric[0] = std::numeric_limits<float>::infinity();
  batch[0].masked = false;
  batch[0].weight = 1;
  const StepResult result = ranks.Step(0, batch, {30, 60});
  EXPECT_FALSE(result.finite);
  EXPECT_EQ(result.gradients.header.tables_size(), 0);
  EXPECT_EQ(ranks.Weights(0), before);
  EXPECT_EQ(ranks.Weights(1), before);
}

TEST(NetworkTrainerTest, WithoutWeightNothingChanges) {
  Ranks ranks(2);
  const std::vector<float> before = ranks.Weights(0);
  std::vector<FakeSample> batch = Batch(0);
  for (FakeSample& sample : batch) sample.weight = 0;
  const StepResult result = ranks.Step(0, batch, {30, 60});
  EXPECT_EQ(result.weight, 0);
  EXPECT_EQ(ranks.Weights(0), before);
}

TEST(NetworkTrainerTest, FlagsAreSummedAndARankMayJoinWithoutAPart) {
  Ranks ranks(2);
  std::vector<std::future<StepResult>> results;
  for (int r = 0; r < 2; ++r) {
    auto promise = std::make_shared<std::promise<StepResult>>();
    results.push_back(promise->get_future());
    StepFlags flags;
    flags.idle = true;
    flags.stop = r == 1;
    ranks.trainer(r)->JoinStep(
        0, absl::nullopt, flags,
        [promise](absl::StatusOr<StepResult> result) { promise->set_value(*std::move(result)); });
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
  Ranks one(1), four(4);
  const MetricValues a = one.Score(Batch(0), {60});
  const MetricValues b = four.Score(Batch(0), {10, 10, 45, 60});
  EXPECT_EQ(a.samples(), b.samples());
  EXPECT_NEAR(a.auc(), b.auc(), 1e-12);
  EXPECT_NEAR(a.logloss(), b.logloss(), 1e-12);
}

TEST(NetworkTrainerTest, WithLocalBatchNormAnyRankScoresAlikeAndAsTheSavedModel) {
  JobConfig job = Job();
  MlpConfig* deep = job.mutable_model()->mutable_layers(2)->mutable_mlp();
  deep->mutable_batch_norm()->set_scope(BatchNormConfig::LOCAL);
  Ranks four(4, job);
  for (uint64_t step = 0; step < 20; ++step) four.Step(step, Batch(step), {9, 9, 45, 60});
  for (int r = 1; r < 4; ++r) EXPECT_EQ(four.Saved(r), four.Saved(0));

  const MetricValues spread = four.Score(Batch(99), {10, 10, 45, 60});
  for (const std::vector<size_t>& cuts : {std::vector<size_t>{60, 60, 60, 60}, {0, 0, 60, 60}}) {
    const MetricValues on_one = four.Score(Batch(99), cuts);
    EXPECT_NEAR(on_one.auc(), spread.auc(), 1e-12);
    EXPECT_NEAR(on_one.logloss(), spread.logloss(), 1e-12);
  }
  const std::string saved = four.Saved(0);
  Ranks untrained(4, job);
  four.Load(0, untrained.Saved(0));
  EXPECT_NE(four.Score(Batch(99), {60, 60, 60, 60}).logloss(), spread.logloss());
  four.Load(0, saved);
  EXPECT_NEAR(four.Score(Batch(99), {60, 60, 60, 60}).logloss(), spread.logloss(), 1e-12);
}

// Answers each call at once: an embedding PS without rows, or a coordinator.
class WillingPeer final : public rpc::Channel {
 public:
  void Call(const rpc::Method& method, rpc::Message, int64_t, rpc::Callback done) override {
    MutexLock lock(&mutex_);
    calls_.push_back(method.path);
    done(rpc::MessageOf(BeginCutAnswer()));
  }
  std::vector<std::string> calls() {
    MutexLock lock(&mutex_);
    return calls_;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> calls_ GUARDED_BY(mutex_);
};

class NetworkTrainerCutTest : public testing::Test {
 protected:
  NetworkTrainerCutTest()
      : run_(testing::TempDir() + "/" +
             testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(run_);
    std::filesystem::create_directories(run_);
    CutEngine::Options options;
    options.job.set_run_dir(run_);
    options.envelope.set_generation(1);
    options.executor = &serial_;
    options.disk_executor = &pool_;
    options.embedding_ps = {&ps_};
    options.coordinator = &coordinator_;
    cuts_ = CutEngine::Create(options).value();
  }
  ~NetworkTrainerCutTest() override {
    pool_.Stop();
    std::filesystem::remove_all(run_);
  }

  // All ranks begin a cut, each with a block of its own released, and wait for it.
  void Cut(Ranks* ranks, bool last) {
    std::vector<std::future<absl::StatusOr<CutMarked>>> marked;
    std::vector<std::future<absl::StatusOr<bool>>> committed;
    for (int r = 0; r < ranks->size(); ++r) {
      CutPlan plan;
      plan.number = ++number_of_rank_[r];
      plan.last = last;
      ProvenanceRange range;
      range.set_split(static_cast<uint32_t>(plan.number));
      range.set_block(static_cast<uint64_t>(r));
      range.set_to(5);
      range.set_block_rows(5);
      Ledger released;
      CHECK_OK(released.Add(0, range));
      plan.released = released.ToState();
      auto promise = std::make_shared<std::promise<absl::StatusOr<CutMarked>>>();
      marked.push_back(promise->get_future());
      ranks->trainer(r)->BeginCut(
          plan, [promise](absl::StatusOr<CutMarked> result) { promise->set_value(result); },
          [this, r](absl::StatusOr<CutOutcome> outcome) {
            CHECK(r == 0);
            CHECK_OK(outcome.status());
            ++ended_;
          });
      auto committed_promise = std::make_shared<std::promise<absl::StatusOr<bool>>>();
      committed.push_back(committed_promise->get_future());
      ranks->trainer(r)->AwaitCut([committed_promise](absl::StatusOr<bool> result) {
        committed_promise->set_value(result);
      });
    }
    for (auto& result : marked) EXPECT_EQ(result.get()->waits, last);
    for (auto& result : committed) EXPECT_TRUE(*result.get());
  }

  const std::string run_;
  ThreadPoolExecutor pool_{2};
  SerialExecutor serial_{&pool_};
  WillingPeer ps_, coordinator_;
  std::unique_ptr<CutEngine> cuts_;
  std::map<int, uint64_t> number_of_rank_;
  std::atomic<int> ended_{0};
};

TEST_F(NetworkTrainerCutTest, HoldsNetworkAndOptimizerAndTheLedgersOfAllRanks) {
  Ranks ranks(3, Job(), kBatch, true, false, cuts_.get(), run_);
  for (uint64_t step = 0; step < 5; ++step) ranks.Step(step, Batch(step), {20, 40, 60});
  const std::string before = ranks.Saved(0);
  Cut(&ranks, /*last=*/false);
  ranks.Step(5, Batch(5), {20, 40, 60});
  Cut(&ranks, /*last=*/true);
  EXPECT_EQ(ended_, 2);

  const std::string folder = run_ + "/checkpoints/cut_0001_000001";
  EXPECT_EQ(*ReadDense(folder), before);
  const auto manifest = ReadManifest(run_ + "/checkpoints/cut_0001_000002");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(Ledger::FromState(manifest->ledger())->OfAll().rows, 2 * 3 * 5u);

  // Another generation, with another number of ranks, goes on with every bit.
  Ranks others(2, Job(), kBatch, true, false, cuts_.get(), run_);
  std::thread second([&] { CHECK_OK(others.trainer(1)->StartFromCut("/not/visible/here")); });
  ASSERT_TRUE(others.trainer(0)->StartFromCut(folder).ok());
  second.join();
  for (int r = 0; r < 2; ++r) EXPECT_EQ(others.Saved(r), before);
}

TEST_F(NetworkTrainerCutTest, ARestoredCutIsLoadedByAllPssAndRanksWithoutOptimizerState) {
  Ranks ranks(2, Job(), kBatch, true, false, cuts_.get(), run_);
  for (uint64_t step = 0; step < 5; ++step) ranks.Step(step, Batch(step), {30, 60});
  const std::vector<float> weights = ranks.Weights(0);
  const std::string before = ranks.Saved(0);
  Cut(&ranks, /*last=*/true);
  ranks.Step(5, Batch(5), {30, 60});
  std::vector<std::future<absl::Status>> restored;
  for (int r = 0; r < 2; ++r) {
    auto promise = std::make_shared<std::promise<absl::Status>>();
    restored.push_back(promise->get_future());
    ranks.trainer(r)->RestoreModel("cut_0001_000001", [promise](absl::Status status) {
      promise->set_value(std::move(status));
    });
  }
  for (auto& status : restored) EXPECT_TRUE(status.get().ok());
  EXPECT_EQ(ps_.calls().back(), "/satrap.EmbeddingPsControl/LoadTables");
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(ranks.Weights(r), weights);
    EXPECT_NE(ranks.Saved(r), before) << "the optimizer's state is a later one";
  }
}

TEST(NetworkTrainerTest, APartThatIsNotOfThisJobIsRefused) {
  Ranks ranks(1);
  PartInput part;
  part.header.mutable_part()->set_samples(3);
  std::promise<absl::Status> promise;
  ranks.trainer(0)->JoinStep(0, part, StepFlags(), [&](absl::StatusOr<StepResult> result) {
    promise.set_value(result.status());
  });
  EXPECT_EQ(promise.get_future().get().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace satrap
