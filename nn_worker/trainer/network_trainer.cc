#include "nn_worker/trainer/network_trainer.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/thread/mutex.h"
#include "nn_worker/metrics/binary_metrics.h"
#include "nn_worker/metrics/window_auc.h"
#include "nn_worker/rank/step_normalizer.h"
#include "nn_worker/trainer/embedding_exchange.h"
#include "nn_worker/trainer/part_view.h"
#include "nn_worker/trainer/work_thread.h"

namespace satrap {
namespace {

// The sums behind the dense gradient in a step's allreduce.
enum ExtraSum { kSamples, kWeight, kLoss, kIdle, kNotFinite, kStop, kNumExtraSums };
static_assert(kNumExtraSums <= Network::kExtraSums);

// The AUC of the progress line covers this many of this rank's last samples.
constexpr int64_t kWindowSamples = 65536;

std::vector<float> AsFloats(absl::Span<const uint8_t> mask) {
  return std::vector<float>(mask.begin(), mask.end());
}

}  // namespace

struct NetworkTrainer::Rep {
  explicit Rep(const NetworkTrainerOptions& options)
      : options(options), exchange(options.layout, options.network, options.pool) {}

  absl::StatusOr<StepResult> Step(uint64_t step, const absl::optional<PartInput>& part,
                                  StepFlags flags);
  absl::StatusOr<StepResult> Reduce(uint64_t step, size_t samples, StepFlags flags, bool finite);
  absl::Status Score(const PartInput& part);
  absl::StatusOr<MetricValues> Merge();
  absl::Status Load(const std::string& directory);
  absl::StatusOr<PartView> Read(const PartInput& part);
  int64_t FirstSampleOfStep(const PartView& view) const;

  const NetworkTrainerOptions options;
  EmbeddingExchange exchange;
  BinaryMetrics evaluation;

  Mutex window_mutex;
  WindowAuc window GUARDED_BY(window_mutex){kWindowSamples};

  WorkThread thread;  // last, so that it ends first: its tasks use the others
};

absl::StatusOr<PartView> NetworkTrainer::Rep::Read(const PartInput& part) {
  return ReadPart(*options.layout, options.max_samples, part);
}

// In hybrid mode the parts of a step come from different global batches, and two of them may begin
// at the same index, each in its own batch. So samples are numbered by rank instead: no two samples
// of a step then have the same number, nor the same dropout mask.
int64_t NetworkTrainer::Rep::FirstSampleOfStep(const PartView& view) const {
  if (options.ordered) return static_cast<int64_t>(view.first_sample);
  return static_cast<int64_t>(options.max_samples) * options.collective->rank();
}

absl::StatusOr<StepResult> NetworkTrainer::Rep::Step(uint64_t step,
                                                     const absl::optional<PartInput>& part,
                                                     StepFlags flags) {
  Network* const network = options.network;
  PartView view;
  if (part.has_value()) {
    ASSIGN_OR_RETURN(view, Read(*part));
    exchange.WriteInputs(view);
  }
  const PassContext pass =
      PassContext::Training(static_cast<int64_t>(step), FirstSampleOfStep(view));
  RETURN_IF_ERROR(network->Forward(static_cast<int64_t>(view.samples), pass));
  const std::vector<float> mask = AsFloats(view.mask);
  network->Loss(view.labels, view.weights, mask);
  RETURN_IF_ERROR(network->Backward());
  // Before the allreduce, which carries the flag to all ranks: only this rank sees the gradients of
  // its part's embeddings.
  bool finite = network->CountNonFiniteGradients() == 0;
  PartGradients gradients;
  if (part.has_value()) gradients = exchange.ReadGradients(view, &finite);
  if (view.samples > 0) {
    const std::vector<float> logits = network->ReadLogits();
    MutexLock lock(&window_mutex);
    window.Add(logits, view.labels, view.weights, mask);
  }
  ASSIGN_OR_RETURN(StepResult result, Reduce(step, view.samples, flags, finite));
  if (result.weight > 0 && result.finite) result.gradients = std::move(gradients);
  return result;
}

absl::StatusOr<StepResult> NetworkTrainer::Rep::Reduce(uint64_t step, size_t samples,
                                                       StepFlags flags, bool finite) {
  const LossSums loss = options.network->ReadLoss();
  float sums[kNumExtraSums];
  sums[kSamples] = static_cast<float>(samples);
  sums[kWeight] = static_cast<float>(loss.weight);
  sums[kLoss] = static_cast<float>(loss.loss);
  sums[kIdle] = flags.idle ? 1 : 0;
  sums[kNotFinite] = finite ? 0 : 1;
  sums[kStop] = flags.stop ? 1 : 0;
  RETURN_IF_ERROR(options.network->AllReduce(sums));
  StepResult result;
  result.samples = static_cast<uint64_t>(std::llround(sums[kSamples]));
  result.weight = sums[kWeight];
  result.loss = sums[kLoss];
  result.idle_ranks = static_cast<int>(std::lround(sums[kIdle]));
  result.finite = sums[kNotFinite] == 0;
  result.stop = sums[kStop] > 0;
  if (result.weight > 0) {
    result.normalizer = StepNormalizer(result.weight, result.samples, options.global_batch_size);
  }
  // Every rank has the same sums, so all of them step or none does, and their weights stay equal.
  if (result.weight > 0 && result.finite) {
    DenseStep dense;
    dense.step = static_cast<int64_t>(step);
    dense.normalizer = result.normalizer;
    dense.learning_rate_factor = result.learning_rate_factor;
    RETURN_IF_ERROR(options.network->Step(dense));
  }
  return result;
}

absl::Status NetworkTrainer::Rep::Score(const PartInput& part) {
  ASSIGN_OR_RETURN(const PartView view, Read(part));
  exchange.WriteInputs(view);
  RETURN_IF_ERROR(
      options.network->Forward(static_cast<int64_t>(view.samples), PassContext::Evaluation()));
  const std::vector<float> logits = options.network->ReadLogits();
  evaluation.Add(logits, view.labels, view.weights, AsFloats(view.mask));
  const PartDescription& description = part.header.part();
  if (options.predictions != nullptr && description.id().stream() == TEST_STREAM) {
    return options.predictions->Add(description, logits);
  }
  return absl::OkStatus();
}

absl::StatusOr<MetricValues> NetworkTrainer::Rep::Merge() {
  // Before the barrier: when rank 0 has the metrics, every rank's file is whole.
  if (options.predictions != nullptr) RETURN_IF_ERROR(options.predictions->Close());
  ASSIGN_OR_RETURN(MetricValues values, evaluation.Merge(options.collective));
  evaluation = BinaryMetrics();
  return values;
}

// Rank 0 reads the file and tells the others, who may not see its disk.
absl::Status NetworkTrainer::Rep::Load(const std::string& directory) {
  std::string dense;
  if (options.collective->rank() == 0) {
    ASSIGN_OR_RETURN(const std::string model, FindSavedModel(directory));
    ASSIGN_OR_RETURN(dense, options.store->Load(model));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> from_ranks,
                   options.collective->AllGatherBytes(dense));
  return options.network->Load(from_ranks[0], Network::LoadScope::kModel);
}

NetworkTrainer::NetworkTrainer(const NetworkTrainerOptions& options)
    : rep_(std::make_unique<Rep>(options)) {}
NetworkTrainer::~NetworkTrainer() = default;

absl::Status NetworkTrainer::StartFrom(const std::string& directory) {
  return rep_->Load(directory);
}

void NetworkTrainer::JoinStep(uint64_t step, absl::optional<PartInput> part, StepFlags flags,
                              absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) {
  rep_->thread.Post([rep = rep_.get(), step, part = std::move(part), flags,
                     done = std::move(done)]() mutable { done(rep->Step(step, part, flags)); });
}

void NetworkTrainer::Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) {
  rep_->thread.Post([rep = rep_.get(), part = std::move(part), done = std::move(done)]() mutable {
    done(rep->Score(part));
  });
}

void NetworkTrainer::MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) {
  rep_->thread.Post([rep = rep_.get(), done = std::move(done)]() mutable { done(rep->Merge()); });
}

void NetworkTrainer::SaveModel(uint64_t step, const MetricValues& valid,
                               absl::AnyInvocable<void(absl::Status)> done) {
  rep_->thread.Post([rep = rep_.get(), step, valid, done = std::move(done)]() mutable {
    done(rep->options.store->Save(step, valid, rep->options.network->Save()));
  });
}

void NetworkTrainer::RestoreModel(absl::AnyInvocable<void(absl::Status)> done) {
  rep_->thread.Post([rep = rep_.get(), done = std::move(done)]() mutable {
    const ModelStore* store = rep->options.store;
    done(rep->Load(store == nullptr ? "" : store->last_saved()));
  });
}

double NetworkTrainer::RecentAuc() const {
  MutexLock lock(&rep_->window_mutex);
  return rep_->window.Compute().value;
}

}  // namespace satrap
