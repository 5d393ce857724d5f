// status: asks the coordinator of a run, or finds in the run's folder how it ended.

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/config/text_format.h"
#include "common/role/role_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_connection.h"
#include "deploy/cli/run_job.h"
#include "deploy/launcher/run_folder.h"
#include "deploy/launcher/run_progress.h"
#include "deploy/report/progress_line.h"
#include "deploy/report/run_report.h"

namespace satrap {
namespace {

std::string RoleText(const RoleStatus& role) {
  const Member& member = role.member();
  std::string text = absl::StrFormat("  %-20s ", MemberName(member.role(), member.index()));
  if (!member.has_pid()) return text + "not there yet\n";
  if (!role.ready()) text += "not ready yet, ";
  absl::StrAppendFormat(&text, "process %d, heard %.1f s ago", member.pid(),
                        role.seconds_since_heartbeat());
  if (!member.metrics_address().empty()) {
    absl::StrAppend(&text, ", metrics at http://", member.metrics_address(), "/metrics");
  }
  if (role.has_loader()) {
    absl::StrAppend(&text, ", ", CountText(role.loader().records()), " records, ",
                    CountText(role.loader().quarantined()), " quarantined");
  }
  return text + "\n";
}

std::string CutText(const StatusAnswer& status) {
  const CutStatus& cut = status.last_cut();
  std::string text = "cuts: ";
  if (cut.has_cut()) {
    absl::StrAppend(&text, "the last is ", cut.cut(), " at step ", CountText(cut.step()), ", ",
                    BytesText(cut.bytes()), ", ", DurationText(cut.age_seconds()),
                    " ago, written in ", DurationText(cut.seconds()));
  } else {
    absl::StrAppend(&text, "none yet");
  }
  if (status.cuts().writing()) absl::StrAppend(&text, "; one is being written");
  if (status.cuts().abandoned() > 0) {
    absl::StrAppend(&text, "; ", CountText(status.cuts().abandoned()),
                    " abandoned, the last because ", status.cuts().last_abandoned_cause());
  }
  return text + "\n";
}

std::string RestartsText(const StatusAnswer& status) {
  std::string text;
  for (const Restart& restart : status.restarts()) {
    absl::StrAppend(&text, "  generation ", restart.generation(), " from step ",
                    CountText(restart.from_step()), ": ", restart.cause(), "\n");
  }
  return text;
}

absl::StatusOr<StatusAnswer> AskCoordinator(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const auto connection, RunConnection::Open(run_dir));
  return connection->Status();
}

// How a run that does not run can go on; empty if it cannot.
std::string ResumeText(const std::string& run_dir) {
  const auto progress = ReadRunProgress(run_dir);
  if (!progress.ok()) return absl::StrCat(progress.status().message(), "\n");
  if (!progress->job.has_value() || progress->job->action() != JobConfig::TRAIN) return "";
  return absl::StrCat("`satrap resume ", run_dir, "` goes on from ", BeginningText(*progress),
                      "\n");
}

}  // namespace

int StatusCommand(const CommandLine& line) {
  const auto run_dir = FindRun(line.arguments.empty() ? "" : line.arguments[0], kRunsDir);
  if (!run_dir.ok()) return PrintError(run_dir.status());
  const absl::StatusOr<StatusAnswer> status = AskCoordinator(*run_dir);
  if (status.ok()) {
    printf("job '%s' in %s, generation %llu, for %s: %s\n%s\n", status->job_name().c_str(),
           run_dir->c_str(), static_cast<unsigned long long>(status->generation()),
           DurationText(status->seconds()).c_str(), RunState_Name(status->state()).c_str(),
           ProgressText(*status).c_str());
    printf("%s%s", CutText(*status).c_str(), RestartsText(*status).c_str());
    if (!status->stop_reason().empty()) printf("%s\n", status->stop_reason().c_str());
    for (const RoleStatus& role : status->roles()) printf("%s", RoleText(role).c_str());
    return 0;
  }
  const auto report = ReadWholeFile(*run_dir + "/report.json");
  if (report.ok()) {
    printf("run %s has finished:\n%s", run_dir->c_str(), report->c_str());
    return 0;
  }
  const std::string runner = RunnerOf(*run_dir);
  if (!runner.empty()) {
    printf("run %s is between two generations, or its coordinator does not answer (%s runs it)\n",
           run_dir->c_str(), runner.c_str());
    return 0;
  }
  const auto failure = ReadWholeFile(*run_dir + "/failure.txt");
  if (failure.ok()) {
    printf("run %s has failed: %s", run_dir->c_str(), failure->c_str());
  } else {
    printf("run %s has ended without a report: it was stopped, interrupted or killed\n",
           run_dir->c_str());
  }
  printf("%s", ResumeText(*run_dir).c_str());
  printf("its logs are in %s/logs\n", run_dir->c_str());
  return 0;
}

}  // namespace satrap
