#include "nn_worker/trainer/device_plan.h"

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/batch/transfer.h"
#include "gmock/gmock.h"
#include "nn_worker/backend/backend_factory.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/device/metered_device.h"
#include "nn_worker/device/product_plan.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/trainer/fake_tables.h"
#include "nn_worker/trainer/largest_part.h"
#include "nn_worker/trainer/network_trainer.h"
#include "nn_worker/trainer/part_view.h"
#include "nn_worker/trainer/trainer_job.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// One rank on the host's device, whose parts have at most kTrainerBatch samples.
JobConfig HostJob() {
  JobConfig job = TrainerJob();
  job.set_global_batch_size(static_cast<int>(kTrainerBatch));
  job.mutable_nn_worker()->set_device(NnWorkerConfig::HOST);
  return job;
}

// Every feature has one id in every sample, as the plan takes it to have.
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
  HostRank(const JobConfig& job, int64_t scratch_bytes)
      : job_(job), layout_(MakePartLayout(job_)), tables_(&layout_), pool_(1) {
    auto made = NewJobBackend(job_.nn_worker(), /*card=*/0, scratch_bytes, &pool_);
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
    options.has_loss_scale = job_.nn_worker().precision() == NnWorkerConfig::F16;
    options.network = network_.get();
    options.collective = collectives_[0].get();
    options.pool = &pool_;
    trainer_ = std::make_unique<NetworkTrainer>(options);
    CHECK_OK(trainer_->Reserve(LargestPart(job_, layout_, made_.backend->PinnedBuffers())));
  }

  void Train(const std::vector<FakeSample>& samples) {
    const PartInput part = tables_.MakePart(samples, 0, job_.embedding_worker().wire_dtype());
    std::promise<absl::Status> joined;
    trainer_->JoinStep(
        step_++, trainer_->Prepare(part), StepFlags(),
        [&joined](const absl::StatusOr<StepResult>& result) { joined.set_value(result.status()); });
    CHECK_OK(joined.get_future().get());
  }
  void Score(const std::vector<FakeSample>& samples) {
    std::promise<absl::Status> scored;
    trainer_->Score(tables_.MakePart(samples, 0, job_.embedding_worker().wire_dtype()),
                    [&scored](absl::Status status) { scored.set_value(std::move(status)); });
    CHECK_OK(scored.get_future().get());
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

void ExpectThePlanIsWhatARankTakes(const JobConfig& job) {
  const auto plan = PlanDevice(job);
  ASSERT_TRUE(plan.ok()) << plan.status();
  HostRank rank(job, plan->scratch);
  // All but the lists, whose memory comes with the first one.
  EXPECT_GE(rank.peak_bytes(), plan->total() - plan->lists);
  for (uint64_t step = 0; step < 3; ++step) rank.Train(OneIdBatch(step, step == 0 ? 7 : 60));
  rank.Score(OneIdBatch(9, 60));
  rank.Train(OneIdBatch(4, 31));
  EXPECT_EQ(rank.peak_bytes(), plan->total()) << DevicePlanText(*plan);
  EXPECT_GT(plan->network, 0);
  EXPECT_GT(plan->embeddings, 0);
  EXPECT_GT(plan->scratch, 0);
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
  // The first layer's ReLU has a mask, because the second layer's product reads it. The third layer has
  // one output, which no library computes.
  for (const int units : {16, 8}) mlp->add_units(units);
  mlp->set_output_units(1);
  const auto on_host = PlanDevice(job);
  job.mutable_nn_worker()->set_device(NnWorkerConfig::CUDA);
  const auto on_card = PlanDevice(job);
  ASSERT_TRUE(on_host.ok() && on_card.ok()) << on_host.status() << on_card.status();
  const int64_t alignment = 256;
  const auto samples = static_cast<int64_t>(kTrainerBatch);
  EXPECT_EQ(on_card->network - on_host->network,
            kMostPlanWorkspaceBytes + alignment + samples * MaskStride(16) / 8);
  EXPECT_EQ(on_card->scratch, on_host->scratch);
  EXPECT_EQ(on_card->embeddings, on_host->embeddings);
}

TEST(DevicePlanTest, MoreRanksHaveSmallerParts) {
  JobConfig job = HostJob();
  const int64_t one = PlanDevice(job)->total();
  job.mutable_nn_worker()->set_replicas(2);
  EXPECT_LT(PlanDevice(job)->total(), one);
}

TEST(DevicePlanTest, OutputsAloneTakeLessThanATraining) {
  JobConfig job = HostJob();
  const int64_t training = PlanDevice(job)->total();
  job.set_action(JobConfig::PREDICT);
  job.add_predict_outputs("first");
  const auto plan = PlanDevice(job);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(plan->total(), 0);
  EXPECT_LT(plan->total(), training);
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
      AllOf(HasSubstr("nn_worker.device_memory_bytes is 1233, and each NN worker needs 1234 "
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

TEST(LargestPartTest, IsNoLargerThanAMessage) {
  JobConfig job = HostJob();
  job.set_global_batch_size(20000);
  job.set_max_message_bytes(2000000);
  const PartLayout layout = MakePartLayout(job);
  const PartInput part = LargestPart(job, layout, nullptr);
  EXPECT_LE(part.payload.size(), 2000000u);
  EXPECT_GT(part.payload.size(), 1800000u) << "and makes use of it";
  EXPECT_TRUE(ReadPart(layout, 20000, part).ok());
}

}  // namespace
}  // namespace satrap
