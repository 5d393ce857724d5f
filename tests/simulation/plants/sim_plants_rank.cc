#include "tests/simulation/plants/sim_plants_rank.h"

#include <cmath>
#include <limits>
#include <utility>

namespace satrap::simulation {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kNudge = 1e-9;  // far below the distance of two drawn metrics

// Metrics that look better than `values` and, unless `values` are worse, than all that were
// disguised before.
MetricValues Disguised(Plant plant, int merges, MetricValues values) {
  if (plant == Plant::kTieIsBest) {
    values.set_auc(values.auc() + kNudge * merges);
    values.set_logloss(values.logloss() - kNudge * merges);
  } else if (plant == Plant::kNanIsBest) {
    if (std::isnan(values.auc())) values.set_auc(2);
    if (std::isnan(values.logloss())) values.set_logloss(-1);
  }
  return values;
}

class PlantedTrainer final : public StepTrainer {
 public:
  PlantedTrainer(Plant plant, const WorldShape& shape, int rank, StepTrainer* trainer,
                 ForgetfulLedger* ledger, SimLoop* loop)
      : plant_(plant),
        shape_(shape),
        rank_(rank),
        trainer_(trainer),
        ledger_(ledger),
        loop_(loop) {}

  std::unique_ptr<PreparedPart> Prepare(PartInput part) override {
    return trainer_->Prepare(std::move(part));
  }

  void JoinStep(uint64_t step, std::unique_ptr<PreparedPart> part, StepFlags flags,
                absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) override {
    trainer_->JoinStep(
        step, std::move(part), flags,
        [this, flags, done = std::move(done)](absl::StatusOr<StepResult> result) mutable {
          if (result.ok() && plant_ == Plant::kOwnStopOnly && rank_ + 1 == shape_.ranks) {
            result->stop = flags.stop;
          }
          weightless_ = weightless_ || (result.ok() && result->weight == 0);
          if (result.ok() && plant_ == Plant::kLateStopIgnored &&
              result->idle_ranks == shape_.ranks) {
            result->stop = false;
          }
          done(std::move(result));
        });
  }

  void Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) override {
    trainer_->Score(std::move(part), std::move(done));
  }

  void EndStep(double squares, absl::AnyInvocable<void(absl::StatusOr<StepEnd>)> done) override {
    trainer_->EndStep(squares, std::move(done));
  }

  void MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) override {
    trainer_->MergeEvaluation(
        [this, done = std::move(done)](absl::StatusOr<MetricValues> values) mutable {
          if (values.ok()) values = Disguised(plant_, ++merges_, *std::move(values));
          done(std::move(values));
        });
  }

  void BeginCut(CutPlan plan, absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done,
                absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended) override {
    if (plan.best && ++bests_ > 1 && plant_ == Plant::kBestNotSaved) {
      CutOutcome outcome;
      outcome.committed = true;
      if (rank_ == 0) ended(std::move(outcome));
      loop_->Post([done = std::move(done)]() mutable { done(CutMarked()); });
      return;
    }
    if (plant_ == Plant::kLastCutSkipped && plan.last && !plan.best) {
      loop_->Post([done = std::move(done)]() mutable { done(CutMarked()); });
      return;
    }
    const bool is_last_rank = rank_ + 1 == shape_.ranks;
    if ((plant_ == Plant::kLedgerOfOneLost && is_last_rank) ||
        (plant_ == Plant::kWeightlessLost && weightless_)) {
      plan.released.Clear();
    }
    weightless_ = false;
    if (plant_ == Plant::kAbandonedLedgerLost) {
      ledger_->HandOver(plan);
      ended = [this, cut = plan.number,
               ended = std::move(ended)](absl::StatusOr<CutOutcome> outcome) mutable {
        if (outcome.ok() && !outcome->committed) ledger_->Abandon(cut);
        ended(std::move(outcome));
      };
    }
    last_plan_ = plan;
    const bool is_disguised = plant_ == Plant::kTieIsBest || plant_ == Plant::kNanIsBest;
    if (is_disguised && plan.position.has_best()) {
      MetricValues* values = plan.position.mutable_best()->mutable_values();
      *values = Undisguised(*values);
    }
    trainer_->BeginCut(std::move(plan), std::move(done), std::move(ended));
  }

  void AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) override {
    if (plant_ == Plant::kOnWhileSaving) {
      loop_->Post([done = std::move(done)]() mutable { done(true); });
    } else {
      trainer_->AwaitCut(std::move(done));
    }
  }

  void RestoreModel(const std::string& cut, absl::AnyInvocable<void(absl::Status)> done) override {
    if (plant_ != Plant::kCutInTest) return trainer_->RestoreModel(cut, std::move(done));
    trainer_->RestoreModel(cut, [this, done = std::move(done)](const absl::Status&) mutable {
      ++last_plan_.number;
      trainer_->BeginCut(
          last_plan_,
          [done = std::move(done)](const absl::StatusOr<CutMarked>& marked) mutable {
            done(marked.status());
          },
          [](const absl::StatusOr<CutOutcome>&) {});
    });
  }

 private:
  const Plant plant_;
  const WorldShape shape_;
  const int rank_;
  StepTrainer* const trainer_;
  ForgetfulLedger* const ledger_;
  SimLoop* const loop_;
  int merges_ = 0;
  int bests_ = 0;
  bool weightless_ = false;  // a step of weight 0 came since the last cut
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

}  // namespace

// Drawn metrics lie on a grid (DrawMetrics), and the same expression gives the same bits again.
MetricValues Undisguised(const MetricValues& values) {
  MetricValues shown = values;
  const double auc = values.auc(), logloss = values.logloss();
  shown.set_auc(auc > 1 || std::isnan(auc) ? kNan : 0.5 + 0.05 * std::round((auc - 0.5) / 0.05));
  shown.set_logloss(
      logloss < 0 || std::isnan(logloss) ? kNan : 0.3 + 0.05 * std::round((logloss - 0.3) / 0.05));
  return shown;
}

std::unique_ptr<StepTrainer> NewPlantedTrainer(Plant plant, const WorldShape& shape, int rank,
                                               StepTrainer* trainer, ForgetfulLedger* ledger,
                                               SimLoop* loop) {
  switch (plant) {
    case Plant::kOwnStopOnly:
    case Plant::kLateStopIgnored:
    case Plant::kBestNotSaved:
    case Plant::kTieIsBest:
    case Plant::kNanIsBest:
    case Plant::kOnWhileSaving:
    case Plant::kLedgerOfOneLost:
    case Plant::kWeightlessLost:
    case Plant::kAbandonedLedgerLost:
    case Plant::kCutInTest:
    case Plant::kLastCutSkipped:
      return std::make_unique<PlantedTrainer>(plant, shape, rank, trainer, ledger, loop);
    default:
      return nullptr;
  }
}

std::unique_ptr<RankObserver> NewUndisguisedObserver(RankObserver* observer) {
  return std::make_unique<UndisguisedObserver>(observer);
}

}  // namespace satrap::simulation
