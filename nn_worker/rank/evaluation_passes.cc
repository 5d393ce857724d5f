#include "nn_worker/rank/evaluation_passes.h"

#include <algorithm>
#include <utility>

namespace satrap {
namespace {

// The minimum number of parts of a pass that are in flight: one is scored while the next is
// fetched.
constexpr int kMinParts = 2;
// The step number in the requests of a pass. The lookups of a pass belong to no step.
constexpr uint64_t kNoStep = 0;

}  // namespace

EvaluationPasses::EvaluationPasses(const RankOptions& options, int num_workers,
                                   EmbeddingWorkerClient* client, StepTrainer* trainer,
                                   FailureLatch* failure)
    : num_workers_(num_workers),
      park_ms_(static_cast<uint32_t>(options.idle_step_ms)),
      client_(client),
      trainer_(trainer),
      failure_(failure),
      permits_(std::max(kMinParts, options.max_staleness)) {}

void EvaluationPasses::Begin(Stream stream, uint32_t pass, Done done) {
  stream_ = stream;
  done_ = std::move(done);
  merging_ = false;
  pipeline_ = std::make_unique<PartPipeline>(
      MakeAnyWorkerRequests(stream, pass, num_workers_, park_ms_), &permits_,
      [this](const PartRequest& request, absl::AnyInvocable<void(PartInput)> answered) {
        client_->NextBatch(request, kNoStep, std::move(answered));
      },
      [this] { Continue(); });
  Continue();
}

// Runs after every event that can free a permit or bring a part, or that can show that a worker has
// no parts left.
void EvaluationPasses::Continue() {
  if (failure_->failed() || merging_) return;
  pipeline_->RequestParts();
  if (scoring_) return;
  absl::optional<PartPipeline::TakenPart> part = pipeline_->Take();
  if (!part.has_value()) {
    // Waits until every Ack is answered: when a pass is merged, workers must not hold any of its
    // parts.
    if (!pipeline_->exhausted() || !pipeline_->empty()) return;
    merging_ = true;
    trainer_->MergeEvaluation(
        failure_->WhenGood<MetricValues>([this](const MetricValues& values) { done_(values); }));
    return;
  }
  scoring_ = true;
  const uint64_t handle = part->input.header.handle();
  trainer_->Score(std::move(part->input),
                  failure_->WhenOk([this, entry = part->entry, worker = part->worker, handle] {
                    Acknowledge(entry, worker, handle);
                  }));
}

// The next part may be scored before the Ack of the previous one is answered, because lookups of an
// evaluation change nothing.
void EvaluationPasses::Acknowledge(uint64_t entry, int worker, uint64_t handle) {
  scoring_ = false;
  client_->Ack(worker, stream_, handle, [this, entry] {
    pipeline_->Release(entry);
    Continue();
  });
  Continue();
}

}  // namespace satrap
