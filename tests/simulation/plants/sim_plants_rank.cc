#include "tests/simulation/plants/sim_plants_rank.h"

#include <cmath>
#include <limits>
#include <utility>

#include "tests/simulation/plants/sim_plants_cuts.h"

namespace satrap::simulation {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kNudge = 1e-9;  // far below the distance of two drawn metrics

using CutMarkedCallback = absl::AnyInvocable<void(absl::StatusOr<CutMarked>)>;
using CutEndedCallback = absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)>;

// Passes everything on. It is put between a rank and its simulated network.
class PlantedTrainer : public StepTrainer {
 public:
  PlantedTrainer(const Site& site, StepTrainer* next) : site_(site), next_(next) {}

  std::unique_ptr<PreparedPart> Prepare(PartInput part) override {
    return next_->Prepare(std::move(part));
  }
  void JoinStep(uint64_t step, std::unique_ptr<PreparedPart> part, StepFlags flags,
                absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) override {
    next_->JoinStep(step, std::move(part), flags,
                    [this, flags, done = std::move(done)](auto result) mutable {
                      if (result.ok()) OnStep(flags, &*result);
                      done(std::move(result));
                    });
  }
  void Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) override {
    next_->Score(std::move(part), std::move(done));
  }
  void EndStep(double squares, absl::AnyInvocable<void(absl::StatusOr<StepEnd>)> done) override {
    next_->EndStep(squares, std::move(done));
  }
  void MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) override {
    next_->MergeEvaluation(std::move(done));
  }
  void BeginCut(CutPlan plan, CutMarkedCallback done, CutEndedCallback ended) override {
    next_->BeginCut(std::move(plan), std::move(done), std::move(ended));
  }
  void AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) override {
    next_->AwaitCut(std::move(done));
  }
  void RestoreModel(const std::string& cut, absl::AnyInvocable<void(absl::Status)> done) override {
    next_->RestoreModel(cut, std::move(done));
  }

 protected:
  virtual void OnStep(const StepFlags& /*flags*/, StepResult* /*result*/) {}
  // Reports `result` to `done` a little later, as if the work had been done.
  template <typename Done, typename Result>
  void Say(Done done, Result result) {
    site_.loop->Post([done = std::move(done), result]() mutable { done(result); });
  }

  const Site site_;
  StepTrainer* const next_;
};

template <typename Trainer, typename... Arguments>
TrainerHook Train(Arguments... arguments) {
  return [=](const Site& site, StepTrainer* next) {
    return std::make_unique<Trainer>(site, next, arguments...);
  };
}

class ChangedSteps final : public PlantedTrainer {
 public:
  using Change = void (*)(const Site&, const StepFlags&, StepResult*);
  ChangedSteps(const Site& site, StepTrainer* next, Change change)
      : PlantedTrainer(site, next), change_(change) {}

 private:
  void OnStep(const StepFlags& flags, StepResult* result) override {
    change_(site_, flags, result);
  }

  const Change change_;
};

class DisguisedTrainer final : public PlantedTrainer {
 public:
  DisguisedTrainer(const Site& site, StepTrainer* next,
                   std::function<void(int merges, MetricValues*)> disguise)
      : PlantedTrainer(site, next), disguise_(std::move(disguise)) {}

  void MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) override {
    next_->MergeEvaluation([this, done = std::move(done)](auto values) mutable {
      if (values.ok()) disguise_(++merges_, &*values);
      done(std::move(values));
    });
  }
  void BeginCut(CutPlan plan, CutMarkedCallback done, CutEndedCallback ended) override {
    // The simulated trainer compares a best cut's metrics with those that it has drawn.
    if (plan.position.has_best()) {
      MetricValues* values = plan.position.mutable_best()->mutable_values();
      *values = Undisguised(*values);
    }
    next_->BeginCut(std::move(plan), std::move(done), std::move(ended));
  }

 private:
  const std::function<void(int merges, MetricValues*)> disguise_;
  int merges_ = 0;
};

class BestNotSaved final : public PlantedTrainer {
 public:
  using PlantedTrainer::PlantedTrainer;
  void BeginCut(CutPlan plan, CutMarkedCallback done, CutEndedCallback ended) override {
    if (!plan.best || ++bests_ == 1) {
      return next_->BeginCut(std::move(plan), std::move(done), std::move(ended));
    }
    CutOutcome outcome;
    outcome.committed = true;
    // Only rank 0 hears how a cut has ended (step_trainer.h).
    if (site_.index == 0) ended(std::move(outcome));
    Say(std::move(done), CutMarked());
  }

 private:
  int bests_ = 0;
};

class LastCutSkipped final : public PlantedTrainer {
 public:
  using PlantedTrainer::PlantedTrainer;
  void BeginCut(CutPlan plan, CutMarkedCallback done, CutEndedCallback ended) override {
    // The test pass loads the best cut. Without one, the world would show another fault.
    if (plan.last && !plan.best) return Say(std::move(done), CutMarked());
    next_->BeginCut(std::move(plan), std::move(done), std::move(ended));
  }
};

class OnWhileSaving final : public PlantedTrainer {
 public:
  using PlantedTrainer::PlantedTrainer;
  void AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) override {
    Say(std::move(done), true);
  }
};

class LedgerOfOneLost final : public PlantedTrainer {
 public:
  using PlantedTrainer::PlantedTrainer;
  void BeginCut(CutPlan plan, CutMarkedCallback done, CutEndedCallback ended) override {
    if (site_.is_last) plan.released.Clear();
    next_->BeginCut(std::move(plan), std::move(done), std::move(ended));
  }
};

class WeightlessLost final : public PlantedTrainer {
 public:
  using PlantedTrainer::PlantedTrainer;
  void BeginCut(CutPlan plan, CutMarkedCallback done, CutEndedCallback ended) override {
    if (std::exchange(weightless_, false)) plan.released.Clear();
    next_->BeginCut(std::move(plan), std::move(done), std::move(ended));
  }

 private:
  void OnStep(const StepFlags&, StepResult* result) override {
    weightless_ = weightless_ || result->weight == 0;
  }

  bool weightless_ = false;  // a step of weight 0 came since the last cut
};

class AbandonedLedgerLost final : public PlantedTrainer {
 public:
  using PlantedTrainer::PlantedTrainer;
  void BeginCut(CutPlan plan, CutMarkedCallback done, CutEndedCallback ended) override {
    site_.ledger->HandOver(plan);
    const auto cut = plan.number;
    next_->BeginCut(std::move(plan), std::move(done),
                    [this, cut, ended = std::move(ended)](auto outcome) mutable {
                      if (outcome.ok() && !outcome->committed) site_.ledger->Abandon(cut);
                      ended(std::move(outcome));
                    });
  }
};

class CutInTest final : public PlantedTrainer {
 public:
  using PlantedTrainer::PlantedTrainer;
  void BeginCut(CutPlan plan, CutMarkedCallback done, CutEndedCallback ended) override {
    last_plan_ = plan;
    next_->BeginCut(std::move(plan), std::move(done), std::move(ended));
  }
  // Ranks restore a model to test it, so here the test pass begins.
  void RestoreModel(const std::string& cut, absl::AnyInvocable<void(absl::Status)> done) override {
    next_->RestoreModel(cut, [this, done = std::move(done)](const absl::Status&) mutable {
      ++last_plan_.number;
      next_->BeginCut(
          last_plan_,
          [done = std::move(done)](const absl::StatusOr<CutMarked>& marked) mutable {
            done(marked.status());
          },
          [](const absl::StatusOr<CutOutcome>&) {});
    });
  }

 private:
  CutPlan last_plan_;
};

class UndisguisedObserver final : public RankObserver {
 public:
  explicit UndisguisedObserver(RankObserver* observer) : observer_(observer) {}

  void OnPhase(absl::string_view phase) override { observer_->OnPhase(phase); }
  void OnStep(const StepEvent& event) override { observer_->OnStep(event); }
  void OnEvaluation(const EvaluationEvent& event) override {
    EvaluationEvent shown = event;
    shown.values = Undisguised(event.values);
    observer_->OnEvaluation(shown);
  }

 private:
  RankObserver* const observer_;
};

// The cut says that training is over. A generation that goes on training would make other steps
// than those promised.
void ForgetFinish(const Site& site, RunPosition* position) {
  if (site.role != EMBEDDING_PS) position->set_next(RunPosition::RESUME);
}
void AskLanesThatHaveLeft(const Site& site, RunPosition* position) {
  if (site.role != NN_WORKER) return;
  for (LanePosition& lane : *position->mutable_lanes()) lane.set_left(false);
}
void ForgetTheTurn(const Site& site, RunPosition* position) {
  if (site.role == NN_WORKER) position->clear_lane_turn();
}

}  // namespace

std::unique_ptr<StepTrainer> NewDisguisedTrainer(
    const Site& site, StepTrainer* trainer,
    std::function<void(int merges, MetricValues*)> disguise) {
  return std::make_unique<DisguisedTrainer>(site, trainer, std::move(disguise));
}

std::unique_ptr<RankObserver> NewUndisguisedObserver(RankObserver* observer) {
  return std::make_unique<UndisguisedObserver>(observer);
}

// Drawn metrics lie on a grid (DrawMetrics). Rounding to the grid by the same expression gives the
// same bits again.
MetricValues Undisguised(const MetricValues& values) {
  MetricValues shown = values;
  const double auc = values.auc(), logloss = values.logloss();
  shown.set_auc(auc > 1 || std::isnan(auc) ? kNan : 0.5 + 0.05 * std::round((auc - 0.5) / 0.05));
  shown.set_logloss(
      logloss < 0 || std::isnan(logloss) ? kNan : 0.3 + 0.05 * std::round((logloss - 0.3) / 0.05));
  return shown;
}

std::vector<Fault> RankFaults() {
  return {
      {.says = "one rank ends a step after `max_steps`",
       .options =
           [](const Site& rank, RankOptions* options) {
             if (rank.is_last && options->max_steps > 0) ++options->max_steps;
           }},
      {.says = "one rank follows only its own wish to stop",
       .trainer =
           Train<ChangedSteps>([](const Site& rank, const StepFlags& flags, StepResult* result) {
             if (rank.is_last) result->stop = flags.stop;
           })},
      {.says = "one rank never runs out of patience",
       .options =
           [](const Site& rank, RankOptions* options) {
             if (rank.is_last) options->evaluation.clear_patience();
           }},
      {.says = "one rank never lowers its learning rates",
       .options =
           [](const Site& rank, RankOptions* options) {
             if (rank.is_last) options->evaluation.clear_reduce_on_plateau();
           }},
      {.says = "a wish to stop is not honoured in the allreduce in which all are idle",
       .trainer = Train<ChangedSteps>([](const Site& rank, const StepFlags&, StepResult* result) {
         if (result->idle_ranks == rank.shape->ranks) result->stop = false;
       })},
      {.says = "loaders and ranks make one epoch too many",
       .worlds = Fault::kHybrid,
       .epochs_too_many = 1},
      {.says = "a rank has one permit too many",
       .worlds = Fault::kHybrid,
       .options = [](const Site&, RankOptions* options) { ++options->max_staleness; }},
      {.says = "staleness begins at the first step, not after its warm-up",
       .worlds = Fault::kHybrid,
       .options = [](const Site&, RankOptions* options) { options->staleness_warmup_steps = 0; }},
      {.says = "only the first best model is saved", .trainer = Train<BestNotSaved>()},
      {.says = "a tie is taken for a new best",
       .disguise =
           [](int merges, MetricValues* values) {
             values->set_auc(values->auc() + kNudge * merges);
             values->set_logloss(values->logloss() - kNudge * merges);
           }},
      {.says = "NaN is taken for a new best",
       .disguise =
           [](int, MetricValues* values) {
             if (std::isnan(values->auc())) values->set_auc(2);
             if (std::isnan(values->logloss())) values->set_logloss(-1);
           }},
      {.says = "rank 0 goes on while it saves", .trainer = Train<OnWhileSaving>()},
      {.says = "the ledger of one rank is left out of a cut", .trainer = Train<LedgerOfOneLost>()},
      {.says = "provenance of steps of weight 0 is left out of a cut",
       .trainer = Train<WeightlessLost>()},
      {.says = "what was handed over with an abandoned cut is lost",
       .trainer = Train<AbandonedLedgerLost>(),
       .disk = RewrittenManifests()},
      {.says = "a cut is taken during the test pass", .trainer = Train<CutInTest>()},
      {.says = "the last cut is skipped", .trainer = Train<LastCutSkipped>()},
      {.says = "FINISH is not honoured at the start",
       .with_deaths = true,
       .position = ForgetFinish},
      {.says = "ranks ask a lane that has left the epoch",
       .worlds = Fault::kSync,
       .with_deaths = true,
       .position = AskLanesThatHaveLeft},
      {.says = "ranks forget whose turn it is among the lanes",
       .worlds = Fault::kSync,
       .with_deaths = true,
       .position = ForgetTheTurn},
  };
}

}  // namespace satrap::simulation
