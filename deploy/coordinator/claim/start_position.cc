#include "deploy/coordinator/claim/start_position.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace satrap {
namespace {

// The criterion by which validations are judged: "AUC", or "RMSE of task 'rating'". A job that
// names no task uses its first.
std::string ChooserOf(const JobConfig& job) {
  const EvaluationConfig& evaluation = job.evaluation();
  std::string judge = Metric_Name(evaluation.metric());
  std::string task = evaluation.task();
  if (task.empty() && job.model().tasks_size() > 0) task = job.model().tasks(0).name();
  if (!task.empty()) absl::StrAppend(&judge, " of task '", task, "'");
  return judge;
}

// Without this check, a typing error in the new limit would end training in its first step, and the
// run could not be continued.
absl::Status CheckNotPassed(const JobConfig& before, const JobConfig& job,
                            const RunPosition& position) {
  const auto max_steps = static_cast<uint64_t>(job.max_steps());
  if (job.max_steps() != before.max_steps() && max_steps > 0 && max_steps < position.step()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_steps: must be at least ", position.step(),
        ", the step of the cut that the run continues from, or 0 (no limit), got ", max_steps,
        "; to score the test set with the model as it is, use `satrap evaluate`"));
  }
  const auto patience = static_cast<uint32_t>(job.evaluation().patience());
  const uint32_t in_vain = position.validations_without_best();
  if (job.evaluation().patience() != before.evaluation().patience() && patience > 0 &&
      patience < in_vain) {
    return absl::InvalidArgumentError(absl::StrCat("evaluation.patience: must be at least ",
                                                   in_vain,
                                                   ", the number of validations since the best one "
                                                   "in the cut that the run continues from, or 0 ",
                                                   "(no limit), got ", patience));
  }
  return absl::OkStatus();
}

void ForgetJudgements(RunPosition* position) {
  position->clear_best();
  position->clear_validations_without_best();
  if (!position->has_plateau()) return;
  position->mutable_plateau()->clear_best();
  position->mutable_plateau()->clear_validations_without_best();
}

}  // namespace

std::string WhyTrainingIsOver(const JobConfig& job, const RunPosition& position) {
  const uint64_t max_steps = static_cast<uint64_t>(job.max_steps());
  if (position.epoch() >= static_cast<uint32_t>(job.epochs())) {
    return absl::StrCat("epoch ", position.epoch(), " of ", job.epochs(), " is trained");
  }
  if (max_steps > 0 && position.step() >= max_steps) {
    return absl::StrCat("step ", position.step(), " reaches max_steps (", max_steps, ")");
  }
  // Do not use `stopped_early`: it is not set if the epochs ended in the same step.
  const uint32_t patience = static_cast<uint32_t>(job.evaluation().patience());
  if (patience > 0 && position.validations_without_best() >= patience) {
    return absl::StrCat("evaluation.patience (", patience, ") has run out");
  }
  return "";
}

void ContinueTraining(const JobConfig& job_of_cut, const JobConfig& job, RunPosition* position) {
  if (position->next() != RunPosition::FINISH) return;
  if (WhyTrainingIsOver(job_of_cut, *position).empty()) return;
  if (!WhyTrainingIsOver(job, *position).empty()) return;
  // The position already says where to continue: at the end of an epoch it names the next epoch,
  // and within an epoch it says what remains.
  position->set_next(RunPosition::RESUME);
  position->clear_stopped_early();
}

std::string BeginFrom(const JobConfig& job_of_cut, const JobConfig& job, RunPosition* position) {
  const std::string before = ChooserOf(job_of_cut);
  const std::string now = ChooserOf(job);
  if (before == now) {
    ContinueTraining(job_of_cut, job, position);
    return "";
  }
  // Decide without the old judgements whether training is over. If patience has run out by the old
  // metric, that says nothing about the new one.
  RunPosition anew = *position;
  ForgetJudgements(&anew);
  if (position->next() == RunPosition::FINISH) {
    if (WhyTrainingIsOver(job_of_cut, *position).empty()) return "";
    if (!WhyTrainingIsOver(job, anew).empty()) return "";
    anew.set_next(RunPosition::RESUME);
    anew.clear_stopped_early();
  }
  *position = std::move(anew);
  return absl::StrCat("validations are judged by ", now, " from now on, but were judged by ",
                      before, " at the cut of step ", position->step(),
                      ": the best validation and patience begin anew");
}

absl::Status CheckTrainingEnd(const JobConfig& before, const JobConfig& job,
                              const RunPosition& position, const LedgerState& ledger) {
  const bool other_end = job.epochs() != before.epochs() || job.max_steps() != before.max_steps() ||
                         job.evaluation().patience() != before.evaluation().patience();
  if (!other_end) return absl::OkStatus();
  const uint32_t begun =
      ledger.epochs().empty() ? 0 : ledger.epochs(ledger.epochs_size() - 1).epoch() + 1;
  if (begun > static_cast<uint32_t>(job.epochs())) {
    return absl::InvalidArgumentError(
        absl::StrCat("epochs: must be at least ", begun, ", because epoch ", begun,
                     " has begun in the cut that the run continues from, got ", job.epochs(),
                     "; max_steps ends training within an epoch"));
  }
  if (position.next() != RunPosition::FINISH) return CheckNotPassed(before, job, position);
  const std::string why = WhyTrainingIsOver(job, position);
  return absl::InvalidArgumentError(absl::StrCat(
      "training is over in the cut that the run continues from, at step ", position.step(),
      why.empty() ? "" : ": ", why,
      ". To continue training, change epochs, max_steps or evaluation.patience; if none of them "
      "is changed, only the test pass is done"));
}

absl::Status CheckScaleKeepsTraining(const JobConfig& before, const JobConfig& job, uint32_t epoch,
                                     uint64_t step) {
  if (job.epochs() != before.epochs() && static_cast<uint32_t>(job.epochs()) <= epoch) {
    return absl::InvalidArgumentError(absl::StrCat("epochs: must be at least ", epoch + 1,
                                                   ", because training is in epoch ", epoch + 1,
                                                   ", got ", job.epochs()));
  }
  if (job.max_steps() != before.max_steps() && job.max_steps() > 0 &&
      static_cast<uint64_t>(job.max_steps()) <= step) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_steps: must be above ", step,
        ", the step that training has reached, or 0 (no limit), got ", job.max_steps()));
  }
  return absl::OkStatus();
}

}  // namespace satrap
