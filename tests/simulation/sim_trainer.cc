#include "tests/simulation/sim_trainer.h"

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace satrap::simulation {

class SimTraining::Trainer final : public StepTrainer {
 public:
  Trainer(SimTraining* training, int rank) : training_(training), rank_(rank) {}

  std::unique_ptr<PreparedPart> Prepare(PartInput part) override {
    auto prepared = std::make_unique<PreparedSimPart>();
    if (!process()->alive()) return prepared;
    if (prepared_ - ended_ >= kPreparedParts) Violated("has too many parts prepared");
    prepared->number = prepared_++;
    prepared->part = DecodePart(training_->shape_, part, training_->surroundings_.violated);
    prepared->input = std::move(part);
    return prepared;
  }

  void JoinStep(uint64_t step, std::unique_ptr<PreparedPart> part, StepFlags flags,
                absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) override {
    if (!process()->alive()) return;
    if (held_) Violated("joins a step before the last one has ended");
    Joiner joiner;
    joiner.there = true;
    joiner.step = step;
    joiner.part.reset(static_cast<PreparedSimPart*>(part.release()));
    joiner.flags = flags;
    joiner.done = std::move(done);
    if (joiner.part != nullptr) {
      if (joiner.part->number != ended_) Violated("joins a part out of turn");
      // A rank may prepare the next part as soon as it is told of the end of this step.
      joiner.done = [this,
                     done = std::move(joiner.done)](absl::StatusOr<StepResult> result) mutable {
        ++ended_;
        held_ = result.ok() && result->dense_squares.has_value();
        done(std::move(result));
      };
    }
    training_->Join(rank_, std::move(joiner));
  }

  void EndStep(double squares, absl::AnyInvocable<void(absl::StatusOr<StepEnd>)> done) override {
    if (!process()->alive()) return;
    if (!held_) Violated("ends a step that does not wait");
    held_ = false;
    training_->CheckSquares(rank_, squares);
    process()->Post([done = std::move(done)]() mutable { done(StepEnd()); });
  }

  void Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) override {
    if (!process()->alive()) return;
    training_->Score(rank_, part);
    process()->Post([done = std::move(done)]() mutable { done(absl::OkStatus()); });
  }

  void MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) override {
    if (!process()->alive()) return;
    training_->CheckNotSaving(rank_, "merges metrics");
    training_->Barrier(rank_,
                       [this, done = std::move(done)]() mutable { done(training_->merged_); });
  }

  void BeginCut(CutPlan plan, absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done,
                absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended) override {
    if (!process()->alive()) return;
    training_->CheckNotSaving(rank_, "begins a cut");
    training_->CheckPlan(plan);
    training_->cuts_.Plan(rank_, {std::move(plan), std::move(done), std::move(ended)});
  }

  void AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) override {
    if (!process()->alive()) return;
    training_->cuts_.Await(rank_, std::move(done));
  }

  void RestoreModel(const std::string& cut, absl::AnyInvocable<void(absl::Status)> done) override {
    if (!process()->alive()) return;
    training_->CheckNotSaving(rank_, "restores");
    training_->Restore(rank_, cut, std::move(done));
  }

 private:
  // A dead rank runs no further task. But if it dies in the middle of its own code, that code runs
  // on.
  SimProcess* process() const { return training_->ranks_[rank_]; }
  void Violated(const char* what) const {
    training_->surroundings_.violated(absl::StrCat("rank ", rank_, " ", what));
  }

  SimTraining* const training_;
  const int rank_;
  uint64_t prepared_ = 0;  // parts, so far
  uint64_t ended_ = 0;     // parts whose steps have ended
  bool held_ = false;      // a step waits for EndStep
};

SimTraining::SimTraining(const WorldShape& shape, SimLoop* loop, std::vector<SimProcess*> ranks,
                         Surroundings surroundings, const State& from)
    : shape_(shape),
      loop_(loop),
      ranks_(std::move(ranks)),
      surroundings_(std::move(surroundings)),
      joiners_(shape.ranks),
      barrier_(shape.ranks),
      at_barrier_(shape.ranks),
      counted_steps_(from.steps),
      counted_samples_(from.samples),
      non_finite_steps_(from.non_finite_steps),
      stop_step_(from.stop_step),
      most_after_stop_(from.most_after_stop),
      most_after_(from.most_after),
      rates_(from.rates),
      seen_(from.seen),
      tables_(shape, from.tables, surroundings_.violated),
      cuts_(loop, ranks_, surroundings_.begin_cut, surroundings_.violated),
      merges_(from.merges) {
  for (int rank = 0; rank < shape.ranks; ++rank) {
    trainers_.push_back(std::make_unique<Trainer>(this, rank));
  }
}

SimTraining::~SimTraining() = default;

StepTrainer* SimTraining::trainer(int rank) { return trainers_[rank].get(); }

SimTraining::State SimTraining::state() const {
  State state;
  state.tables = tables_.content();
  state.steps = counted_steps_;
  state.samples = counted_samples_;
  state.non_finite_steps = non_finite_steps_;
  state.merges = merges_;
  state.stop_step = stop_step_;
  state.most_after_stop = most_after_stop_;
  state.most_after = most_after_;
  state.rates = rates_;
  for (const auto& [pass, seen] : seen_) {
    if (pass.first == TRAIN_STREAM) state.seen.emplace(pass, seen);
  }
  return state;
}

// Steps.

void SimTraining::Join(int rank, Joiner joiner) {
  CheckNotSaving(rank, "joins a step");
  if (joiners_[rank].there) {
    surroundings_.violated(absl::StrCat("rank ", rank, " joined a step twice"));
  }
  if (at_barrier_[rank]) {
    surroundings_.violated(absl::StrCat("rank ", rank, " joined a step while it evaluates"));
  }
  joiners_[rank] = std::move(joiner);
  bool all = true;
  for (int other = 0; other < shape_.ranks; ++other) {
    all = all && joiners_[other].there;
    if (joiners_[other].there && joiners_[other].step != joiners_[rank].step) {
      surroundings_.violated(
          absl::StrCat("ranks join steps ", joiners_[other].step, " and ", joiners_[rank].step));
    }
    // Two ranks in collectives of different kinds would wait for each other for ever.
    if (at_barrier_[other]) {
      surroundings_.violated(
          absl::StrCat("rank ", rank, " joins a step while rank ", other, " ends an evaluation"));
    }
  }
  if (all) FinishStep();
}

StepResult SimTraining::SumUp(const std::vector<SimPart>& parts) {
  StepResult sum;
  sum.learning_rate_factor = joiners_[0].flags.learning_rate_factor;
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    sum.idle_ranks += joiners_[rank].flags.idle ? 1 : 0;
    sum.stop = sum.stop || joiners_[rank].flags.stop;
    sum.cut = sum.cut || joiners_[rank].flags.cut;
    sum.validation = sum.validation || joiners_[rank].flags.validation;
    if (joiners_[rank].flags.learning_rate_factor != sum.learning_rate_factor) {
      surroundings_.violated(absl::StrCat("rank ", rank, " has another learning rate than rank 0"));
    }
    for (const SimSample& sample : parts[rank].samples) {
      sum.samples += 1;
      sum.weight += sample.weight;
    }
  }
  if (sum.weight > 0) {
    sum.normalizer = static_cast<float>(NormalizerOf(shape_, sum.weight, sum.samples));
  }
  return sum;
}

int SimTraining::Permits() const {
  const bool warm = counted_steps_ >= static_cast<uint64_t>(shape_.staleness_warmup_steps);
  return shape_.ordered || !warm ? 1 : shape_.max_staleness;
}

uint64_t SimTraining::MostHeld() const {
  uint64_t held = 0;
  for (const Joiner& joiner : joiners_) {
    if (shape_.ordered || joiner.flags.idle) continue;
    held += Permits() - (joiner.part != nullptr ? 1 : 0);
  }
  return held;
}

void SimTraining::FinishStep() {
  std::vector<SimPart> parts(shape_.ranks);
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    if (joiners_[rank].part == nullptr) continue;
    parts[rank] = std::move(joiners_[rank].part->part);
    See(parts[rank]);
    if (shape_.ordered) {
      tables_.CheckCounters(rank, parts[rank], 0, /*others_missing=*/false);
      tables_.CheckValues(parts[rank], kInitialRowValue);
    } else {
      tables_.CheckCounters(rank, parts[rank], Permits() - 1, /*others_missing=*/true);
      tables_.CheckUntouched(parts[rank]);
    }
  }
  if (shape_.ordered) CheckOrderedParts(parts);
  // The step must be over for this object before any rank is told of it: a rank joins the next step
  // from its `done`, so `joiners_` must be empty by then.
  const StepResult sum = SumUp(parts);
  const uint64_t most_held = MostHeld();
  std::vector<Joiner> joiners(shape_.ranks);
  joiners.swap(joiners_);
  const bool counts = sum.weight > 0;
  const bool finite = !counts || IsFiniteStep(shape_, counted_steps_);
  if (counts) {
    ++counted_steps_;
    counted_samples_ += sum.samples;
    most_after_.push_back(counted_steps_ + most_held);
    rates_.push_back(sum.learning_rate_factor);
  }
  non_finite_steps_ += finite ? 0 : 1;
  StepOfRows step;
  step.normalizer = sum.normalizer;
  step.step = static_cast<int64_t>(counted_steps_) - 1;  // if it counts
  step.rate = sum.learning_rate_factor;
  std::map<uint64_t, RowGradient> step_sums;
  if (sum.stop && !stop_step_.has_value()) {
    stop_step_ = counted_steps_;
    most_after_stop_ = counted_steps_ + most_held;
  }
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    StepResult result;
    result.samples = sum.samples;
    result.weight = sum.weight;
    result.normalizer = sum.normalizer;
    result.idle_ranks = sum.idle_ranks;
    result.stop = sum.stop;
    result.cut = sum.cut;
    result.validation = sum.validation;
    result.finite = finite;
    result.learning_rate_factor = sum.learning_rate_factor;
    if (counts && finite && shape_.step_clip_norm > 0) {
      result.dense_squares = DenseSquares(shape_, static_cast<uint64_t>(step.step));
    }
    if (counts && joiners[rank].part != nullptr) {
      // If a step is not finite, none of its gradients may reach a table, whether or not the
      // trainer returns gradients. In half of these steps it returns them.
      const bool gives = finite || counted_steps_ % 2 == 0;
      const uint64_t push = tables_.CountPush(rank, parts[rank], finite);
      if (gives) {
        result.gradients =
            MakeGradients(shape_, rank, push, joiners[rank].part->input, parts[rank], step);
      }
      if (!shape_.ordered) {
        tables_.NotePush(rank, parts[rank], finite, step);
      } else if (finite) {
        tables_.AddGradients(parts[rank], &step_sums);
      }
    }
    ranks_[rank]->PostAfter(static_cast<int64_t>(loop_->random()->Below(300)),
                            [done = std::move(joiners[rank].done),
                             result = std::move(result)]() mutable { done(std::move(result)); });
  }
  if (shape_.ordered && counts && finite) squares_ = tables_.StepRows(step_sums, step);
  if (counts) surroundings_.counted(counted_steps_);
}

void SimTraining::CheckSquares(int rank, double squares) {
  if (std::abs(squares - squares_) > 1e-3 * (1 + squares_)) {
    surroundings_.violated(absl::StrCat("rank ", rank, " was told gradients with squares of ",
                                        squares, ", not ", squares_));
  }
}

void SimTraining::See(const SimPart& part) {
  const PartId& id = part.description.id();
  if (!parts_seen_.emplace(id.stream(), id.epoch(), id.lane(), id.seq(), id.part()).second) {
    surroundings_.violated(absl::StrCat("a part came twice: ", id.ShortDebugString()));
  }
  for (const SimSample& sample : part.samples) ++seen_[{id.stream(), id.epoch()}][sample.id];
  if (part.description.first_sample() + part.samples.size() >
      static_cast<uint64_t>(shape_.global_batch_size)) {
    surroundings_.violated(
        absl::StrCat("a part ends beyond its batch: ", part.description.ShortDebugString()));
  }
}

// Rank r must have part r of the step's batch, and the parts must make up the batch in order.
void SimTraining::CheckOrderedParts(const std::vector<SimPart>& parts) {
  uint64_t samples = 0;
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    if (joiners_[rank].part == nullptr) continue;
    const PartDescription& part = parts[rank].description;
    const PartId& id = part.id();
    const PartId& first = parts[0].description.id();
    if (joiners_[0].part == nullptr || id.part() != static_cast<uint32_t>(rank) ||
        id.epoch() != first.epoch() || id.lane() != first.lane() || id.seq() != first.seq() ||
        part.first_sample() != samples) {
      surroundings_.violated(absl::StrCat("rank ", rank, " trains ", part.ShortDebugString(),
                                          " where rank 0 trains ", first.ShortDebugString()));
    }
    samples += part.samples();
  }
}

// Evaluations and the model.

void SimTraining::Score(int rank, const PartInput& input) {
  const SimPart part = DecodePart(shape_, input, surroundings_.violated);
  See(part);
  scored_ += part.samples.size();
  if (updates_due() > 0) {
    surroundings_.violated(absl::StrCat("rank ", rank, " scores a part while ", updates_due(),
                                        " Updates are still to be applied"));
  }
  tables_.CheckCounters(rank, part, 0, /*others_missing=*/false);
  tables_.CheckValues(part, /*absent=*/0);
}

void SimTraining::CheckPlan(const CutPlan& plan) const {
  if (plan.position.step() != counted_steps_) {
    surroundings_.violated(
        absl::StrCat("a cut of step ", plan.position.step(), " is taken after ", counted_steps_));
  }
  if (plan.best && merged_.samples() > 0 &&
      plan.position.best().values().SerializeAsString() != merged_.SerializeAsString()) {
    surroundings_.violated("a best cut has the metrics of another one");
  }
  if (restored_) surroundings_.violated("a cut is taken after a model was restored");
  if (updates_due() > 0) {
    surroundings_.violated(
        absl::StrCat("a cut is taken while ", updates_due(), " Updates are to be applied"));
  }
}

void SimTraining::Restore(int rank, const std::string& cut,
                          absl::AnyInvocable<void(absl::Status)> done) {
  restored_ = true;
  const auto shared = std::make_shared<decltype(done)>(std::move(done));
  const auto restored = [this, rank, shared](const absl::Status& status) {
    if (!status.ok()) return (*shared)(status);
    Barrier(rank, [shared] { (*shared)(absl::OkStatus()); });
  };
  if (rank == 0) {
    surroundings_.restore(cut, restored);
  } else {
    restored(absl::OkStatus());
  }
}

void SimTraining::CheckNotSaving(int rank, const char* what) {
  if (rank == 0 && cuts_.is_awaited()) {
    surroundings_.violated(absl::StrCat("rank 0 ", what, " while a cut is awaited"));
  }
}

void SimTraining::Barrier(int rank, absl::AnyInvocable<void()> done) {
  if (at_barrier_[rank]) {
    surroundings_.violated(absl::StrCat("rank ", rank, " is at the barrier already"));
  }
  at_barrier_[rank] = true;
  barrier_[rank] = std::move(done);
  for (int other = 0; other < shape_.ranks; ++other) {
    if (joiners_[other].there) {
      surroundings_.violated(
          absl::StrCat("rank ", rank, " ends an evaluation while rank ", other, " joins a step"));
    }
  }
  for (const bool there : at_barrier_) {
    if (!there) return;
  }
  merged_ = DrawMetrics(shape_, merges_++, scored_);
  scored_ = 0;
  for (int r = 0; r < shape_.ranks; ++r) {
    at_barrier_[r] = false;
    ranks_[r]->Post(std::move(barrier_[r]));
  }
}

}  // namespace satrap::simulation
