// satrap_pod ROLE: process 1 of a role's container (supervisor.h). It needs no gRPC and little
// memory, so it survives where a role cannot run.

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/job_config.h"
#include "common/file/file_history.h"
#include "deploy/launcher/process/role_program.h"
#include "deploy/pod/build_id.h"
#include "deploy/pod/pod_flags.h"
#include "deploy/pod/role_log.h"
#include "deploy/pod/supervisor.h"

namespace satrap {
namespace {

// The folder DIR, if this program is DIR/deploy/satrap_pod.
absl::StatusOr<std::string> ProgramsDir() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError(absl::StrCat("/proc/self/exe: ", error.message()));
  return self.parent_path().parent_path().string();
}

absl::StatusOr<int> Run(const PodFlags& flags) {
  ASSIGN_OR_RETURN(const Role role, RoleNamed(flags.role));
  RETURN_IF_ERROR(CheckPodFlags(flags, role));
  ASSIGN_OR_RETURN(const JobConfig job, ReadResolvedJob(flags.config));
  if (job.run_dir().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(flags.config, " has no run_dir"));
  }
  ASSIGN_OR_RETURN(const std::string programs_dir, ProgramsDir());
  RETURN_IF_ERROR(CheckScratch(flags.scratch));
  BlockSupervisorSignals();
  const std::string file_name = FileNameOf(role, flags.role_index);
  SupervisorOptions options;
  options.role = role;
  options.index = flags.role_index;
  options.ending_path = absl::StrCat(flags.scratch, "/", file_name, ".ending");
  options.command =
      RoleCommand(flags, role, job, programs_dir, BuildOf(programs_dir), options.ending_path);
  options.termination_log = flags.termination_log;
  options.run_dir = job.run_dir();
  options.submission = static_cast<uint64_t>(flags.submission);
  options.max_restarts = job.max_restarts();
  ASSIGN_OR_RETURN(const std::unique_ptr<RoleLog> log,
                   RoleLog::Open(absl::StrCat(job.run_dir(), "/logs/", file_name, ".log"),
                                 FileLimits(), STDOUT_FILENO));
  return Supervise(options, log.get());
}

int Main(int argc, char** argv) {
  PodFlags flags;
  const absl::optional<int> code =
      TakeProgramFlags(argc, argv,
                       "satrap_pod ROLE --config=FILE --scratch=DIR ...: starts a role of a run, "
                       "and starts it again when it has ended",
                       flags.Table(), /*in_order=*/1);
  if (code.has_value()) return *code;
  const absl::StatusOr<int> ran = Run(flags);
  if (ran.ok()) return *ran;
  fprintf(stderr, "error: satrap_pod: %s\n", std::string(ran.status().message()).c_str());
  return 1;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) { return satrap::Main(argc, argv); }
