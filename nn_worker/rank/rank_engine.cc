#include "nn_worker/rank/rank_engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "nn_worker/rank/rank_engine_callbacks.h"

namespace satrap {
namespace {

// The fewest parts of an evaluation pass that are in flight: one is scored while the next is
// fetched.
constexpr int kMinEvaluationParts = 2;

// An embedding row moves furthest in its first updates, where a stale gradient does the most harm.
// So training begins with one permit, and CountStep grants the others when the warm-up is over.
int FirstPermits(const RankOptions& options) {
  const bool warm = options.position.step() >= options.staleness_warmup_steps;
  return options.ordered || !warm ? 1 : options.max_staleness;
}

absl::optional<MetricValues> BestValues(const RunPosition& position) {
  if (!position.has_best()) return absl::nullopt;
  return position.best().values();
}

}  // namespace

RankEngine::RankEngine(const RankOptions& options, Executor* executor,
                       std::vector<rpc::Channel*> workers, StepTrainer* trainer,
                       RankObserver* observer, FailureSink on_failure, FinishedSink on_finished,
                       KillPoints* kill_points)
    : options_(options),
      executor_(executor),
      num_workers_(static_cast<int>(workers.size())),
      trainer_(trainer),
      observer_(observer),
      on_failure_(std::move(on_failure)),
      on_finished_(std::move(on_finished)),
      kill_points_(kill_points),
      client_(options.rank, options.envelope, options.timeouts, executor, std::move(workers),
              [this](absl::Status status) { Fail(std::move(status)); }),
      permits_(FirstPermits(options)),
      evaluation_permits_(std::max(kMinEvaluationParts, options.max_staleness)),
      epoch_(options.position.epoch()),
      step_(options.position.step()),
      skipped_in_a_row_(options.position.skipped_steps_in_a_row()),
      best_(options.evaluation, BestValues(options.position),
            static_cast<int>(options.position.validations_without_best())),
      schedule_(options.checkpoint, options.position.step()) {
  const RunPosition& position = options_.position;
  if (position.has_validated_step()) validated_step_ = position.validated_step();
  if (position.has_best()) {
    best_validation_ = position.best();
    *result_.mutable_valid() = position.best().values();
  }
  result_.set_steps(step_);
  result_.set_samples(position.samples());
  result_.set_skipped_steps(position.skipped_steps());
  if (position.stopped_early()) result_.set_stopped_early(true);
  trained_us_ = static_cast<int64_t>(position.train_seconds() * 1e6);
}

RankEngine::~RankEngine() = default;

void RankEngine::Start() {
  executor_->Post([this] {
    if (absl::Status status = CheckPosition(); !status.ok()) {
      Fail(std::move(status));
    } else {
      Begin();
    }
  });
}

void RankEngine::Begin() {
  const RunPosition& position = options_.position;
  schedule_.Start(executor_->NowUs());
  if (!options_.train) {
    BeginPass(TEST_STREAM, 0);
  } else if (position.next() == RunPosition::FINISH) {
    FinishTraining();
  } else if (epoch_ >= options_.epochs || (options_.max_steps > 0 && step_ >= options_.max_steps)) {
    // The job was changed since the cut, and asks for no more training.
    next_ = Next::kFinish;
    CutIfDue();
  } else {
    BeginEpoch(epoch_);
  }
}

void RankEngine::RequestStop() {
  executor_->Post([this] { stop_requested_ = true; });
}

void RankEngine::RequestCut(const CutWish& wish) {
  executor_->Post([this, wish] { schedule_.OnWish(wish); });
}

void RankEngine::SetPhase(absl::string_view phase) {
  if (phase_ == phase) return;
  phase_ = std::string(phase);
  observer_->OnPhase(phase);
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
  epoch_ended_ = false;
  // Only the epoch that the run begins in begins within its order.
  const bool first = pipeline_ == nullptr;
  OrderedSchedule schedule(options_.lanes, first ? options_.position : RunPosition());
  auto policy = options_.ordered
                    ? MakeOrderedRequests(epoch, num_workers_, std::move(schedule), options_.rank)
                    : MakeAnyWorkerRequests(TRAIN_STREAM, epoch, num_workers_,
                                            static_cast<uint32_t>(options_.idle_step_ms));
  pipeline_ = std::make_unique<PartPipeline>(std::move(policy), &permits_, MakeRequestFunction(),
                                             [this] { OnPipelineChanged(); });
  ResumeTraining();
}

void RankEngine::ResumeTraining() {
  SetPhase("training");
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
    const PartDescription& description = joined_->input.header.part();
    joined_handle_ = joined_->input.header.handle();
    joined_epoch_ = description.id().epoch();
    joined_provenance_ = description.provenance();
    input = std::move(joined_->input);
  }
  const bool cut_due = options_.rank == 0 &&
                       schedule_.IsDue(step_, /*counts=*/input.has_value(), executor_->NowUs());
  trainer_->JoinStep(step_, std::move(input), StepFlags{idle, stop_requested_, cut_due},
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
  if (result.cut && !decided_.cut) {
    decided_.cut = true;
    cut_decided_us_ = executor_->NowUs();
  }
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
  auto released = [this, slot = joined_->slot, epoch = joined_epoch_,
                   provenance = std::move(joined_provenance_)] {
    OnReleased(slot, epoch, provenance);
  };
  if (result->weight > 0) {
    StepHeader header;
    header.set_step(step);
    header.set_normalizer(result->normalizer);
    header.set_finite(result->finite);
    header.set_learning_rate_factor(result->learning_rate_factor);
    client_.PushGradients(worker, joined_handle_, header, std::move(result->gradients),
                          std::move(released));
  } else {
    client_.Ack(worker, TRAIN_STREAM, joined_handle_, std::move(released));
  }
  joined_.reset();
}

// What is released is consumed, whether or not its step counted: no later generation may train it.
void RankEngine::OnReleased(uint64_t slot, uint32_t epoch, const Provenance& provenance) {
  if (failed_) return;
  for (const ProvenanceRange& range : provenance) {
    const absl::Status status = released_.Add(epoch, range);
    if (status.ok()) continue;
    // A restart would meet the same contradiction, so the code is not one that a restart cures.
    Fail(absl::DataLossError(absl::StrCat("records were trained twice: ", status.message())));
    return;
  }
  pipeline_->Release(slot);
  OnPipelineChanged();
}

// All ranks are idle, so no part, push or Lookup of the train stream is in flight anywhere: the
// tables stand still, and can be evaluated and saved.
void RankEngine::OnAllIdle() {
  CHECK(pipeline_->empty());
  training_ = false;
  trained_us_ += executor_->NowUs() - training_since_us_;

  const bool epoch_end = !decided_.any();
  cut_due_ = decided_.cut;
  until_idle_us_ = decided_.cut ? executor_->NowUs() - cut_decided_us_ : 0;
  epoch_ended_ = epoch_end;
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
    CutIfDue();
  }
}

// Evaluation.

void RankEngine::BeginPass(Stream stream, uint32_t pass) {
  SetPhase(stream == VALID_STREAM ? "validating" : "testing");
  if (stream == TEST_STREAM && kill_points_ != nullptr) {
    kill_points_->Reach(KillPoint::RANK_IN_TEST_PASS);
  }
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
  if (best) {
    *result_.mutable_valid() = values;
    best_validation_.emplace();
    *best_validation_->mutable_values() = values;
    best_validation_->set_step(step_);
    new_best_ = true;
  }
  CutIfDue();
}

// The end.

// The model of the run is the best cut; without a validation that was the best, the last one.
void RankEngine::FinishTraining() {
  result_.set_train_seconds(static_cast<double>(trained_us_) * 1e-6);
  result_.set_best_step(best_validation_.has_value() ? best_validation_->step() : step_);
  result_.set_model_dir(best_validation_.has_value() ? best_validation_->cut() : last_cut_);
  if (!options_.has_test) {
    Finish();
  } else if (result_.best_step() == step_) {
    BeginPass(TEST_STREAM, 0);
  } else {
    trainer_->RestoreModel(result_.model_dir(), WhenOk([this] { BeginPass(TEST_STREAM, 0); }));
  }
}

void RankEngine::Finish() { on_finished_(result_); }

}  // namespace satrap
