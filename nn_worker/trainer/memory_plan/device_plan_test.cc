#include "nn_worker/trainer/memory_plan/device_plan.h"
#include "nn_worker/trainer/device_rehearsal.h"

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/batch/transfer.h"
#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "nn_worker/backend/device/backend_factory.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/device/metered_device.h"
#include "nn_worker/device/product_plan.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/trainer/memory_plan/largest_part.h"
#include "nn_worker/trainer/network_trainer.h"
#include "nn_worker/trainer/part_view.h"
#include "nn_worker/trainer/testing/fake_tables.h"
#include "nn_worker/trainer/testing/trainer_job.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A job with one rank on the host's device, whose parts have at most kTrainerBatch samples.
JobConfig HostJob() {
  JobConfig job = TrainerJob();
  job.set_global_batch_size(static_cast<int>(kTrainerBatch));
  job.mutable_nn_worker()->set_device(NnWorkerConfig::HOST);
  return job;
}

constexpr int kManyFeatures = 90;

// Every feature has one id in every sample, as the plan assumes.
std::vector<FakeSample> OneIdBatch(uint64_t step, size_t samples) {
  std::vector<FakeSample> batch = TrainerBatch(step);
  batch.resize(samples);
  for (FakeSample& sample : batch) {
    for (auto& ids : sample.ids) ids.resize(1, step);
  }
  return batch;
}

// A rank as the NN worker makes it.
class HostRank {
 public:
  HostRank(const JobConfig& job, const DevicePlan& plan)
      : job_(job), layout_(MakePartLayout(job_)), tables_(&layout_), pool_(1) {
    auto made = NewDeviceJobBackend(job_.nn_worker(), /*card=*/0, NeedOf(plan));
    CHECK_OK(made.status());
    made_ = *std::move(made);
    NetworkOptions network_options = NetworkOptionsOf(job_, layout_, RunPosition());
    network_options.backend = made_.backend.get();
    network_options.collective = collectives_[0].get();
    auto network = Network::Create(network_options);
    CHECK_OK(network.status());
    network_ = *std::move(network);
    NetworkTrainerOptions options;
    options.layout = &layout_;
    options.max_samples = kTrainerBatch;
    options.global_batch_size = job_.global_batch_size();
    options.ordered = true;
    options.trains = job_.action() == JobConfig::TRAIN;
    options.has_loss_scale = job_.nn_worker().precision() == NnWorkerConfig::F16;
    options.network = network_.get();
    options.collective = collectives_[0].get();
    options.pool = &pool_;
    options.writes_outputs = job_.predict_outputs_size() > 0;
    trainer_ = std::make_unique<NetworkTrainer>(options);
    CHECK_OK(trainer_->Reserve(LargestPart(job_, layout_, made_.backend->PinnedBuffers())));
  }

  absl::Status Train(const std::vector<FakeSample>& samples) {
    const PartInput part = tables_.MakePart(samples, 0, job_.embedding_worker().wire_dtype());
    std::promise<absl::Status> joined;
    trainer_->JoinStep(
        step_++, trainer_->Prepare(part), StepFlags(),
        [&joined](const absl::StatusOr<StepResult>& result) { joined.set_value(result.status()); });
    return joined.get_future().get();
  }
  absl::Status Score(const std::vector<FakeSample>& samples) {
    PartInput part = tables_.MakePart(samples, 0, job_.embedding_worker().wire_dtype());
    part.header.mutable_part()->mutable_id()->set_stream(TEST_STREAM);
    part.header.clear_candidates();
    std::promise<absl::Status> scored;
    trainer_->Score(std::move(part),
                    [&scored](absl::Status status) { scored.set_value(std::move(status)); });
    return scored.get_future().get();
  }
  int64_t peak_bytes() const { return made_.meter->Read().peak_bytes; }

 private:
  const JobConfig job_;
  const PartLayout layout_;
  FakeTables tables_;
  ForkJoinPool pool_;
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
  JobBackend made_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<NetworkTrainer> trainer_;
  uint64_t step_ = 0;
};

// `batch` makes the samples of a step.
void ExpectThePlanIsWhatARankTakes(
    const JobConfig& job,
    const std::function<std::vector<FakeSample>(uint64_t, size_t)>& batch = OneIdBatch) {
  const auto plan = PlanDevice(job);
  ASSERT_TRUE(plan.ok()) << plan.status();
  HostRank rank(job, *plan);
  EXPECT_EQ(rank.peak_bytes(), plan->total()) << "all of it before the first step";
  if (job.action() == JobConfig::TRAIN) {
    for (uint64_t step = 0; step < 3; ++step) {
      ASSERT_TRUE(rank.Train(batch(step, step == 0 ? 7 : 60)).ok());
    }
    ASSERT_TRUE(rank.Train(batch(4, kTrainerBatch)).ok());
  }
  ASSERT_TRUE(rank.Score(batch(9, kTrainerBatch)).ok());
  ASSERT_TRUE(rank.Score(batch(8, 31)).ok());
  if (job.action() == JobConfig::TRAIN) {
    ASSERT_TRUE(rank.Train(batch(5, 31)).ok());
  }
  EXPECT_EQ(rank.peak_bytes(), plan->total()) << DevicePlanText(*plan);
  EXPECT_GT(plan->network, 0);
  EXPECT_GT(plan->embeddings, 0);
}

TEST(DevicePlanTest, IsWhatARankTakesToTheByte) { ExpectThePlanIsWhatARankTakes(HostJob()); }

TEST(DevicePlanTest, IsThatOfThePrecisionAndOfTheWire) {
  for (const auto precision : {NnWorkerConfig::BF16, NnWorkerConfig::F16}) {
    JobConfig job = HostJob();
    job.mutable_nn_worker()->set_precision(precision);
    ExpectThePlanIsWhatARankTakes(job);
  }
  for (const WireDtype dtype : {BF16, F16}) {
    JobConfig job = HostJob();
    job.mutable_embedding_worker()->set_wire_dtype(dtype);
    ExpectThePlanIsWhatARankTakes(job);
  }
}

TEST(DevicePlanTest, CountsTheOptimizersStateAndAverages) {
  JobConfig job = HostJob();
  const int64_t adagrad = PlanDevice(job)->network;
  job.mutable_dense_optimizer()->mutable_adam();
  const int64_t adam = PlanDevice(job)->network;
  EXPECT_GT(adam, adagrad) << "Adam has two values a parameter";
  job.mutable_dense_optimizer()->mutable_averaged_weights()->set_decay(.9);
  EXPECT_GT(PlanDevice(job)->network, adam);
  ExpectThePlanIsWhatARankTakes(job);
}

TEST(DevicePlanTest, OnACardItHasTheMemoryOfTheLibrarysProducts) {
  JobConfig job = HostJob();
  MlpConfig* const mlp = job.mutable_model()->mutable_layers(2)->mutable_mlp();
  mlp->Clear();
  // The third layer has one output, so no library makes its products.
  for (const int units : {16, 8}) mlp->add_units(units);
  mlp->set_output_units(1);
  const auto on_host = PlanDevice(job);
  job.mutable_nn_worker()->set_device(NnWorkerConfig::CUDA);
  const auto on_card = PlanDevice(job);
  ASSERT_TRUE(on_host.ok() && on_card.ok()) << on_host.status() << on_card.status();
  const int64_t alignment = 256;
  EXPECT_EQ(on_card->network - on_host->network, kMostPlanWorkspaceBytes + alignment);
  EXPECT_EQ(on_card->scratch, on_host->scratch);
  EXPECT_EQ(on_card->embeddings, on_host->embeddings);
}

// Parts have two sizes if the number of ranks does not divide the batch.
TEST(DevicePlanTest, PartsOfBothSizesRunFromGraphs) {
  JobConfig job = HostJob();
  job.set_global_batch_size(1000);
  job.mutable_nn_worker()->set_replicas(3);
  const NetworkOptions options = NetworkOptionsOf(job, MakePartLayout(job), RunPosition());
  EXPECT_EQ(options.max_samples, 334);
  EXPECT_EQ(options.min_full_samples, 333);
}

// The job has a term for each pair of many features. So the lists of parts of one size fill all the
// memory that is first allocated for lists.
TEST(DevicePlanTest, HasTheListsOfFullPartsOfBothSizes) {
  JobConfig job = HostJob();
  for (int f = 0; f < kManyFeatures; ++f) {
    FeatureConfig* const feature = job.mutable_data()->add_features();
    feature->set_name(absl::StrCat("more", f));
    feature->set_table("wide");
  }
  LayerConfig* const dots = job.mutable_model()->add_layers();
  dots->set_name("dots");
  dots->add_inputs("*.embedding");
  dots->mutable_dot_interaction();
  job.mutable_model()->mutable_layers(1)->add_inputs("dots");  // "all"
  job.set_global_batch_size(2 * static_cast<int>(kTrainerBatch) - 1);
  job.mutable_nn_worker()->set_replicas(2);
  const auto plan = PlanDevice(job);
  ASSERT_TRUE(plan.ok()) << plan.status();
  HostRank rank(job, *plan);
  const auto batch = [](uint64_t step, size_t samples) {
    std::vector<FakeSample> made = OneIdBatch(step, samples);
    for (FakeSample& sample : made) sample.ids.resize(sample.ids.size() + kManyFeatures, {step});
    return made;
  };
  for (uint64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE(rank.Train(batch(step, kTrainerBatch - step % 2)).ok());
  }
  EXPECT_EQ(rank.peak_bytes(), plan->total()) << DevicePlanText(*plan);
}

TEST(DevicePlanTest, MoreRanksHaveSmallerParts) {
  JobConfig job = HostJob();
  const int64_t one = PlanDevice(job)->total();
  job.mutable_nn_worker()->set_replicas(2);
  EXPECT_LT(PlanDevice(job)->total(), one);
}

// Scoring needs one buffer, and nothing for gradients and the optimizer.
TEST(DevicePlanTest, ScoringTakesLessThanATrainingToTheByteToo) {
  JobConfig job = HostJob();
  job.mutable_dense_optimizer()->mutable_adam();
  job.mutable_dense_optimizer()->mutable_averaged_weights()->set_decay(.9);
  const DevicePlan training = PlanDevice(job).value();
  job.set_action(JobConfig::EVALUATE);
  const DevicePlan scoring = PlanDevice(job).value();
  EXPECT_LE(2 * scoring.embeddings, training.embeddings);
  EXPECT_LT(scoring.network, training.network * 2 / 3);
  for (const auto precision : {NnWorkerConfig::F32, NnWorkerConfig::BF16}) {
    job.mutable_nn_worker()->set_precision(precision);
    ExpectThePlanIsWhatARankTakes(job);
  }
  job.mutable_embedding_worker()->set_wire_dtype(BF16);
  ExpectThePlanIsWhatARankTakes(job);
  job.set_action(JobConfig::PREDICT);
  ExpectThePlanIsWhatARankTakes(job);
}

TEST(DevicePlanTest, OutputsAloneTakeLessThanTheWholeModel) {
  JobConfig job = HostJob();
  job.set_action(JobConfig::PREDICT);
  const int64_t whole = PlanDevice(job)->total();
  job.add_predict_outputs("first");
  EXPECT_LT(PlanDevice(job)->total(), whole);
  ExpectThePlanIsWhatARankTakes(job);
}

// Users and items share a table, and each sample's item is a candidate for the other samples of the
// batch.
TEST(DevicePlanTest, IsThatOfALossWithinTheBatch) {
  JobConfig job;
  CHECK_OK(ParseText(R"pb(
                       data {
                         features { name: "user" table: "t" }
                         features { name: "item" table: "t" }
                       }
                       tables {
                         name: "t"
                         id: 3
                         segments { name: "bias" dim: 1 }
                         segments { name: "embedding" dim: 4 }
                       }
                       model {
                         layers {
                           name: "user_vector"
                           inputs: "user.embedding"
                           linear { units: 4 }
                         }
                         layers {
                           name: "logit"
                           inputs: "user_vector"
                           inputs: "item.embedding"
                           in_batch_logits { scale: 2 }
                         }
                         tasks { name: "next" loss: IN_BATCH_SOFTMAX }
                         candidates { feature: "item" }
                       }
                     )pb",
                     "job", &job));
  job.set_global_batch_size(static_cast<int>(kTrainerBatch));
  job.mutable_nn_worker()->set_device(NnWorkerConfig::HOST);
  const auto pairs = [](uint64_t step, size_t count) {
    std::vector<FakeSample> batch = OneIdBatch(step, count);
    for (FakeSample& sample : batch) {
      sample.numeric.clear();
      sample.ids = {{100 + sample.ids[0][0]}, {sample.ids[1][0]}};
    }
    return batch;
  };
  ExpectThePlanIsWhatARankTakes(job, pairs);
  const DevicePlan training = PlanDevice(job).value();
  job.set_action(JobConfig::EVALUATE);
  EXPECT_LT(PlanDevice(job)->total(), training.total());
  ExpectThePlanIsWhatARankTakes(job, pairs);
}

// The memory may be too small for the payload, the order of the ids, the scatter's scratch memory
// or the sums of the rows. In each case the result must be an error that names the limit, and the
// process must not end.
TEST(DevicePlanTest, APartWithMoreIdsThanRehearsedIsAnErrorWhereTheLimitHasNoRoomForIt) {
  JobConfig job = HostJob();
  const DevicePlan plan = PlanDevice(job).value();
  std::vector<FakeSample> many = OneIdBatch(1, kTrainerBatch);
  uint64_t next_id = 1000;  // each has a row of its own
  for (FakeSample& sample : many) {
    for (int i = 1; i < 40; ++i) sample.ids[2].push_back(next_id++);
  }
  int refused = 0;
  bool fits = false;
  for (int64_t more = 0; !fits && more < 1 << 20; more += 4096) {
    job.mutable_nn_worker()->set_device_memory_bytes(plan.total() + more);
    HostRank rank(job, plan);
    ASSERT_TRUE(rank.Train(OneIdBatch(0, kTrainerBatch)).ok());
    const absl::Status trained = rank.Train(many);
    fits = trained.ok();
    if (fits) continue;
    ++refused;
    EXPECT_EQ(trained.code(), absl::StatusCode::kResourceExhausted) << trained;
    EXPECT_THAT(
        trained.message(),
        AllOf(HasSubstr(absl::StrCat("no room for a part of ", kTrainerBatch, " samples, ")),
              HasSubstr(absl::StrCat("nn_worker.device_memory_bytes is ", plan.total() + more,
                                     ", of which ")),
              HasSubstr("raise it")));
  }
  EXPECT_TRUE(fits);
  EXPECT_GT(refused, 3);
}

TEST(DevicePlanTest, AboveTheJobsLimitItSaysWhatToDo) {
  const DevicePlan plan = {1000, 200, 30, 4};
  EXPECT_EQ(DevicePlanText(plan),
            "1234 bytes of device memory (network 1000, embeddings 200, scratch 30, lists 4)");
  NnWorkerConfig config;
  config.set_device(NnWorkerConfig::HOST);
  EXPECT_TRUE(CheckDevicePlan(plan, config).ok()) << "no limit";
  config.set_device_memory_bytes(1234);
  EXPECT_TRUE(CheckDevicePlan(plan, config).ok());
  config.set_device_memory_bytes(1233);
  const absl::Status status = CheckDevicePlan(plan, config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      status.message(),
      AllOf(HasSubstr("nn_worker.device_memory_bytes is 1233, but each NN worker needs 1234 "
                      "bytes of device memory"),
            HasSubstr("raise it, or use a smaller global_batch_size, more NN workers")));
}

TEST(LargestPartTest, HasTheExpectedIdsOfEachFeature) {
  JobConfig job = HostJob();
  for (const char* name : {"c", "e"}) {
    ColumnConfig* const column = job.mutable_data()->mutable_csv()->add_columns();
    column->set_name(name);
    column->set_kind(ColumnConfig::MULTI_ID);
  }
  job.mutable_data()->mutable_features(4)->set_max_length(5);
  const PartLayout layout = MakePartLayout(job);
  const PartInput part = LargestPart(job, layout, nullptr);
  EXPECT_EQ(part.header.features(0).num_ids(), kTrainerBatch) << "one id";
  EXPECT_EQ(part.header.features(2).num_ids(), kExpectedIds * kTrainerBatch) << "several";
  EXPECT_TRUE(part.header.features(3).has_pooled());
  EXPECT_EQ(part.header.features(4).num_ids(), 5 * kTrainerBatch) << "a sequence's length";
  EXPECT_EQ(part.header.tables(0).num_rows(), 2 * kTrainerBatch) << "of two features";
  EXPECT_TRUE(ReadPart(layout, kTrainerBatch, part).ok());
}

TEST(LargestPartTest, OfAJobThatScoresIsOneOfTheTestStream) {
  JobConfig job = HostJob();
  job.set_action(JobConfig::EVALUATE);
  const PartLayout layout = MakePartLayout(job);
  const PartInput part = LargestPart(job, layout, nullptr);
  EXPECT_EQ(part.header.part().id().stream(), TEST_STREAM);
  EXPECT_TRUE(ReadPart(layout, kTrainerBatch, part).ok());
}

TEST(LargestPartTest, MayBeSoLargeThatItTravelsInChunks) {
  JobConfig job = HostJob();
  job.set_global_batch_size(20000);
  const PartLayout layout = MakePartLayout(job);
  const PartInput whole = LargestPart(job, layout, nullptr);
  ASSERT_GT(whole.payload.size(), 2000000u);
  job.set_max_message_bytes(65536);
  const PartInput in_chunks = LargestPart(job, layout, nullptr);
  EXPECT_EQ(in_chunks.payload.size(), whole.payload.size());
  EXPECT_EQ(in_chunks.header.tables(0).num_rows(), whole.header.tables(0).num_rows());
  EXPECT_TRUE(ReadPart(layout, 20000, in_chunks).ok());
}

TEST(LargestPartTest, IsNoLargerThanAMessage) {
  JobConfig job = HostJob();
  job.set_global_batch_size(20000);
  const PartLayout layout = MakePartLayout(job);
  const PartInput part = LargestPartOf(20000, job, layout, nullptr, /*largest_bytes=*/2000000);
  EXPECT_LE(part.payload.size(), 2000000u);
  EXPECT_GT(part.payload.size(), 1800000u) << "and makes use of it";
  EXPECT_TRUE(ReadPart(layout, 20000, part).ok());
}

}  // namespace
}  // namespace satrap
