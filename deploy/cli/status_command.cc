// status: asks the coordinator of a run, or finds in the run's folder how it ended.

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/config/text_format.h"
#include "common/role/coordinator_client.h"
#include "common/role/role_flags.h"
#include "common/rpc/grpc_channel.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/launcher/run_folder.h"
#include "deploy/report/progress_line.h"
#include "deploy/report/run_report.h"

namespace satrap {
namespace {

constexpr int64_t kTimeoutMs = 2000;

absl::StatusOr<StatusAnswer> AskCoordinator(const std::string& run_dir) {
  // Use the link's target: a path through the run folder may be too long for a socket.
  std::error_code error;
  const auto sockets = std::filesystem::read_symlink(run_dir + "/sockets", error);
  if (error) return absl::UnavailableError("the run is over");
  ASSIGN_OR_RETURN(
      const auto channel,
      rpc::GrpcChannel::Create(absl::StrCat("unix:", sockets.string(), "/coordinator_0"),
                               rpc::EndpointOptions()));
  return CoordinatorClient(channel.get(), Envelope(), kTimeoutMs).Status();
}

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

}  // namespace

int StatusCommand(const CommandLine& line) {
  const auto run_dir = FindRun(line.arguments.empty() ? "" : line.arguments[0], kRunsDir);
  if (!run_dir.ok()) return PrintError(run_dir.status());
  const absl::StatusOr<StatusAnswer> status = AskCoordinator(*run_dir);
  if (status.ok()) {
    printf("job '%s' in %s, for %s: %s\n%s\n", status->job_name().c_str(), run_dir->c_str(),
           DurationText(status->seconds()).c_str(), RunState_Name(status->state()).c_str(),
           ProgressText(*status).c_str());
    if (!status->stop_reason().empty()) printf("%s\n", status->stop_reason().c_str());
    for (const RoleStatus& role : status->roles()) printf("%s", RoleText(role).c_str());
    return 0;
  }
  const auto report = ReadWholeFile(*run_dir + "/report.json");
  if (report.ok()) {
    printf("run %s has finished:\n%s", run_dir->c_str(), report->c_str());
    return 0;
  }
  const auto failure = ReadWholeFile(*run_dir + "/failure.txt");
  if (failure.ok()) {
    printf("run %s has failed: %s", run_dir->c_str(), failure->c_str());
  } else {
    printf("run %s has ended without a report: it was interrupted or killed\n", run_dir->c_str());
  }
  printf("its logs are in %s/logs\n", run_dir->c_str());
  return 0;
}

}  // namespace satrap
