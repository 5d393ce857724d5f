#include "deploy/cli/show/run_state.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/entries/old_phrases.h"
#include "common/file/file_system.h"
#include "common/role/ending.h"
#include "common/role/role_flags.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/launcher/process/run_progress.h"
#include "deploy/report/progress_line.h"
#include "deploy/report/run_report.h"
#include "deploy/report/run_warnings.h"
#include "deploy/submit/pod_resources.h"
#include "nn_worker/metrics/metric_names.h"

namespace satrap {
namespace {

std::string RoleText(const RoleStatus& role, const JobConfig* of_pods) {
  const Member& member = role.member();
  std::string text = absl::StrFormat("  %-20s ", MemberName(member.role(), member.index()));
  if (!member.has_pid()) return text + "not there yet\n";
  if (!role.ready()) text += "not ready yet, ";
  absl::StrAppendFormat(&text, "process %d, heard %.1f s ago", member.pid(),
                        role.seconds_since_heartbeat());
  if (role.has_memory_bytes()) {
    absl::StrAppend(&text, ", memory ", BytesText(role.memory_bytes()));
    const std::string limit =
        of_pods == nullptr ? "" : PodOf(member.role(), of_pods->kubernetes()).memory();
    if (!limit.empty()) absl::StrAppend(&text, " of ", limit);
  }
  if (!member.metrics_address().empty()) {
    absl::StrAppend(&text, ", metrics at http://", member.metrics_address(), "/metrics");
  }
  if (role.has_loader()) {
    absl::StrAppend(&text, ", ", Counted(role.loader().records(), "record"), ", ",
                    CountText(role.loader().quarantined()), " quarantined");
  }
  return text + "\n";
}

std::string WaitingText(const WaitingProcess& waiting) {
  const Member& member = waiting.member();
  return absl::StrFormat("  %-20s has waited %.0f s for a place, pod %s: %s\n",
                         MemberName(member.role(), static_cast<int>(member.index())),
                         waiting.seconds(), waiting.holder(), waiting.why());
}

std::string LastCutText(const std::string& cut, uint64_t step, uint64_t bytes, double age_seconds,
                        double seconds) {
  return absl::StrCat("the last is ", cut, " at step ", CountText(step), ", ", BytesText(bytes),
                      ", ", DurationText(age_seconds), " ago, written in ", DurationText(seconds));
}

std::string CutsText(const StatusAnswer& status) {
  const CutStatus& cut = status.last_cut();
  std::string text = "cuts: ";
  absl::StrAppend(&text, cut.has_cut() ? LastCutText(cut.cut(), cut.step(), cut.bytes(),
                                                     cut.age_seconds(), cut.seconds())
                                       : "none yet");
  if (status.cuts().writing()) absl::StrAppend(&text, "; one is being written");
  if (status.cuts().abandoned() > 0) {
    absl::StrAppend(&text, "; ", CountText(status.cuts().abandoned()),
                    " abandoned, the last because ", status.cuts().last_abandoned_cause());
  }
  return text + "\n";
}

std::string CutsText(const RunProgress& progress, int64_t now_unix_ms) {
  if (!progress.cut.has_value()) return "cuts: none\n";
  const CutEntry& cut = *progress.cut;
  const int64_t age_ms = now_unix_ms - static_cast<int64_t>(progress.cut_unix_ms);
  return absl::StrCat("cuts: ",
                      LastCutText(cut.cut(), cut.step(), cut.bytes(),
                                  static_cast<double>(age_ms) * 1e-3, cut.seconds()),
                      "\n");
}

// Empty for a run that trains from files.
std::string TopicsText(const StatusAnswer& status) {
  if (!status.has_topics()) return "";
  const TopicsStatus& topics = status.topics();
  std::string text = absl::StrCat(
      "topics: ", Counted(static_cast<uint64_t>(topics.partitions_size()), "partition"));
  if (topics.has_lag_messages()) {
    absl::StrAppend(&text, ", lag ", Counted(topics.lag_messages(), "message"));
    if (topics.has_lag_seconds()) absl::StrAppendFormat(&text, " (%.1f s)", topics.lag_seconds());
  }
  if (topics.has_watermark_ms()) {
    absl::StrAppend(&text, ", watermark ", UtcText(topics.watermark_ms()));
  }
  absl::StrAppend(&text, "; in this generation ", Counted(topics.late_records(), "late record"),
                  ", ", Counted(topics.dead_letters(), "dead letter"), ", ",
                  Counted(topics.lost_messages(), "lost message"), "\n");
  return text;
}

// Lists why generations began. Failures, which need attention, are listed separately from what
// somebody asked for.
template <typename Restarts>
std::string RestartsText(const Restarts& restarts) {
  std::string failures;
  std::string wishes;
  int failed = 0;
  for (const Restart& restart : restarts) {
    const bool failure = restart.began() == BEGAN_RESTART;
    failed += failure ? 1 : 0;
    absl::StrAppend(failure ? &failures : &wishes, "  generation ", restart.generation(),
                    " from step ", CountText(restart.from_step()), ": ", restart.cause(), "\n");
  }
  std::string text = absl::StrCat("restarts after failures: ", failed, "\n", failures);
  if (!wishes.empty()) absl::StrAppend(&text, "resumed, scaled or moved:\n", wishes);
  return text;
}

std::string DroppedText(const RunProgress& progress) {
  std::string text;
  for (const DroppedEntry& dropped : progress.dropped) {
    absl::StrAppend(&text, text.empty() ? "changes of the job that were dropped:\n" : "",
                    "  generation ", dropped.generation(), ": ", dropped.change(), ": ",
                    dropped.ended().text(), "\n");
  }
  return text;
}

// The result according to the log, for a run without report.txt. The file may have been removed,
// its writing may have failed, or an older build may have ended the run and written only
// report.json.
std::string ResultText(const RunResult& result) {
  std::string text = absl::StrCat("trained ", Counted(result.samples(), "sample"), " in ",
                                  Counted(result.steps(), "step"));
  if (result.has_test()) absl::StrAppend(&text, "; test ", MetricsText(result.test()));
  if (!result.model_dir().empty()) absl::StrAppend(&text, "; the model is ", result.model_dir());
  return text + "\n";
}

// What to do about a run that has failed. If an older build ran it, only the text `failure` is
// there, and the advice is derived from it.
Ending::Advice AdviceOf(const std::string& run_dir, const RunProgress& progress,
                        const std::string& failure) {
  if (failure.empty() && progress.end.has_value()) return progress.end->ending().advice();
  const absl::optional<Ending> ending = ReadEnding(run_dir + kEndingOfRun);
  return ending.has_value() ? ending->advice() : AdviceOfOldFailure(failure);
}

bool IsFailure(const RunProgress& progress) {
  return progress.end.has_value() && progress.end->state() == FAILED;
}

// Whether `failure`, the text of failure.txt, belongs to the run's last end. It may belong to an
// earlier submission.
bool HasFailure(const RunProgress& progress, const absl::StatusOr<std::string>& failure) {
  return failure.ok() && (!progress.end.has_value() || IsFailure(progress));
}

// Describes the end of a run that has not finished. Prefers failure.txt, which a launcher writes,
// because it is more detailed than the log.
std::string EndText(const std::string& run_dir, const RunProgress& progress,
                    const absl::StatusOr<std::string>& failure) {
  const std::string run = absl::StrCat("run ", run_dir);
  if (HasFailure(progress, failure)) return absl::StrCat(run, " has failed: ", *failure);
  if (progress.end.has_value()) {
    return absl::StrCat(run, IsFailure(progress) ? " has failed: " : " was stopped: ",
                        progress.end->ending().text(), "\n");
  }
  return absl::StrCat(
      run,
      " is not running: it was stopped, interrupted or killed before its end, or it "
      "failed and failure.txt could not be written\n");
}

}  // namespace

std::string RunningRunText(const std::string& run_dir, const StatusAnswer& status,
                           const JobConfig* of_pods) {
  std::string text =
      absl::StrCat("job '", status.job_name(), "' in ", run_dir, ", generation ",
                   status.generation(), ", for ", DurationText(status.seconds()), ": ",
                   RunState_Name(status.state()), "\n", ProgressText(status), "\n");
  for (const std::string& warning : WarningsOf(status.train())) {
    absl::StrAppend(&text, "warning: ", warning, "\n");
  }
  absl::StrAppend(&text, TopicsText(status), CutsText(status), RestartsText(status.restarts()));
  if (status.ending().has_text()) {
    absl::StrAppend(&text,
                    status.writes_end() ? "the run is ending, but its end could not be written to "
                                          "its log yet, and writing is retried: "
                                        : "",
                    status.ending().text(), "\n");
  }
  for (const RoleStatus& role : status.roles()) absl::StrAppend(&text, RoleText(role, of_pods));
  for (const WaitingProcess& waiting : status.waiting()) {
    absl::StrAppend(&text, WaitingText(waiting));
  }
  return text;
}

absl::StatusOr<std::string> EndedRunText(const std::string& run_dir, int64_t now_unix_ms) {
  const auto report = ReadFile(run_dir + "/report.txt", DiskFileSystem());
  ASSIGN_OR_RETURN(const RunProgress progress, ReadRunProgress(run_dir));
  const std::string logs = absl::StrCat("its logs are in ", run_dir, "/logs\n");
  // `evaluate` and `predict` take no cuts, but have a log and a report.
  const bool is_training = progress.job.has_value() && progress.job->action() == JobConfig::TRAIN;
  const std::string history =
      is_training ? absl::StrCat(CutsText(progress, now_unix_ms), RestartsText(progress.restarts),
                                 DroppedText(progress))
                  : "";
  if (report.ok() || progress.result.has_value()) {
    return absl::StrCat("run ", run_dir, " has finished:\n",
                        report.ok() ? *report : ResultText(*progress.result), history, logs);
  }
  const auto failure = ReadFile(run_dir + "/failure.txt", DiskFileSystem());
  std::string text = EndText(run_dir, progress, failure);
  const bool has_failed = HasFailure(progress, failure) || IsFailure(progress);
  absl::StrAppend(&text, history);
  if (has_failed &&
      AdviceOf(run_dir, progress, failure.value_or("")) == Ending::RESUME_FROM_ANOTHER_CUT) {
    absl::StrAppend(&text, "`satrap checkpoint list ", run_dir,
                    "` lists the cuts to continue from\n");
  } else if (is_training) {
    absl::StrAppend(&text, ResumeText(run_dir, progress, run_dir), "\n");
  }
  if (progress.generation == 0) {
    absl::StrAppend(&text, "it never began; start it again with `satrap train`\n");
  }
  return text + logs;
}

}  // namespace satrap
