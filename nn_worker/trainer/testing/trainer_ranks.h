// The ranks of a test in one process.

#ifndef SATRAP_NN_WORKER_TRAINER_TESTING_TRAINER_RANKS_H_
#define SATRAP_NN_WORKER_TRAINER_TESTING_TRAINER_RANKS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/thread/fork_join_pool.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/precision.h"
#include "nn_worker/graph/step/loss_scale.h"
#include "nn_worker/trainer/network_trainer.h"
#include "nn_worker/trainer/testing/fake_tables.h"
#include "nn_worker/trainer/testing/trainer_job.h"

namespace satrap {

// W ranks, each a NetworkTrainer of its own, over common tables. They compute on the CPU or, with
// `device`, each on a host's device of its own.
class TrainerRanks {
 public:
  explicit TrainerRanks(int num_ranks, const JobConfig& job = TrainerJob(),
                        int64_t global_batch_size = kTrainerBatch, bool ordered = true,
                        const absl::optional<HostDeviceOptions>& device = absl::nullopt,
                        CutEngine* cuts = nullptr, const std::string& run_dir = "",
                        ScoreWindows* scores = nullptr)
      : job_(job),
        layout_(MakePartLayout(job_)),
        tables_(&layout_),
        collectives_(NewLocalCollectives(num_ranks)) {
    for (int r = 0; r < num_ranks; ++r) {
      pools_.push_back(std::make_unique<ForkJoinPool>(1 + r % 2));
      const DType dtype = DTypeOf(job.nn_worker().precision());
      backends_.push_back(device.has_value()     ? NewHostDeviceBackend(*device)
                          : dtype == DType::kF32 ? NewCpuBackend(pools_.back().get())
                                                 : NewCpuHalfBackend(pools_.back().get()));
      NetworkOptions options;
      options.model = job_.model();
      options.inputs = layout_.inputs;
      options.optimizer = job_.dense_optimizer();
      options.max_samples = kTrainerBatch;
      options.dtype = dtype;
      options.gradient_scale = satrap::GradientScaleOf(job, RunPosition());
      options.backend = backends_.back().get();
      options.collective = collectives_[r].get();
      auto network = Network::Create(options);
      CHECK(network.ok()) << network.status().ToString();
      networks_.push_back(*std::move(network));
      NetworkTrainerOptions trainer;
      trainer.layout = &layout_;
      trainer.max_samples = kTrainerBatch;
      trainer.global_batch_size = global_batch_size;
      trainer.ordered = ordered;
      trainer.gradient_clip_norm = job.gradient_clip_norm();
      trainer.has_loss_scale = dtype == DType::kF16;
      trainer.network = networks_.back().get();
      trainer.collective = collectives_[r].get();
      trainer.pool = pools_.back().get();
      trainer.cuts = r == 0 ? cuts : nullptr;
      trainer.run_dir = r == 0 ? run_dir : "";
      trainer.scores = r == 0 ? scores : nullptr;
      trainers_.push_back(std::make_unique<NetworkTrainer>(trainer));
    }
  }

  // Trains one step on the batch, which is cut at `cuts` into one part per rank. Equal cuts make an
  // empty part.
  StepResult Step(uint64_t step, const std::vector<FakeSample>& batch, std::vector<size_t> cuts,
                  WireDtype dtype = F32);

  PartInput MakePart(const std::vector<FakeSample>& samples, uint64_t first_sample) {
    return tables_.MakePart(samples, first_sample, F32);
  }

  // Calls EndStep of every rank's trainer. Step does this itself if a step waits for EndStep.
  void EndStep(double squares);

  MetricValues Score(const std::vector<FakeSample>& batch, const std::vector<size_t>& cuts);

  std::vector<float> Weights(int rank) { return networks_[rank]->ParameterValues(); }
  // The saved form of the network: weights, running statistics, the optimizer's state.
  std::string Saved(int rank) { return networks_[rank]->Save(); }
  // The scale of the network's next step.
  float GradientScaleOf(int rank) const { return networks_[rank]->gradient_scale().scale; }
  int size() const { return static_cast<int>(trainers_.size()); }
  void Load(int rank, const std::string& saved) {
    CHECK_OK(networks_[rank]->Load(saved, Network::LoadScope::kAll));
  }
  std::vector<float> TableValues() const { return tables_.Values(); }
  const FakeTables& tables() const { return tables_; }
  FakeTables* mutable_tables() { return &tables_; }
  NetworkTrainer* trainer(int rank) { return trainers_[rank].get(); }
  Network* network(int rank) { return networks_[rank].get(); }
  Collective* collective(int rank) { return collectives_[rank].get(); }

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

// The largest difference of two values in the same place. Expects as many values in both.
float LargestDifference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_TESTING_TRAINER_RANKS_H_
