#include "nn_worker/trainer/device_rehearsal.h"

#include <future>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/learning_rate/batch_scaling.h"
#include "nn_worker/backend/device/dry_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/trainer/memory_plan/largest_part.h"
#include "nn_worker/trainer/network_trainer.h"

namespace satrap {
namespace {

absl::Status TrainStep(const PartInput& part, NetworkTrainer* trainer) {
  std::promise<absl::Status> joined;
  trainer->JoinStep(
      /*step=*/0, trainer->Prepare(part), StepFlags(),
      [&joined](const absl::StatusOr<StepResult>& result) { joined.set_value(result.status()); });
  return joined.get_future().get();
}

// A step has already written the part's inputs, so only their evaluation remains.
absl::Status EvaluateStep(int64_t samples, Network* network) {
  RETURN_IF_ERROR(network->Forward(samples, PassContext::Evaluation()));
  for (int t = 0; t < network->num_tasks(); ++t) network->ReadLogits(t);
  return absl::OkStatus();
}

absl::Status ScorePart(PartInput part, NetworkTrainer* trainer) {
  std::promise<absl::Status> scored;
  trainer->Score(std::move(part),
                 [&scored](absl::Status status) { scored.set_value(std::move(status)); });
  return scored.get_future().get();
}

}  // namespace

absl::StatusOr<DevicePlan> PlanDevice(const JobConfig& job) {
  ASSIGN_OR_RETURN(const DryBackend backend, DryBackend::Create(job.nn_worker().device()));
  const auto collectives = NewLocalCollectives(1);
  const PartLayout layout = MakePartLayout(job);
  NetworkOptions network_options = NetworkOptionsOf(job, layout, RunPosition());
  network_options.backend = backend.get();
  network_options.collective = collectives[0].get();
  ASSIGN_OR_RETURN(const std::unique_ptr<Network> network, Network::Create(network_options));
  DevicePlan plan;
  plan.network = backend.use().allocated;

  ForkJoinPool pool(1);
  NetworkTrainerOptions options;
  options.layout = &layout;
  options.max_samples = static_cast<size_t>(MaxSamplesOfPart(job));
  options.global_batch_size = job.global_batch_size();
  options.ordered = true;
  options.trains = job.action() == JobConfig::TRAIN;
  options.network = network.get();
  options.collective = collectives[0].get();
  options.pool = &pool;
  options.writes_outputs = job.predict_outputs_size() > 0;
  NetworkTrainer trainer(options);
  PartInput part = LargestPart(job, layout, backend.get()->PinnedBuffers());
  RETURN_IF_ERROR(trainer.Reserve(part));
  if (options.trains) {
    RETURN_IF_ERROR(TrainStep(part, &trainer));
    // Operations read lists of tensors. Full parts of the smaller size have their own lists, which
    // are kept in addition to those of the larger size.
    const int64_t fewer = MinSamplesOfFullPart(job);
    if (fewer > 0 && fewer < MaxSamplesOfPart(job)) {
      RETURN_IF_ERROR(
          TrainStep(LargestPartOf(fewer, job, layout, backend.get()->PinnedBuffers()), &trainer));
    }
    RETURN_IF_ERROR(EvaluateStep(MaxSamplesOfPart(job), network.get()));
  } else {
    RETURN_IF_ERROR(ScorePart(std::move(part), &trainer));
  }

  const DeviceUse use = backend.use();
  plan.embeddings = use.allocated - plan.network;
  // In a run, a rank allocates these amounts at the start, one block for each kind of memory.
  plan.scratch = use.scratch;
  plan.lists = use.lists;
  plan.part_lists = use.part_lists;
  return plan;
}

}  // namespace satrap
