#include "deploy/report/run_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/config/data_streams.h"
#include "common/json/json.h"
#include "common/learning_rate/batch_scaling.h"
#include "deploy/report/run_warnings.h"
#include "deploy/report/warm_start_text.h"
#include "nn_worker/metrics/metric_names.h"
#include "proto/report.pb.h"

namespace satrap {
namespace {

// Both values cover all generations, but not the work that was lost. So their quotient is the speed
// of training. The wall time also includes starts, evaluations and saves.
double SamplesPerSecond(const RunResult& result) {
  return result.train_seconds() > 0 ? static_cast<double>(result.samples()) / result.train_seconds()
                                    : 0;
}

void AddTables(const RunResult& result, ReportFile* file) {
  uint64_t rows = 0;
  uint64_t bytes = 0;
  for (const TableStats& table : result.tables()) {
    ReportFile::Table* const added = file->add_tables();
    added->set_name(table.name());
    added->set_rows(table.rows());
    added->set_bytes(table.bytes());
    rows += table.rows();
    bytes += table.bytes();
  }
  file->set_rows(rows);
  file->set_bytes(bytes);
}

// One line, and another line for each task if the job names several tasks.
std::string LinesOf(const MetricValues& values) {
  std::string lines =
      absl::StrCat(MetricsText(values), " (", Counted(values.samples(), "sample"), ")");
  if (values.tasks_size() < 2) return lines;
  for (const TaskMetricValues& task : values.tasks()) {
    absl::StrAppend(&lines, "\n  ", task.name(), ": ", MetricsText(task.values()), " (",
                    Counted(task.values().samples(), "sample"), ")");
  }
  return lines;
}

// Whether a validation took place is derived from the job, because rank 0's last progress may be
// older than its result. But the job does not show whether a validation at a time interval took
// place; `any` says whether the progress has reported a validation.
Validation ValidationOf(const JobConfig& job, uint64_t steps, bool any) {
  if (!HasValidData(job.data())) return Validation::kNoData;
  const EvaluationConfig& evaluation = job.evaluation();
  const auto every_steps = static_cast<uint64_t>(evaluation.every_steps());
  const bool due = evaluation.at_epoch_end() || (every_steps > 0 && steps >= every_steps) ||
                   (evaluation.every_seconds() > 0 && any);
  return due ? Validation::kRan : Validation::kNotDue;
}

std::string ValidationText(const RunReport& report) {
  if (report.result.has_valid()) return LinesOf(report.result.valid());
  switch (report.validation) {
    case Validation::kNoData:
      return "none: the job has no validation data";
    case Validation::kNotDue:
      return "none: no validation pass was due";
    case Validation::kRan:
      return "AUC is not a number (all labels are equal, or the predictions are not finite)";
  }
  return "";
}

// With fewer steps than this, a model learns little: learning rates and staleness still warm up.
constexpr uint64_t kFewSteps = 200;

// Advice for a user whose file is small; empty if the run had enough steps, or none.
std::string FewStepsText(const RunResult& result) {
  if (result.steps() == 0 || result.steps() >= kFewSteps) return "";
  std::string text = absl::StrCat("only ", Counted(result.steps(), "step"), " for ",
                                  Counted(result.samples(), "sample"));
  // The largest power of two that gives enough steps, but at least 16: with fewer samples a
  // gradient is too noisy.
  uint64_t batch = 16;
  if (result.samples() < kFewSteps * batch) return text + ": more epochs make more steps";
  while (2 * batch * kFewSteps <= result.samples()) batch *= 2;
  return absl::StrCat(text, ": smaller batches make more (--set global_batch_size=", batch,
                      "), or more epochs");
}

// Appends problems that a user must see even when reading only the last lines.
void AppendWarnings(const RunReport& report, std::string* text) {
  const RunResult& result = report.result;
  // Overflowed steps are normal: the loss scale doubles until a step overflows and is skipped, and
  // many steps are skipped until the scale has settled.
  const uint64_t overflowed = std::min(result.overflowed_steps(), result.skipped_steps());
  const uint64_t others = result.skipped_steps() - overflowed;
  if (overflowed > 0) {
    absl::StrAppendFormat(text, "skipped      %s, and the loss scale was halved\n",
                          Counted(overflowed, "step overflowed F16", "steps overflowed F16"));
  }
  if (others > 0) {
    absl::StrAppendFormat(text, "warning      %s: lower the learning rate\n",
                          Counted(others, "step had gradients that were not finite and was skipped",
                                  "steps had gradients that were not finite and were skipped"));
  }
  for (const std::string& warning : report.warnings) {
    absl::StrAppend(text, "warning      ", warning, "\n");
  }
  if (const std::string few = FewStepsText(result);
      report.action == JobConfig::TRAIN && !few.empty()) {
    absl::StrAppend(text, "few steps    ", few, "\n");
  }
  if (report.action == JobConfig::TRAIN && result.steps() == 0) {
    absl::StrAppend(
        text,
        "warning      no step counted: the training data have no good records, or all of "
        "them weigh nothing (weights of 0, a mask, groups without a pair)\n");
  }
  if (result.large_gradient_steps() > 0) {
    absl::StrAppendFormat(
        text,
        "warning      %s, whose squares stay in the optimizers' state: scale the data or clip\n",
        Counted(result.large_gradient_steps(), "step had a gradient beyond 1e15",
                "steps had gradients beyond 1e15"));
  }
  if (result.has_test() && result.test().samples() == 0) {
    absl::StrAppend(text, "warning      the test data has no records\n");
  } else if (result.has_test() && std::isnan(result.test().auc())) {
    absl::StrAppend(text,
                    "warning      the test AUC is not a number: predictions are not finite, or "
                    "all labels are equal\n");
  }
}

// Appends how the run went: its lengths, restarts, rates and gradients.
void AppendCourse(const RunReport& report, std::string* text) {
  const RunResult& result = report.result;
  if (report.action == JobConfig::TRAIN) {
    absl::StrAppendFormat(text, "trained      %s in %s: %s samples/s (%s)%s\n",
                          Counted(result.samples(), "sample"), DurationText(result.train_seconds()),
                          CountText(static_cast<uint64_t>(SamplesPerSecond(result))),
                          Counted(result.steps(), "step"),
                          report.resumes > 0 ? ", in all generations" : "");
  }
  // After a resume only the training time is known for all generations, because cuts record it; the
  // duration of earlier commands is not known.
  if (report.resumes > 0) {
    absl::StrAppendFormat(text, "resumed      %s; %s since the last resume\n",
                          report.resumes == 1 ? "once" : CountText(report.resumes) + " times",
                          DurationText(report.wall_seconds));
  } else {
    absl::StrAppendFormat(text, "whole run    %s\n", DurationText(report.wall_seconds));
  }
  if (report.warm_start.has_value()) absl::StrAppend(text, WarmStartText(*report.warm_start));
  if (!report.batch_scaling.empty()) {
    absl::StrAppend(text, "scaled       ", report.batch_scaling, "\n");
  }
  if (report.learning_rate_factor.has_value()) {
    absl::StrAppendFormat(text, "rates        %g times those of the job, after %s\n",
                          *report.learning_rate_factor, Counted(report.reductions, "reduction"));
  }
  if (const GradientNorms& norms = result.gradient_norms(); norms.steps() > 0) {
    absl::StrAppendFormat(
        text, "gradients    norm %.4g in the last step, %.4g in the mean; %s of %s clipped\n",
        norms.last(), MeanNorm(norms), CountText(norms.clipped_steps()),
        Counted(norms.steps(), "step"));
  }
  if (!report.restarts.empty()) {
    absl::StrAppendFormat(text, "restarts     %d; the last: %s\n", report.restarts.size(),
                          report.restarts.back().cause());
  }
}

void AppendScores(const RunReport& report, std::string* text) {
  const RunResult& result = report.result;
  if (report.action == JobConfig::TRAIN) {
    absl::StrAppend(text, "validation   ", ValidationText(report), "\n");
  }
  if (result.has_test()) absl::StrAppend(text, "test         ", LinesOf(result.test()), "\n");
  if (result.has_tail_calibration()) {
    absl::StrAppendFormat(
        text, "calibration  %.4f, over rank 0's last %s, each before it was trained on\n",
        result.tail_calibration(), Counted(result.tail_calibration_samples(), "sample"));
  }
  if (report.bayes_auc.has_value()) {
    absl::StrAppendFormat(text, "Bayes        AUC %.5f, the most that any model can reach here\n",
                          *report.bayes_auc);
  }
}

void AppendTables(const RunResult& result, std::string* text) {
  uint64_t rows = 0;
  uint64_t bytes = 0;
  for (const TableStats& table : result.tables()) {
    absl::StrAppendFormat(text, "table        %s: %s, %s\n", table.name(),
                          Counted(table.rows(), "row"), BytesText(table.bytes()));
    rows += table.rows();
    bytes += table.bytes();
  }
  if (result.tables_size() > 1) {
    absl::StrAppendFormat(text, "tables       %s, %s\n", Counted(rows, "row"), BytesText(bytes));
  }
}

}  // namespace

RunReport MakeRunReport(const JobConfig& job, const StatusAnswer& status, double wall_seconds) {
  RunReport report;
  report.job_name = job.name();
  report.action = job.action();
  report.result = status.result();
  report.validation = ValidationOf(job, report.result.steps(), status.train().has_last_valid());
  report.wall_seconds = wall_seconds;
  // Bad records of the train stream are counted by the ledger, which survives restarts. Those of
  // evaluations are counted by loaders, and a restart repeats an evaluation that it has
  // interrupted.
  report.quarantined = report.result.bad_records();
  report.empty_lines = report.result.empty_lines();
  for (const RoleStatus& role : status.roles()) {
    report.quarantined += role.loader().evaluation_quarantined();
    report.empty_lines += role.loader().evaluation_empty_lines();
  }
  // If the coordinator died at the very end, the status has no generation number.
  report.generations = std::max<uint64_t>(status.generation(), 1);
  for (const Restart& restart : status.restarts()) {
    if (restart.began() == BEGAN_RESTART) {
      report.restarts.push_back(restart);
    } else if (restart.began() == BEGAN_RESUME) {
      ++report.resumes;
    } else if (restart.began() == BEGAN_SCALED) {
      ++report.scales;
    }
  }
  report.reproducible = job.reproducible();
  report.warnings = WarningsOf(job, report.result);
  // If a changed job has stopped clipping, drop the figures that remain from earlier steps.
  if (job.gradient_clip_norm() == 0) report.result.clear_gradient_norms();
  report.batch_scaling = BatchScalingText(job);
  report.run_dir = job.run_dir();
  return report;
}

std::string ReportJson(const RunReport& report) {
  const RunResult& result = report.result;
  ReportFile file;
  file.set_job(report.job_name);
  file.set_action(JobConfig::Action_Name(report.action));
  file.set_samples(result.samples());
  file.set_steps(result.steps());
  file.set_train_seconds(result.train_seconds());
  file.set_wall_seconds(report.wall_seconds);
  file.set_samples_per_second(SamplesPerSecond(result));
  if (result.has_valid()) CopyMetrics(result.valid(), file.mutable_valid());
  if (result.has_test()) CopyMetrics(result.test(), file.mutable_test());
  if (result.has_tail_calibration()) {
    file.set_tail_calibration(result.tail_calibration());
    file.set_tail_calibration_samples(result.tail_calibration_samples());
  }
  if (report.bayes_auc.has_value()) file.set_bayes_auc(*report.bayes_auc);
  file.set_quarantined(report.quarantined);
  file.set_empty_lines(report.empty_lines);
  if (!report.batch_scaling.empty()) file.set_batch_scaling(report.batch_scaling);
  if (report.learning_rate_factor.has_value()) {
    file.set_learning_rate_factor(*report.learning_rate_factor);
    file.set_reductions(report.reductions);
  }
  if (const GradientNorms& norms = result.gradient_norms(); norms.steps() > 0) {
    ReportFile::Norms* const shown = file.mutable_gradient_norm();
    shown->set_last(norms.last());
    shown->set_mean(MeanNorm(norms));
    shown->set_steps(norms.steps());
    shown->set_clipped_steps(norms.clipped_steps());
  }
  file.set_generations(report.generations);
  for (const Restart& restart : report.restarts) {
    ReportFile::Restarted* const shown = file.add_restarts();
    shown->set_generation(restart.generation());
    shown->set_cause(restart.cause());
    shown->set_from_step(restart.from_step());
  }
  file.set_resumes(report.resumes);
  file.set_scales(report.scales);
  if (report.warm_start.has_value()) CopyWarmStart(*report.warm_start, file.mutable_warm_start());
  file.set_skipped_steps(result.skipped_steps());
  file.set_overflowed_steps(result.overflowed_steps());
  if (result.large_gradient_steps() > 0) {
    file.set_large_gradient_steps(result.large_gradient_steps());
  }
  for (const std::string& warning : report.warnings) file.add_warnings(warning);
  file.set_stopped_early(result.stopped_early());
  file.set_best_step(result.best_step());
  AddTables(result, &file);
  file.set_model_dir(result.model_dir());
  file.set_model_digest(absl::StrFormat("%016x", result.model_digest()));
  file.set_run_dir(report.run_dir);
  return JsonOf(file);
}

std::string ReportText(const RunReport& report) {
  const RunResult& result = report.result;
  std::string text;
  AppendCourse(report, &text);
  AppendScores(report, &text);
  AppendTables(result, &text);
  if (report.quarantined > 0) {
    absl::StrAppendFormat(&text, "quarantined  %s, kept in %s/quarantine\n",
                          Counted(report.quarantined, "bad record"), report.run_dir);
  }
  if (result.stopped_early()) {
    absl::StrAppend(&text, "stopped      early: validation did not improve\n");
  }
  if (!result.model_dir().empty()) {
    absl::StrAppendFormat(&text, "model        %s (step %d)\n", result.model_dir(),
                          result.best_step());
  }
  // If the run is not reproducible, the digest differs each time, so comparing it would be useless.
  if (report.reproducible) {
    absl::StrAppendFormat(&text, "digest       %016x, the same on every run of this job\n",
                          result.model_digest());
  }
  absl::StrAppendFormat(&text, "logs         %s/logs\n", report.run_dir);
  AppendWarnings(report, &text);
  return text;
}

double MeanNorm(const GradientNorms& norms) {
  return norms.sum() / static_cast<double>(norms.steps());
}

std::string BytesText(uint64_t bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
}

std::string DurationText(double seconds) {
  if (seconds < 100) return absl::StrFormat("%.1f s", std::max(seconds, 0.0));
  const auto whole = static_cast<int64_t>(seconds);
  if (whole < 3600) return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  return absl::StrFormat("%d h %02d min", whole / 3600, whole / 60 % 60);
}

std::string UtcText(int64_t unix_ms) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(unix_ms), absl::UTCTimeZone());
}

}  // namespace satrap
