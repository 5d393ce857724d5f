#include "nn_worker/rank/rank_engine.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"

namespace satrap {

RankEngine::RankEngine(const RankOptions& options, Executor* executor,
                       std::vector<rpc::Channel*> workers, StepTrainer* trainer,
                       RankObserver* observer, FailureSink on_failure, FinishedSink on_finished,
                       KillPoints* kill_points)
    : options_(options),
      executor_(executor),
      trainer_(trainer),
      observer_(observer),
      on_finished_(std::move(on_finished)),
      kill_points_(kill_points),
      failure_(executor, std::move(on_failure)),
      client_(options.rank, options.envelope, options.timeouts, executor, workers,
              [this](absl::Status status) { failure_.Fail(std::move(status)); }),
      record_(options.evaluation, options.position, options.traits),
      cuts_(options, executor, trainer, observer, &failure_,
            {[this](const std::string& cut) { return PositionAfter(cut); },
             [this](absl::string_view phase) { SetPhase(phase); }, [this] { GoOn(); }}),
      steps_(options, executor,
             {static_cast<int>(workers.size()), &client_, trainer, observer, &failure_, &record_,
              &cuts_, kill_points},
             [this](const TrainingSteps::Idle& idle) { OnIdle(idle); }),
      passes_(options, static_cast<int>(workers.size()), &client_, trainer, &failure_) {}

RankEngine::~RankEngine() = default;

void RankEngine::Start() {
  executor_->Post([this] {
    if (absl::Status status = CheckPosition(); !status.ok()) {
      failure_.Fail(std::move(status));
    } else {
      Begin();
    }
  });
}

void RankEngine::RequestStop() {
  executor_->Post([this] { steps_.RequestStop(); });
}

void RankEngine::RequestCut(const CutWish& wish) {
  executor_->Post([this, wish] { cuts_.OnWish(wish); });
}

void RankEngine::SetPhase(absl::string_view phase) {
  if (phase_ == phase) return;
  phase_ = std::string(phase);
  observer_->OnPhase(phase);
}

// These functions check and make positions: where the run begins, and where it continues after a
// cut.

absl::Status RankEngine::CheckPosition() const {
  const RunPosition& position = options_.position;
  if (!options_.ordered || position.lanes_size() == 0) return absl::OkStatus();
  if (position.lanes_size() == options_.lanes &&
      position.lane_turn() < static_cast<uint32_t>(options_.lanes)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the cut from which training continues has ",
                   Counted(static_cast<uint64_t>(position.lanes_size()), "lane"), ", and lane ",
                   position.lane_turn(), " is next, but the job has ",
                   Counted(static_cast<uint64_t>(options_.lanes), "lane")));
}

void RankEngine::Begin() {
  cuts_.Start();
  const bool has_all_steps = options_.max_steps > 0 && record_.step() >= options_.max_steps;
  if (!options_.train) {
    Test();
  } else if (options_.position.next() == RunPosition::FINISH) {
    FinishTraining();
  } else if (steps_.epoch() >= options_.epochs || has_all_steps) {
    // The job was changed after the cut and now asks for no more training.
    next_ = Next::kFinish;
    CutIfDue();
  } else {
    SetPhase("training");
    steps_.BeginEpoch(steps_.epoch());
  }
}

RunPosition RankEngine::PositionAfter(const std::string& cut) {
  if (new_best_) record_.SetBestCut(cut);
  RunPosition position;
  record_.FillPosition(&position);
  steps_.FillPosition(&position);
  FillFrozenSteps(&position);
  position.set_next(next_ == Next::kFinish ? RunPosition::FINISH : RunPosition::RESUME);
  return position;
}

// Adds the steps of this generation to those that are recorded in the cut from which it began.
void RankEngine::FillFrozenSteps(RunPosition* position) const {
  std::map<uint32_t, uint64_t> steps;
  for (const FrozenSteps& before : options_.position.frozen_steps()) {
    steps[before.table()] = before.steps();
  }
  const uint64_t since = position->step() - options_.position.step();
  for (const uint32_t table : options_.frozen_tables) steps[table] += since;
  for (const auto& [table, frozen] : steps) {
    FrozenSteps* const of_table = position->add_frozen_steps();
    of_table->set_table(table);
    of_table->set_steps(frozen);
  }
}

// Nothing changes the tables now, so they can be evaluated and then saved.
void RankEngine::OnIdle(const TrainingSteps::Idle& idle) {
  const bool end = idle.end || (idle.epoch_end && steps_.epoch() + 1 == options_.epochs);
  next_ = end ? Next::kFinish : idle.epoch_end ? Next::kNextEpoch : Next::kResume;
  const bool due = idle.evaluate || ((idle.epoch_end || end) && options_.evaluation.at_epoch_end());
  // If a stop is decided at the last step of an epoch, the end of the epoch follows at the same
  // step, and that step is not validated twice.
  if (options_.has_valid && due && !record_.is_validated()) {
    BeginPass(VALID_STREAM, next_pass_++,
              [this](const MetricValues& values) { OnValidated(values); });
  } else {
    CutIfDue();
  }
}

void RankEngine::BeginPass(Stream stream, uint32_t pass, EvaluationPasses::Done done) {
  SetPhase(stream == VALID_STREAM ? "validating" : "testing");
  passes_.Begin(stream, pass, std::move(done));
}

void RankEngine::OnValidated(const MetricValues& values) {
  const absl::optional<double> factor_before = record_.plateau_factor();
  new_best_ = record_.Validate(values);
  steps_.OnValidated();
  const absl::optional<double> factor = record_.plateau_factor();
  observer_->OnEvaluation(EvaluationEvent{VALID_STREAM, steps_.epoch(), record_.step(), values,
                                          new_best_, factor, factor != factor_before,
                                          record_.reductions()});
  if (record_.out_of_patience() && next_ != Next::kFinish) {
    next_ = Next::kFinish;
    record_.StopEarly();
  }
  CutIfDue();
}

void RankEngine::CutIfDue() {
  const bool last = next_ == Next::kFinish;
  if (cuts_.due() || new_best_ || last) {
    cuts_.Take(new_best_, last);
  } else {
    GoOn();
  }
}

void RankEngine::GoOn() {
  new_best_ = false;
  switch (next_) {
    case Next::kResume:
      SetPhase("training");
      steps_.Resume();
      return;
    case Next::kNextEpoch:
      SetPhase("training");
      steps_.BeginEpoch(steps_.epoch() + 1);
      return;
    case Next::kFinish:
      FinishTraining();
      return;
  }
}

// The run's model is the best cut, or the last cut if no validation was the best. If that cut was
// taken at the present step, tables and network already have its values.
void RankEngine::FinishTraining() {
  const RunResult result = ResultOfTraining();
  if (!options_.has_test) {
    on_finished_(result);
  } else if (result.best_step() == record_.step()) {
    Test();
  } else {
    trainer_->RestoreModel(result.model_dir(), failure_.WhenOk([this] { Test(); }));
  }
}

void RankEngine::Test() {
  if (kill_points_ != nullptr) kill_points_->Reach(KillPoint::RANK_IN_TEST_PASS);
  BeginPass(TEST_STREAM, 0, [this](const MetricValues& values) { OnTested(values); });
}

void RankEngine::OnTested(const MetricValues& values) {
  observer_->OnEvaluation(EvaluationEvent{TEST_STREAM, steps_.epoch(), record_.step(), values,
                                          /*best=*/false,
                                          /*learning_rate_factor=*/absl::nullopt, /*reduced=*/false,
                                          /*reductions=*/0});
  RunResult result = ResultOfTraining();
  *result.mutable_test() = values;
  on_finished_(result);
}

RunResult RankEngine::ResultOfTraining() const {
  RunResult result = record_.Result();
  if (!record_.best().has_value()) result.set_model_dir(cuts_.newest());
  return result;
}

}  // namespace satrap
