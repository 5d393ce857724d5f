// The command line of satrap_pod, and the command lines of the roles that it starts.
//
//   satrap_pod embedding_ps --config=/etc/satrap/job.textproto --role_index=0 --ip=10.0.0.7
//              --port=7000 --coordinator=demo-coordinator:7000
//
// All settings are flags, whose values Kubernetes fills in. Thread-safe: functions of their
// arguments.

#ifndef SATRAP_DEPLOY_POD_POD_FLAGS_H_
#define SATRAP_DEPLOY_POD_POD_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/flags/flags.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct PodFlags {
  std::string role;  // the role's name
  std::string config;
  int role_index = 0;
  std::string holder;  // the UID of this pod; empty: not known, and twins are not told apart
  std::string ip;
  int port = 0;          // 0: not given
  int metrics_port = 0;  // 0: not given
  std::string coordinator;
  // Only for the coordinator: the submission of the run that it belongs to, 1 for the first; and
  // the cut that this submission begins from, if that is not the newest.
  int submission = 1;
  std::string from;
  std::string scratch;
  std::string termination_log;
  std::vector<Flag> Table();
};

// The role with that name, which may be COORDINATOR. INVALID_ARGUMENT lists the names of all roles.
absl::StatusOr<Role> RoleNamed(absl::string_view name);

// INVALID_ARGUMENT if a flag is missing that `role` needs.
absl::Status CheckPodFlags(const PodFlags& flags, Role role);

// Checks that files can be written in the folder --scratch. A role writes its ending there, which
// tells its supervisor the cause and the pause before the next start. The error names the folder
// and says what to do.
absl::Status CheckScratch(const std::string& folder);

// "10.0.0.7:7000", "[fd00::7]:7000".
std::string AddressOf(absl::string_view ip, int port);

// The command line of the role. It begins with the program, which is in `programs_dir` and depends
// on the job's device. Servers listen on [::], which also serves IPv4. `build` is BuildOf
// (build_id.h) of `programs_dir`. REQUIRES: CheckPodFlags
std::vector<std::string> RoleCommand(const PodFlags& flags, Role role, const JobConfig& job,
                                     const std::string& programs_dir, const std::string& build,
                                     const std::string& ending_path);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_POD_POD_FLAGS_H_
