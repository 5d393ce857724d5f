#include "deploy/pod/pod_flags.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/file/file_system.h"
#include "common/role/role_flags.h"
#include "deploy/launcher/process/role_program.h"

namespace satrap {
namespace {

constexpr Role kRoles[] = {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER};

bool Serves(Role role) { return role != DATA_LOADER && role != NN_WORKER; }

}  // namespace

std::vector<Flag> PodFlags::Table() {
  return {
      TextFlag("role", "ROLE",
               "coordinator, embedding_ps, embedding_worker, data_loader or nn_worker", &role),
      Required(TextFlag("config", "FILE",
                        "the job; a coordinator that begins the run uses all of it, other "
                        "processes use only run_dir and device",
                        &config)),
      NumberFlag("role_index", "I", "which process of the role this is (default: 0)", &role_index,
                 0),
      TextFlag("holder", "UID",
               "the UID of this pod, which distinguishes processes of one index in two pods",
               &holder),
      TextFlag("ip", "IP", "the address at which other pods reach this one, IPv4 or IPv6", &ip),
      NumberFlag("port", "PORT", "where the coordinator, an embedding PS or worker listens", &port,
                 1, 65535),
      NumberFlag(
          "metrics_port", "PORT",
          "where the role serves its metrics and, once it is ready, a page /ready (default: a "
          "port that no other pod reaches)",
          &metrics_port, 1, 65535),
      TextFlag("coordinator", "HOST:PORT", "the coordinator's address, for all other roles",
               &coordinator),
      NumberFlag("submission", "N",
                 "which submission of the run the coordinator belongs to (default: 1); each resume "
                 "adds one",
                 &submission, 1),
      TextFlag("from", "CUT",
               "the cut that the coordinator's submission begins from (default: the newest)",
               &from),
      Required(TextFlag("scratch", "DIR",
                        "a folder of this container that may be written, for a role's ending",
                        &scratch)),
      TextFlag("termination_log", "FILE",
               "the file whose content Kubernetes shows as the container's message",
               &termination_log),
  };
}

absl::StatusOr<Role> RoleNamed(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Role role : kRoles) {
    if (RoleName(role) == name) return role;
    names.push_back(RoleName(role));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no role '", name, "'; the roles are ", absl::StrJoin(names, ", ")));
}

absl::Status CheckPodFlags(const PodFlags& flags, Role role) {
  std::vector<std::string> missing;
  if (Serves(role) && flags.port == 0) missing.emplace_back("--port");
  if (role != COORDINATOR && flags.coordinator.empty()) missing.emplace_back("--coordinator");
  const bool is_reached = (role != COORDINATOR && role != DATA_LOADER) || flags.metrics_port != 0;
  if (is_reached && flags.ip.empty()) missing.emplace_back("--ip");
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(RoleName(role), " needs ", absl::StrJoin(missing, " and ")));
}

absl::Status CheckScratch(const std::string& folder) {
  const std::string path = folder + "/write_check";
  absl::Status status;
  {
    const auto file = DiskFileSystem()->Create(path);
    status = file.status();
    if (status.ok()) status = (*file)->Append("written\n");
  }
  if (status.ok()) status = DiskFileSystem()->Remove(path);
  if (status.ok()) return status;
  return absl::FailedPreconditionError(
      absl::StrCat("--scratch ", folder, " cannot be used: ", status.message(),
                   ". Name a folder of this container that may be written"));
}

std::string AddressOf(absl::string_view ip, int port) {
  const bool is_v6 = absl::StrContains(ip, ':') && !absl::StartsWith(ip, "[");
  return is_v6 ? absl::StrCat("[", ip, "]:", port) : absl::StrCat(ip, ":", port);
}

std::vector<std::string> RoleCommand(const PodFlags& flags, Role role, const JobConfig& job,
                                     const std::string& programs_dir, const std::string& build,
                                     const std::string& ending_path) {
  std::vector<std::string> command = {absl::StrCat(programs_dir, "/", ProgramOf(role, job)),
                                      absl::StrCat("--ending=", ending_path)};
  if (Serves(role)) command.push_back(absl::StrCat("--listen=", AddressOf("::", flags.port)));
  if (flags.metrics_port != 0) {
    command.push_back(absl::StrCat("--metrics=", AddressOf(flags.ip, flags.metrics_port)));
  }
  if (!flags.holder.empty()) {
    command.push_back(absl::StrCat("--holder=", flags.holder));
    if (!build.empty()) command.push_back(absl::StrCat("--build=", build));
  }
  if (role == COORDINATOR) {
    command.push_back(absl::StrCat("--config=", flags.config));
    command.push_back(absl::StrCat("--submission=", flags.submission));
    if (!flags.from.empty()) command.push_back(absl::StrCat("--from=", flags.from));
    return command;
  }
  command.push_back(absl::StrCat("--role_index=", flags.role_index));
  command.push_back(absl::StrCat("--coordinator=", flags.coordinator));
  if (role == NN_WORKER) command.push_back(absl::StrCat("--advertise=", flags.ip));
  if (Serves(role)) {
    command.push_back(absl::StrCat("--advertise=", AddressOf(flags.ip, flags.port)));
  }
  return command;
}

}  // namespace satrap
