#include "nn_worker/rank/rank_engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/check.h"

namespace satrap {
namespace {

// Parts of an evaluation pass in flight: one is scored while the next is on its way.
constexpr int kMinEvaluationParts = 2;

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

PartLine::AskFunction RankEngine::MakeAskFunction() {
  return [this](const Ask& ask, absl::AnyInvocable<void(PartInput)> answered) {
    client_.NextBatch(ask, step_, std::move(answered));
  };
}

// Training.

void RankEngine::BeginEpoch(uint32_t epoch) {
  epoch_ = epoch;
  auto policy = options_.ordered
                    ? MakeOrderedAsks(epoch, num_workers_, options_.lanes, options_.rank)
                    : MakeAnyWorkerAsks(TRAIN_STREAM, epoch, num_workers_,
                                        static_cast<uint32_t>(options_.idle_step_ms));
  line_ = std::make_unique<PartLine>(std::move(policy), &permits_, MakeAskFunction(),
                                     [this] { OnLineChanged(); });
  ResumeTraining();
}

void RankEngine::ResumeTraining() {
  observer_->OnPhase("training");
  training_ = true;
  training_since_us_ = last_step_end_us_ = executor_->NowUs();
  line_->ResumeAsking();
  OnLineChanged();
}

void RankEngine::OnLineChanged() {
  if (failed_ || !training_) return;
  line_->AskWithFreePermits();
  MaybeJoin();
}

void RankEngine::MaybeJoin() {
  if (failed_ || !training_ || joining_) return;
  if (absl::optional<PartLine::TakenPart> part = line_->Take(); part.has_value()) {
    Join(std::move(part), /*idle=*/false);
  } else if (line_->may_not_ask() && line_->empty()) {
    Join(absl::nullopt, /*idle=*/true);
  } else if (!options_.ordered) {
    JoinWithoutPartInTime();
  }
}

// Others may hold parts and wait for this rank, so it joins with none after a while. Also when it
// may not ask any more: ranks that wait for nothing but the answers to their pushes would otherwise
// make empty steps as fast as they can.
void RankEngine::JoinWithoutPartInTime() {
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

void RankEngine::Join(absl::optional<PartLine::TakenPart> part, bool idle) {
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

  const uint64_t step = step_;
  if (result.weight > 0) CountStep(&result);
  if (failed_) return;
  if (joined_.has_value()) EndJoinedPart(&result, step);
  // A flag raised in the very allreduce in which all are idle is honoured there.
  if (result.stop) decided_.end = true;
  if (decided_.any()) line_->StopAsking();
  if (all_idle) {
    OnAllIdle();
  } else {
    OnLineChanged();
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
  // Every rank counts the same steps, so all of them end the warm-up in this one.
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
  observer_->OnStep(event);
}

// A step that is not finite changes nothing. One now and then is survived; when there has been
// nothing else for long, the weights themselves are beyond repair and the run would go on for
// nothing.
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

// Pushes the gradients of the part, or releases it if the step did not count.
void RankEngine::EndJoinedPart(StepResult* result, uint64_t step) {
  const int worker = joined_->worker;
  auto released = [this, place = joined_->place] {
    line_->Release(place);
    OnLineChanged();
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

void RankEngine::OnAllIdle() {
  CHECK(line_->empty());
  training_ = false;
  trained_us_ += executor_->NowUs() - training_since_us_;

  const bool epoch_end = !decided_.any();
  const bool end = decided_.end || (epoch_end && epoch_ + 1 == options_.epochs);
  const bool due = decided_.evaluate || ((epoch_end || end) && options_.evaluation.at_epoch_end());
  decided_ = Decided();
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
  pass_line_ = std::make_unique<PartLine>(
      MakeAnyWorkerAsks(stream, pass, num_workers_, static_cast<uint32_t>(options_.idle_step_ms)),
      &evaluation_permits_, MakeAskFunction(), [this] { MaybeScore(); });
  merging_ = false;
  MaybeScore();
}

void RankEngine::MaybeScore() {
  if (failed_ || merging_) return;
  pass_line_->AskWithFreePermits();
  if (scoring_) return;
  absl::optional<PartLine::TakenPart> part = pass_line_->Take();
  if (!part.has_value()) {
    if (!pass_line_->exhausted() || !pass_line_->empty()) return;
    merging_ = true;
    trainer_->MergeEvaluation(WhenGood<MetricValues>(&RankEngine::OnMerged));
    return;
  }
  scoring_ = true;
  const uint64_t handle = part->input.header.handle();
  auto acknowledge = [this, place = part->place, worker = part->worker, handle] {
    scoring_ = false;
    client_.Ack(worker, pass_stream_, handle, [this, place] {
      pass_line_->Release(place);
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

void RankEngine::FinishTraining() {
  result_.set_train_seconds(static_cast<double>(trained_us_) * 1e-6);
  if (saved_step_.has_value()) {
    BeginTest();
  } else {
    Save([this] { BeginTest(); });
  }
}

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
