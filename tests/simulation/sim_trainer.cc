#include "tests/simulation/sim_trainer.h"

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/sim_formats.h"

namespace satrap::simulation {
namespace {

constexpr double kTolerance = 1e-3;

}  // namespace

class SimTraining::Trainer final : public StepTrainer {
 public:
  Trainer(SimTraining* training, int rank) : training_(training), rank_(rank) {}

  void JoinStep(uint64_t step, absl::optional<PartInput> part, StepFlags flags,
                absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) override {
    if (!process()->alive()) return;
    Joiner joiner;
    joiner.there = true;
    joiner.step = step;
    joiner.part = std::move(part);
    joiner.flags = flags;
    joiner.done = std::move(done);
    training_->Join(rank_, std::move(joiner));
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
    training_->PlanCut(rank_, {std::move(plan), std::move(done), std::move(ended)});
  }

  void AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) override {
    if (!process()->alive()) return;
    training_->AwaitCut(rank_, std::move(done));
  }

  void RestoreModel(const std::string& cut, absl::AnyInvocable<void(absl::Status)> done) override {
    if (!process()->alive()) return;
    training_->CheckNotSaving(rank_, "restores");
    training_->Restore(rank_, cut, std::move(done));
  }

 private:
  // A dead rank runs no task, but it may die within its own code.
  SimProcess* process() const { return training_->ranks_[rank_]; }

  SimTraining* const training_;
  const int rank_;
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
      seen_(from.seen),
      pushes_(shape.ranks),
      tables_(from.tables),
      planners_(shape.ranks),
      awaiting_(shape.ranks),
      merges_(from.merges) {
  for (const auto& [key, row] : tables_.rows) touched_.insert(key);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    trainers_.push_back(std::make_unique<Trainer>(this, rank));
  }
}

SimTraining::~SimTraining() = default;

StepTrainer* SimTraining::trainer(int rank) { return trainers_[rank].get(); }

SimTraining::State SimTraining::state() const {
  State state;
  state.tables = tables_;
  state.steps = counted_steps_;
  state.samples = counted_samples_;
  state.non_finite_steps = non_finite_steps_;
  state.merges = merges_;
  state.stop_step = stop_step_;
  state.most_after_stop = most_after_stop_;
  state.most_after = most_after_;
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
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    sum.idle_ranks += joiners_[rank].flags.idle ? 1 : 0;
    sum.stop = sum.stop || joiners_[rank].flags.stop;
    sum.cut = sum.cut || joiners_[rank].flags.cut;
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
    held += Permits() - (joiner.part.has_value() ? 1 : 0);
  }
  return held;
}

void SimTraining::FinishStep() {
  std::vector<SimPart> parts(shape_.ranks);
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    if (!joiners_[rank].part.has_value()) continue;
    parts[rank] = DecodePart(shape_, *joiners_[rank].part, surroundings_.violated);
    See(parts[rank]);
    CheckCounters(rank, parts[rank], shape_.ordered);
    if (shape_.ordered) {
      CheckValues(parts[rank], kInitialRowValue);
    } else {
      CheckUntouched(parts[rank]);
    }
  }
  if (shape_.ordered) CheckOrderedParts(parts);
  // The step is over for this object before any rank hears of it: a rank joins the next one from
  // its `done`, so `joiners_` must be empty by then.
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
  }
  non_finite_steps_ += finite ? 0 : 1;
  const double normalizer = sum.normalizer;
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
    result.finite = finite;
    if (counts && joiners[rank].part.has_value()) {
      // Nothing of a step that is not finite may reach a table, whether or not the trainer gives
      // gradients: half of these steps give them.
      const bool gives = finite || counted_steps_ % 2 == 0;
      if (finite && !parts[rank].samples.empty()) ++tables_.pushes[rank];
      if (gives) {
        result.gradients = MakeGradients(shape_, rank, tables_.pushes[rank], *joiners[rank].part,
                                         parts[rank], static_cast<float>(normalizer));
      }
      if (!shape_.ordered) {
        NotePush(rank, parts[rank], finite, normalizer);
      } else if (finite) {
        AddGradients(parts[rank], &step_sums);
      }
    }
    ranks_[rank]->PostAfter(static_cast<int64_t>(loop_->random()->Below(300)),
                            [done = std::move(joiners[rank].done),
                             result = std::move(result)]() mutable { done(std::move(result)); });
  }
  // One optimizer step a key, however many parts hold it.
  for (const auto& [key, sum_of_key] : step_sums) StepRow(key, sum_of_key, normalizer);
  if (counts) surroundings_.counted(counted_steps_);
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

// Rank r has part r of the step's batch, which the parts make up in order.
void SimTraining::CheckOrderedParts(const std::vector<SimPart>& parts) {
  uint64_t samples = 0;
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    if (!joiners_[rank].part.has_value()) continue;
    const PartDescription& part = parts[rank].description;
    const PartId& id = part.id();
    const PartId& first = parts[0].description.id();
    if (!joiners_[0].part.has_value() || id.part() != static_cast<uint32_t>(rank) ||
        id.epoch() != first.epoch() || id.lane() != first.lane() || id.seq() != first.seq() ||
        part.first_sample() != samples) {
      surroundings_.violated(absl::StrCat("rank ", rank, " trains ", part.ShortDebugString(),
                                          " where rank 0 trains ", first.ShortDebugString()));
    }
    samples += part.samples();
  }
}

// Every sample holds the counter row, which tells how many pushes of each rank the part's Lookup
// saw, and the sum of their numbers. A rank's own pushes that it did not see are among its last
// max_staleness - 1, and there are none during the warm-up of staleness.
void SimTraining::CheckCounters(int rank, const SimPart& part, bool exact) {
  if (part.samples.empty()) return;
  for (int r = 0; r < kMaxRanks; ++r) {
    const auto made = static_cast<double>(tables_.pushes[r]);
    // A PS may multiply by the inverse of the normalizer, so the sums are whole numbers only up to
    // rounding.
    const double missing = std::round(made - part.pooled[kCounter][r]);
    const double missing_sum =
        std::round(made * (made + 1) / 2 - part.pooled[kCounter][kMaxRanks + r]);
    const double may_miss = exact || r >= shape_.ranks ? 0 : r == rank ? Permits() - 1 : made;
    // The smallest sum that `missing` different push numbers can have if all are among the last
    // `may_miss`.
    const double least_sum = missing * (made - may_miss + 1) + missing * (missing - 1) / 2;
    if (missing < 0 || missing > may_miss || missing_sum < least_sum) {
      surroundings_.violated(absl::StrCat(
          "a lookup of rank ", rank, " missed ", missing, " of ", made, " pushes of rank ", r,
          ", with numbers that add up to ", missing_sum, "; it may miss the last ", may_miss));
    }
  }
}

void SimTraining::CheckValue(const SimPart& part, size_t sample, int feature, double absent) {
  for (int d = 0; d < kRowValues; ++d) {
    double expected = 0;
    for (const uint64_t key : KeysOf(part.samples[sample], feature)) {
      const auto row = tables_.rows.find(key);
      expected += row == tables_.rows.end() ? absent : row->second.values[d];
    }
    const double got = part.pooled[feature][sample * kRowValues + d];
    if (!(std::abs(got - expected) <= kTolerance * (1 + std::abs(expected)))) {
      surroundings_.violated(absl::StrCat("sample ", part.samples[sample].id, " feature ", feature,
                                          " value ", d, " came as ", got, ", not ", expected));
    }
  }
}

void SimTraining::CheckValues(const SimPart& part, double absent) {
  for (size_t s = 0; s < part.samples.size(); ++s) {
    for (const int feature : {kSingle, kSeveral}) CheckValue(part, s, feature, absent);
  }
}

void SimTraining::CheckUntouched(const SimPart& part) {
  for (size_t s = 0; s < part.samples.size(); ++s) {
    for (const int feature : {kSingle, kSeveral}) {
      bool touched = false;
      for (const uint64_t key : KeysOf(part.samples[s], feature)) {
        touched = touched || touched_.count(key) > 0;
      }
      if (!touched) CheckValue(part, s, feature, kInitialRowValue);
    }
  }
}

void SimTraining::AddGradients(const SimPart& part, std::map<uint64_t, RowGradient>* sums) const {
  for (size_t s = 0; s < part.samples.size(); ++s) {
    for (const int feature : {kSingle, kSeveral}) {
      for (const uint64_t key : KeysOf(part.samples[s], feature)) {
        RowGradient& sum = (*sums)[key];
        for (int d = 0; d < kRowValues; ++d) {
          sum[d] += SampleGradient(part.samples[s], feature - kSingle, d, PullOf(shape_),
                                   part.pooled[feature][s * kRowValues + d]);
        }
      }
    }
  }
}

void SimTraining::StepRow(uint64_t key, const RowGradient& sum, double normalizer) {
  tables_.rows[key].Step(shape_, sum, normalizer);
}

// A push that is not finite has a call number as well, but no Update of it changes a row.
void SimTraining::NotePush(int rank, const SimPart& part, bool finite, double normalizer) {
  Push& push = pushes_[rank].emplace_back();
  push.normalizer = normalizer;
  if (!finite) return;
  AddGradients(part, &push.sums);
  for (const auto& [key, sum] : push.sums) {
    touched_.insert(key);
    updates_due_.emplace(formats::OwnerOfKey(key, shape_.ps), rank, pushes_[rank].size());
  }
}

void SimTraining::OnUpdateApplied(int ps, uint32_t rank, uint64_t number) {
  if (rank >= pushes_.size() || number == 0 || number > pushes_[rank].size()) {
    surroundings_.violated(
        absl::StrCat("an Update of push ", number, " of rank ", rank, ", which it has not made"));
    return;
  }
  updates_due_.erase({ps, static_cast<int>(rank), number});
  const Push& push = pushes_[rank][number - 1];
  for (const auto& [key, sum] : push.sums) {
    if (formats::OwnerOfKey(key, shape_.ps) == ps) StepRow(key, sum, push.normalizer);
  }
}

// Evaluations and the model.

void SimTraining::Score(int rank, const PartInput& input) {
  const SimPart part = DecodePart(shape_, input, surroundings_.violated);
  See(part);
  scored_ += part.samples.size();
  if (!updates_due_.empty()) {
    surroundings_.violated(absl::StrCat("rank ", rank, " scores a part while ", updates_due_.size(),
                                        " Updates are still to be applied"));
  }
  CheckCounters(rank, part, /*exact=*/true);
  CheckValues(part, /*absent=*/0);
}

void SimTraining::CheckPlan(int rank, const CutPlan& plan) {
  if (plan.position.step() != counted_steps_) {
    surroundings_.violated(
        absl::StrCat("a cut of step ", plan.position.step(), " is taken after ", counted_steps_));
  }
  if (plan.best && merged_.samples() > 0 &&
      plan.position.best().values().SerializeAsString() != merged_.SerializeAsString()) {
    surroundings_.violated("a best cut has the metrics of another one");
  }
  if (restored_) surroundings_.violated("a cut is taken after a model was restored");
  if (!updates_due_.empty()) {
    surroundings_.violated(
        absl::StrCat("a cut is taken while ", updates_due_.size(), " Updates are to be applied"));
  }
  if (planners_[rank].has_value()) {
    surroundings_.violated(absl::StrCat("rank ", rank, " begins a cut twice"));
  }
}

void SimTraining::PlanCut(int rank, Planner planner) {
  CheckPlan(rank, planner.plan);
  planners_[rank] = std::move(planner);
  for (const auto& other : planners_) {
    if (!other.has_value()) return;
  }
  BeginCut();
}

// Every rank has its plan.
void SimTraining::BeginCut() {
  const auto cut = std::make_shared<Cut>();
  cut->planners.resize(shape_.ranks);
  cut->planners.swap(planners_);
  CutPlan plan = cut->planners[0]->plan;
  std::vector<LedgerState> released;
  for (auto& planner : cut->planners) {
    released.push_back(std::move(planner->plan.released));
    RunPosition position = planner->plan.position;
    position.set_train_seconds(plan.position.train_seconds());
    if (position.SerializeAsString() != plan.position.SerializeAsString() ||
        planner->plan.number != plan.number || planner->plan.best != plan.best ||
        planner->plan.last != plan.last) {
      surroundings_.violated(absl::StrCat("ranks plan the cuts {", plan.position.ShortDebugString(),
                                          "} and {", position.ShortDebugString(), "}"));
    }
  }
  cut->told = CutMarked{IsWaitedFor(plan), plan.leave};
  cut_ = cut;
  const auto mark = [this, cut] {
    if (std::exchange(cut->marked, true)) return;
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      ranks_[rank]->PostAfter(static_cast<int64_t>(loop_->random()->Below(300)),
                              [cut, rank] { cut->planners[rank]->done(cut->told); });
    }
  };
  const auto end = [this, cut, mark](absl::StatusOr<CutOutcome> outcome) {
    cut->committed.emplace(outcome.ok() ? absl::StatusOr<bool>(outcome->committed)
                                        : absl::StatusOr<bool>(outcome.status()));
    const absl::Status status = outcome.status();
    cut->planners[0]->ended(std::move(outcome));
    // Other ranks than 0 then wait in vain, as in a collective whose peer is gone.
    if (status.ok()) mark();
    AnswerWaiting();
  };
  surroundings_.begin_cut(std::move(plan), std::move(released), mark, end);
}

void SimTraining::AwaitCut(int rank, absl::AnyInvocable<void(absl::StatusOr<bool>)> done) {
  awaiting_[rank] = std::move(done);
  AnswerWaiting();
}

// Ranks wait for each other, and for the cut.
void SimTraining::AnswerWaiting() {
  if (cut_ == nullptr || !cut_->committed.has_value()) return;
  for (const auto& waiting : awaiting_) {
    if (waiting == nullptr) return;
  }
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    auto done = std::move(awaiting_[rank]);
    awaiting_[rank] = nullptr;
    if (rank > 0 && !cut_->committed->ok()) continue;
    ranks_[rank]->Post([done = std::move(done), committed = *cut_->committed]() mutable {
      done(std::move(committed));
    });
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
  if (rank == 0 && cut_ != nullptr && cut_->told.waits && !cut_->committed.has_value()) {
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
