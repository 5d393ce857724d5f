#include "nn_worker/rank/training_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/count_text.h"
#include "nn_worker/rank/schedule/ordered_schedule.h"

namespace satrap {
namespace {

// While no data comes, a rank joins steps without a part, at intervals that double with each such
// step. They double at most this many times, from idle_step_ms on: a quiet topic then costs a few
// steps a second.
constexpr int kMostIdleDoublings = 3;

// An embedding row moves furthest in its first updates, where a stale gradient does the most harm.
// So training begins with one permit, and CountStep grants the others when the warm-up is over.
int FirstPermits(const RankOptions& options) {
  const bool warm = options.position.step() >= options.staleness_warmup_steps;
  return options.ordered || !warm ? 1 : options.max_staleness;
}

}  // namespace

TrainingSteps::TrainingSteps(const RankOptions& options, Executor* executor, const Peers& peers,
                             OnIdle on_idle)
    : options_(options),
      executor_(executor),
      peers_(peers),
      on_idle_(std::move(on_idle)),
      validation_clock_(options),
      permits_(FirstPermits(options)),
      epoch_(options.position.epoch()) {}

// In ordered mode the number of the next step travels with the request, and the embedding PSs use
// it to check what the Lookup sees. With one permit, no step can be counted between the request and
// the step that trains its part, so the number in the request is the number of that step.
void TrainingSteps::BeginEpoch(uint32_t epoch) {
  epoch_ = epoch;
  epoch_ended_ = false;
  // Only the run's first epoch may begin in the middle of its order.
  const bool first = pipeline_ == nullptr;
  if (first) validation_clock_.Start(peers_.record->step(), executor_->NowUs());
  OrderedSchedule schedule(options_.lanes, first ? options_.position : RunPosition());
  auto policy =
      options_.ordered
          ? MakeOrderedRequests(epoch, peers_.num_workers, std::move(schedule), options_.rank)
          : MakeAnyWorkerRequests(TRAIN_STREAM, epoch, peers_.num_workers,
                                  static_cast<uint32_t>(options_.idle_step_ms));
  auto request = [this](const PartRequest& part, absl::AnyInvocable<void(PartInput)> answered) {
    peers_.client->NextBatch(part, peers_.record->step(), std::move(answered));
  };
  pipeline_ = std::make_unique<PartPipeline>(std::move(policy), &permits_, std::move(request),
                                             [this] { OnPipelineChanged(); });
  Resume();
}

void TrainingSteps::Resume() {
  training_ = true;
  training_since_us_ = last_step_end_us_ = executor_->NowUs();
  pipeline_->ResumeRequests();
  OnPipelineChanged();
}

// Runs after everything that can free a permit or bring a part. Requests go out first, so that the
// next parts are fetched while the current part is trained.
void TrainingSteps::OnPipelineChanged() {
  if (peers_.failure->failed() || !training_) return;
  pipeline_->RequestParts();
  PrepareNext();
  MaybeJoin();
}

// Gives the trainer the next part as soon as this rank holds it, even while a step runs: the work
// that can be done in advance then overlaps with that step, and with its wait for the other ranks.
void TrainingSteps::PrepareNext() {
  if (next_.has_value()) return;
  absl::optional<PartPipeline::TakenPart> part = pipeline_->Take();
  if (!part.has_value()) return;
  const NextBatchAnswerHeader& header = part->input.header;
  next_.emplace();
  next_->part = {part->entry,
                 part->worker,
                 part->staleness,
                 header.handle(),
                 header.part().id().epoch(),
                 header.part().provenance()};
  next_->prepared = peers_.trainer->Prepare(std::move(part->input));
}

// Joins the next step if this rank has something to contribute: a part, or the fact that it is
// idle. One step runs at a time.
void TrainingSteps::MaybeJoin() {
  if (peers_.failure->failed() || !training_ || joining_) return;
  if (next_.has_value()) {
    Join(/*idle=*/false);
    PrepareNext();
  } else if (pipeline_->no_more_requests() && pipeline_->empty()) {
    Join(/*idle=*/true);
  } else if (!options_.ordered) {
    JoinWithoutPartWhenDue();
  }
}

// Other ranks may hold parts and wait in the allreduce for this rank, so after idle_step_ms this
// rank joins without a part. It waits that long even if it will request no more parts: ranks that
// only wait for the answers to their last pushes would otherwise run empty steps as fast as they
// can.
//
// A timer that was set while no data came may be too late when data comes again. An earlier timer
// is then set in addition, and the later one finds nothing to do.
void TrainingSteps::JoinWithoutPartWhenDue() {
  const int64_t due_us = last_step_end_us_ + IdleStepUs();
  const int64_t left_us = due_us - executor_->NowUs();
  if (left_us <= 0) {
    Join(/*idle=*/false);
    return;
  }
  if (timer_us_.has_value() && *timer_us_ <= due_us) return;
  timer_us_ = due_us;
  executor_->PostAfter(left_us, [this, due_us] {
    if (timer_us_ == due_us) timer_us_.reset();
    MaybeJoin();
  });
}

int64_t TrainingSteps::IdleStepUs() const {
  const int doublings = std::min(steps_without_samples_, kMostIdleDoublings);
  return (options_.idle_step_ms * 1000) << doublings;
}

void TrainingSteps::OnValidated() {
  validation_clock_.Start(peers_.record->step(), executor_->NowUs());
}

// Joins the next step, with the next part if there is one.
void TrainingSteps::Join(bool idle) {
  joining_ = true;
  std::unique_ptr<PreparedPart> prepared;
  if (next_.has_value()) {
    joined_ = std::move(next_->part);
    prepared = std::move(next_->prepared);
    next_.reset();
  }
  const uint64_t step = peers_.record->step();
  StepFlags flags;
  flags.idle = idle;
  flags.stop = stop_requested_;
  flags.cut = peers_.cuts->IsDue(step, /*counts=*/prepared != nullptr);
  flags.validation = validation_clock_.IsDue(step, executor_->NowUs());
  // Validations come between steps, when all ranks are idle, so every rank has judged the same
  // validations.
  flags.learning_rate_factor = static_cast<float>(peers_.record->plateau_factor().value_or(1));
  peers_.trainer->JoinStep(step, std::move(prepared), flags,
                           peers_.failure->WhenGood<StepResult>(
                               [this](StepResult result) { OnStepDone(std::move(result)); }));
}

void TrainingSteps::OnStepDone(StepResult result) {
  joining_ = false;
  last_step_end_us_ = executor_->NowUs();
  steps_without_samples_ = result.samples > 0 ? 0 : steps_without_samples_ + 1;
  const bool all_idle = result.idle_ranks == options_.num_ranks;
  CHECK(!all_idle || (result.weight == 0 && !joined_.has_value()))
      << "a part was trained in a step in which all ranks were idle";
  // In ordered mode every rank has a part in a step that counts, and the answer to the push of that
  // part brings the norm.
  CHECK(!result.dense_squares.has_value() || joined_.has_value())
      << "a clipped step without a part";

  // Every rank gets the same result, so all ranks do the same: they count the step, decide what is
  // due, and detect whether all ranks are idle. The number of this step is kept for the push,
  // because CountStep changes the number in the record.
  const uint64_t step = peers_.record->step();
  if (result.weight > 0) CountStep(result);
  if (peers_.failure->failed()) return;
  if (joined_.has_value()) EndJoinedPart(&result, step);
  // This comes before OnAllIdle: the allreduce that found all ranks idle may also have brought this
  // flag, which must take effect now. Otherwise the ranks would begin another epoch first.
  if (result.stop) decided_.end = true;
  if (result.validation) decided_.evaluate = true;
  if (result.cut) peers_.cuts->OnDecided();
  if (decided_.evaluate || decided_.end || peers_.cuts->decided()) pipeline_->StopRequests();
  if (all_idle) {
    OnAllIdle();
  } else {
    OnPipelineChanged();
  }
}

void TrainingSteps::CountStep(const StepResult& result) {
  peers_.record->CountStep(result.samples, result.finite, result.loss_scale);
  if (epoch_ == 0) peers_.record->AddLabels(result.labelled, result.positives);
  if (result.large) peers_.record->CountLargeGradient();
  const uint64_t step = peers_.record->step();
  FailIfTooManyAreSkipped();
  // All ranks count the same steps, so the warm-up of staleness ends at the same step everywhere.
  if (!options_.ordered && step == options_.staleness_warmup_steps) {
    permits_.Grow(options_.max_staleness);
  }

  const uint64_t every = options_.evaluation.every_steps();
  if (options_.has_valid && every > 0 && step % every == 0) decided_.evaluate = true;
  if (options_.max_steps > 0 && step >= options_.max_steps) decided_.end = true;

  StepEvent event;
  event.epoch = epoch_;
  event.steps = step;
  event.samples = result.samples;
  event.weight = result.weight;
  event.loss = result.loss;
  event.finite = result.finite;
  event.moving_label_rate = peers_.record->moving_label_rate();
  event.large = result.large;
  event.had_part = joined_.has_value();
  event.staleness = joined_.has_value() ? joined_->staleness : 0;
  if (result.loss_scale.has_value()) event.loss_scale = result.loss_scale->scale();
  event.gradient_values = result.gradients.values;
  event.losses = result.gradients.losses;
  peers_.observer->OnStep(event);
}

// A step that is not finite changes nothing, and a run survives such a step now and then. Many such
// steps in a row mean that the current weights no longer give finite gradients. Nothing would
// change these weights any more, so the run ends instead of continuing without learning.
void TrainingSteps::FailIfTooManyAreSkipped() {
  const uint64_t skipped = peers_.record->skipped_in_a_row();
  const uint64_t limit = options_.max_skipped_steps_in_a_row;
  if (limit == 0 || skipped < limit) return;
  peers_.failure->Fail(absl::FailedPreconditionError(absl::StrCat(
      "training diverged: the gradients of ", Counted(skipped, "step"), " in a row, up to step ",
      peers_.record->step(), " of epoch ", epoch_ + 1,
      ", were infinite or NaN, so none of these steps changed the model. Lower the learning rates, "
      "scale numeric columns with very large values, or raise max_skipped_steps_in_a_row (0: no "
      "limit)")));
}

// Pushes the gradients of the part, or releases the part if the step did not count. A step that is
// not finite is pushed too, without gradients: the embedding PSs count its number. The permit
// returns when the embedding worker has answered the push, that is, after every PS has applied the
// Update.
void TrainingSteps::EndJoinedPart(StepResult* result, uint64_t step) {
  const int worker = joined_->worker;
  const uint64_t handle = joined_->handle;
  std::function<void()> released = [this, entry = joined_->entry, epoch = joined_->epoch,
                                    provenance = std::move(joined_->provenance)] {
    OnReleased(entry, epoch, provenance);
  };
  if (result->weight > 0) {
    StepHeader header;
    header.set_step(step);
    header.set_normalizer(result->normalizer);
    header.set_finite(result->finite);
    header.set_learning_rate_factor(result->learning_rate_factor);
    const bool clips = result->dense_squares.has_value();
    if (clips) header.set_dense_squares(*result->dense_squares);
    peers_.client->PushGradients(
        worker, handle, header, std::move(result->gradients),
        [this, clips, released = std::move(released)](const PushGradientsAnswerHeader& answer) {
          if (!clips) return released();
          EndClippedStep(answer, released);
        });
  } else {
    peers_.client->Ack(worker, TRAIN_STREAM, handle, std::move(released));
  }
  joined_.reset();
}

// The tables have already made the step, clipped by the norm that the answer brings. Now the
// network makes its step; only after that is the part released. No rank joins the next step before
// that.
void TrainingSteps::EndClippedStep(const PushGradientsAnswerHeader& answer,
                                   std::function<void()> ended) {
  if (peers_.failure->failed()) return;
  if (!answer.has_squares()) {
    return peers_.failure->Fail(
        absl::InternalError("PushGradients: the answer lacks the squares of the step's gradients"));
  }
  if (peers_.kill_points != nullptr) peers_.kill_points->Reach(KillPoint::RANK_BETWEEN_HALVES);
  peers_.trainer->EndStep(
      answer.squares(), peers_.failure->WhenGood<StepEnd>([this, squares = answer.squares(),
                                                           ended = std::move(ended)](StepEnd end) {
        peers_.record->SetLossScale(end.loss_scale);
        const double norm = std::sqrt(squares);
        peers_.record->AddGradientNorm(norm, end.clip_factor);
        peers_.observer->OnGradientNorm(norm, end.clip_factor);
        ended();
      }));
}

void TrainingSteps::OnReleased(uint64_t entry, uint32_t epoch,
                               const RankCuts::Provenance& provenance) {
  if (absl::Status status = peers_.cuts->AddReleased(epoch, provenance); !status.ok()) {
    return peers_.failure->Fail(std::move(status));
  }
  pipeline_->Release(entry);
  OnPipelineChanged();
}

void TrainingSteps::OnAllIdle() {
  CHECK(pipeline_->empty());
  training_ = false;
  peers_.record->AddTrainingTime(executor_->NowUs() - training_since_us_);
  // If a stop was decided at the last step of an epoch, the ranks are idle because of that stop,
  // not yet because the epoch has ended. Training then resumes, finds no parts, and all ranks are
  // idle again.
  const bool stopped = decided_.evaluate || decided_.end || peers_.cuts->decided();
  Idle idle = std::exchange(decided_, Idle());
  idle.epoch_end = epoch_ended_ = !stopped;
  peers_.cuts->OnAllIdle();
  on_idle_(idle);
}

void TrainingSteps::FillPosition(RunPosition* position) const {
  position->set_epoch(epoch_ended_ ? epoch_ + 1 : epoch_);
  if (pipeline_ == nullptr) {
    // No epoch was begun in this generation, so the order still continues at the position from
    // which the generation began.
    *position->mutable_lanes() = options_.position.lanes();
    position->set_lane_turn(options_.position.lane_turn());
  } else if (!epoch_ended_) {
    pipeline_->FillPosition(position);
  }
}

}  // namespace satrap
