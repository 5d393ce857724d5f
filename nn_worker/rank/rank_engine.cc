#include "nn_worker/rank/rank_engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"

namespace satrap {
namespace {

// The fewest parts of an evaluation pass that are in flight: one is scored while the next is
// fetched.
constexpr int kMinEvaluationParts = 2;

// An embedding row moves furthest in its first updates, where a stale gradient does the most harm.
// So training begins with one permit, and CountStep grants the others when the warm-up is over.
int FirstPermits(const RankOptions& options) {
  return options.ordered || options.staleness_warmup_steps > 0 ? 1 : options.max_staleness;
}

}  // namespace

RankEngine::RankEngine(const RankOptions& options, Executor* executor,
                       std::vector<rpc::Channel*> workers, StepTrainer* trainer,
                       RankObserver* observer, FailureSink on_failure, FinishedSink on_finished)
    : options_(options),
      executor_(executor),
      num_workers_(static_cast<int>(workers.size())),
      trainer_(trainer),
      observer_(observer),
      on_failure_(std::move(on_failure)),
      on_finished_(std::move(on_finished)),
      client_(options.rank, options.envelope, options.timeouts, executor, std::move(workers),
              [this](absl::Status status) { Fail(std::move(status)); }),
      permits_(FirstPermits(options)),
      evaluation_permits_(std::max(kMinEvaluationParts, options.max_staleness)),
      best_(options.evaluation) {}

RankEngine::~RankEngine() = default;

void RankEngine::Start() {
  executor_->Post([this] {
    if (options_.train) {
      BeginEpoch(0);
    } else {
      BeginPass(TEST_STREAM, 0);
    }
  });
}

void RankEngine::RequestStop() {
  executor_->Post([this] { stop_requested_ = true; });
}

// Whatever would send a request or join a collective checks failed_ first, so nothing new begins
// after the first error.
void RankEngine::Fail(absl::Status status) {
  if (failed_) return;
  failed_ = true;
  on_failure_(std::move(status));
}

absl::AnyInvocable<void(absl::Status)> RankEngine::WhenOk(std::function<void()> then) {
  return [this, then = std::move(then)](absl::Status status) mutable {
    executor_->Post([this, then = std::move(then), status = std::move(status)] {
      if (!status.ok()) Fail(status);
      if (!failed_) then();
    });
  };
}

template <typename T>
absl::AnyInvocable<void(absl::StatusOr<T>)> RankEngine::WhenGood(void (RankEngine::*then)(T)) {
  return [this, then](absl::StatusOr<T> result) {
    executor_->Post([this, then, result = std::move(result)]() mutable {
      if (!result.ok()) Fail(result.status());
      if (!failed_) (this->*then)(*std::move(result));
    });
  };
}

// In ordered mode the number of the next step travels with the request, and the embedding PSs use
// it to check what the Lookup sees. With one permit no step can be counted between the request and
// the step that trains its part, so `step_` is that step's number.
PartPipeline::RequestFunction RankEngine::MakeRequestFunction() {
  return [this](const PartRequest& request, absl::AnyInvocable<void(PartInput)> answered) {
    client_.NextBatch(request, step_, std::move(answered));
  };
}

// Training.

void RankEngine::BeginEpoch(uint32_t epoch) {
  epoch_ = epoch;
  auto policy = options_.ordered
                    ? MakeOrderedRequests(epoch, num_workers_, options_.lanes, options_.rank)
                    : MakeAnyWorkerRequests(TRAIN_STREAM, epoch, num_workers_,
                                            static_cast<uint32_t>(options_.idle_step_ms));
  pipeline_ = std::make_unique<PartPipeline>(std::move(policy), &permits_, MakeRequestFunction(),
                                             [this] { OnPipelineChanged(); });
  ResumeTraining();
}

void RankEngine::ResumeTraining() {
  observer_->OnPhase("training");
  training_ = true;
  training_since_us_ = last_step_end_us_ = executor_->NowUs();
  pipeline_->ResumeRequests();
  OnPipelineChanged();
}

// Runs after everything that can free a permit or bring a part. Requests go out first, so that the
// next parts are fetched while this one is trained.
void RankEngine::OnPipelineChanged() {
  if (failed_ || !training_) return;
  pipeline_->RequestParts();
  MaybeJoin();
}

// Joins the next step if this rank has something to contribute: a part, or the news that it is
// idle. One step runs at a time.
void RankEngine::MaybeJoin() {
  if (failed_ || !training_ || joining_) return;
  if (absl::optional<PartPipeline::TakenPart> part = pipeline_->Take(); part.has_value()) {
    Join(std::move(part), /*idle=*/false);
  } else if (pipeline_->no_more_requests() && pipeline_->empty()) {
    Join(absl::nullopt, /*idle=*/true);
  } else if (!options_.ordered) {
    JoinWithoutPartWhenDue();
  }
}

// Other ranks may hold parts and wait in the allreduce for this one, so after idle_step_ms it joins
// without a part. It waits that long even if it will request no more parts: ranks that only wait
// for the answers to their last pushes would otherwise run empty steps as fast as they can.
void RankEngine::JoinWithoutPartWhenDue() {
  const int64_t left_us = last_step_end_us_ + options_.idle_step_ms * 1000 - executor_->NowUs();
  if (left_us <= 0) {
    Join(absl::nullopt, /*idle=*/false);
    return;
  }
  if (timer_set_) return;
  timer_set_ = true;
  executor_->PostAfter(left_us, [this] {
    timer_set_ = false;
    MaybeJoin();
  });
}

void RankEngine::Join(absl::optional<PartPipeline::TakenPart> part, bool idle) {
  joining_ = true;
  joined_ = std::move(part);
  absl::optional<PartInput> input;
  if (joined_.has_value()) {
    joined_handle_ = joined_->input.header.handle();
    input = std::move(joined_->input);
  }
  trainer_->JoinStep(step_, std::move(input), StepFlags{idle, stop_requested_},
                     WhenGood<StepResult>(&RankEngine::OnStepDone));
}

void RankEngine::OnStepDone(StepResult result) {
  joining_ = false;
  last_step_end_us_ = executor_->NowUs();
  const bool all_idle = result.idle_ranks == options_.num_ranks;
  CHECK(!all_idle || (result.weight == 0 && !joined_.has_value()))
      << "a part was trained in a step in which all ranks were idle";

  // Every rank gets the same result, so all of them count the step, decide what is due and notice
  // that all are idle in the same way. CountStep increments step_; the push needs the number that
  // the step had.
  const uint64_t step = step_;
  if (result.weight > 0) CountStep(&result);
  if (failed_) return;
  if (joined_.has_value()) EndJoinedPart(&result, step);
  // Before OnAllIdle: if the stop flag came with the allreduce that found all ranks idle, training
  // must end now. Otherwise the ranks would begin another epoch first.
  if (result.stop) decided_.end = true;
  if (decided_.any()) pipeline_->StopRequests();
  if (all_idle) {
    OnAllIdle();
  } else {
    OnPipelineChanged();
  }
}

void RankEngine::CountStep(StepResult* result) {
  ++step_;
  result_.set_steps(step_);
  result_.set_samples(result_.samples() + result->samples);
  if (result->finite) {
    skipped_in_a_row_ = 0;
  } else {
    CountSkippedStep();
  }
  // All ranks count the same steps, so the warm-up of staleness ends at the same step everywhere.
  if (!options_.ordered && step_ == options_.staleness_warmup_steps) {
    permits_.Grow(options_.max_staleness);
  }

  const uint64_t every = options_.evaluation.every_steps();
  if (options_.has_valid && every > 0 && step_ % every == 0) decided_.evaluate = true;
  if (options_.max_steps > 0 && step_ >= options_.max_steps) decided_.end = true;

  StepEvent event;
  event.epoch = epoch_;
  event.steps = step_;
  event.samples = result->samples;
  event.weight = result->weight;
  event.loss = result->loss;
  event.finite = result->finite;
  event.had_part = joined_.has_value();
  event.staleness = joined_.has_value() ? joined_->staleness : 0;
  event.saturated_values = result->gradients.saturated_values;
  observer_->OnStep(event);
}

// A step that is not finite changes nothing, and a run survives one now and then. Many in a row
// mean that the current weights no longer give finite gradients. Nothing would change these weights
// any more, so instead of going on without learning, the run ends.
void RankEngine::CountSkippedStep() {
  result_.set_skipped_steps(result_.skipped_steps() + 1);
  ++skipped_in_a_row_;
  if (options_.max_skipped_steps_in_a_row == 0 ||
      skipped_in_a_row_ < options_.max_skipped_steps_in_a_row) {
    return;
  }
  Fail(absl::FailedPreconditionError(absl::StrCat(
      "training diverged: the gradients of ", skipped_in_a_row_, " steps in a row, up to step ",
      step_, " of epoch ", epoch_ + 1,
      ", were infinite or NaN, so none of these steps changed the model. Lower the learning rates, "
      "scale numeric columns with very large values, or raise max_skipped_steps_in_a_row (0: no "
      "limit)")));
}

// Pushes the gradients of the part, or releases the part if the step did not count. A step that is
// not finite is pushed too, without gradients: the embedding PSs count its number. The permit comes
// back when the embedding worker has answered, which is after every PS has applied the Update.
void RankEngine::EndJoinedPart(StepResult* result, uint64_t step) {
  const int worker = joined_->worker;
  auto released = [this, slot = joined_->slot] {
    pipeline_->Release(slot);
    OnPipelineChanged();
  };
  if (result->weight > 0) {
    StepHeader header;
    header.set_step(step);
    header.set_normalizer(result->normalizer);
    header.set_finite(result->finite);
    header.set_learning_rate_factor(result->learning_rate_factor);
    client_.PushGradients(worker, joined_handle_, header, std::move(result->gradients), released);
  } else {
    client_.Ack(worker, TRAIN_STREAM, joined_handle_, released);
  }
  joined_.reset();
}

// All ranks are idle, so no part, push or Lookup of the train stream is in flight anywhere: the
// tables stand still, and can be evaluated and saved.
void RankEngine::OnAllIdle() {
  CHECK(pipeline_->empty());
  training_ = false;
  trained_us_ += executor_->NowUs() - training_since_us_;

  const bool epoch_end = !decided_.any();
  const bool end = decided_.end || (epoch_end && epoch_ + 1 == options_.epochs);
  const bool due = decided_.evaluate || ((epoch_end || end) && options_.evaluation.at_epoch_end());
  decided_ = Decided();
  // If a stop was decided at the last step of an epoch, this is that stop and not yet the end of
  // the epoch: training resumes, finds no parts, and all ranks are idle again. validated_step_
  // prevents a second validation of the same step then.
  next_ = end ? Next::kFinish : epoch_end ? Next::kNextEpoch : Next::kResume;
  if (options_.has_valid && due && validated_step_ != step_) {
    BeginPass(VALID_STREAM, next_pass_++);
  } else {
    AfterValidation();
  }
}

// Evaluation.

void RankEngine::BeginPass(Stream stream, uint32_t pass) {
  observer_->OnPhase(stream == VALID_STREAM ? "validating" : "testing");
  pass_stream_ = stream;
  pass_pipeline_ = std::make_unique<PartPipeline>(
      MakeAnyWorkerRequests(stream, pass, num_workers_,
                            static_cast<uint32_t>(options_.idle_step_ms)),
      &evaluation_permits_, MakeRequestFunction(), [this] { MaybeScore(); });
  merging_ = false;
  MaybeScore();
}

// Requests parts, scores one at a time, and merges the metrics after the last. Scoring the next
// part does not wait for the Ack of the last one: its lookups change nothing.
void RankEngine::MaybeScore() {
  if (failed_ || merging_) return;
  pass_pipeline_->RequestParts();
  if (scoring_) return;
  absl::optional<PartPipeline::TakenPart> part = pass_pipeline_->Take();
  if (!part.has_value()) {
    if (!pass_pipeline_->exhausted() || !pass_pipeline_->empty()) return;
    merging_ = true;
    trainer_->MergeEvaluation(WhenGood<MetricValues>(&RankEngine::OnMerged));
    return;
  }
  scoring_ = true;
  const uint64_t handle = part->input.header.handle();
  auto acknowledge = [this, slot = part->slot, worker = part->worker, handle] {
    scoring_ = false;
    client_.Ack(worker, pass_stream_, handle, [this, slot] {
      pass_pipeline_->Release(slot);
      MaybeScore();
    });
    MaybeScore();
  };
  trainer_->Score(std::move(part->input), WhenOk(acknowledge));
}

void RankEngine::OnMerged(MetricValues values) {
  if (pass_stream_ == VALID_STREAM) {
    OnValidated(values);
    return;
  }
  observer_->OnEvaluation(EvaluationEvent{TEST_STREAM, epoch_, step_, values, false});
  *result_.mutable_test() = values;
  Finish();
}

void RankEngine::OnValidated(const MetricValues& values) {
  validated_step_ = step_;
  const bool best = best_.Offer(values);
  observer_->OnEvaluation(EvaluationEvent{VALID_STREAM, epoch_, step_, values, best});
  if (best_.out_of_patience() && next_ != Next::kFinish) {
    next_ = Next::kFinish;
    result_.set_stopped_early(true);
  }
  if (!best) {
    AfterValidation();
    return;
  }
  *result_.mutable_valid() = values;
  Save([this] { AfterValidation(); });
}

void RankEngine::AfterValidation() {
  switch (next_) {
    case Next::kResume:
      ResumeTraining();
      return;
    case Next::kNextEpoch:
      BeginEpoch(epoch_ + 1);
      return;
    case Next::kFinish:
      FinishTraining();
      return;
  }
}

// The end.

// Only rank 0 saves, but every rank records the save, so that all of them know later whether the
// best model has to be restored. The other ranks go on; they wait for rank 0 in the next
// collective, which rank 0 joins only when the model is committed.
void RankEngine::Save(std::function<void()> then) {
  saved_step_ = step_;
  result_.set_best_step(step_);
  if (options_.rank != 0) {
    then();
    return;
  }
  observer_->OnPhase("saving");
  trainer_->SaveModel(step_, result_.valid(), WhenOk(std::move(then)));
}

// Without a validation there is no best model; then the last one is saved.
void RankEngine::FinishTraining() {
  result_.set_train_seconds(static_cast<double>(trained_us_) * 1e-6);
  if (saved_step_.has_value()) {
    BeginTest();
  } else {
    Save([this] { BeginTest(); });
  }
}

// The test set is scored with the saved model, which is the best one and may not be the last.
void RankEngine::BeginTest() {
  if (!options_.has_test) {
    Finish();
  } else if (saved_step_ == step_) {
    BeginPass(TEST_STREAM, 0);
  } else {
    trainer_->RestoreModel(WhenOk([this] { BeginPass(TEST_STREAM, 0); }));
  }
}

void RankEngine::Finish() { on_finished_(result_); }

}  // namespace satrap
