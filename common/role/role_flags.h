// The command line of every role, and the names of the roles.
//
//   embedding_ps --config=run/job.textproto --role_index=0 --coordinator=unix:/.../coordinator
//                --listen=unix:/.../embedding_ps_0 --advertise=unix:/.../embedding_ps_0
//
// Everything else is in the job file. Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_ROLE_ROLE_FLAGS_H_
#define SATRAP_COMMON_ROLE_ROLE_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// Phrases in the last error of a role's log. The launcher knows by them that the role ended because
// of a failure elsewhere, and looks for the cause there.
inline constexpr char kRunHasFailed[] = "the run has failed: ";
inline constexpr char kCoordinatorIsSilent[] = " has not answered for ";

struct RoleFlags {
  std::string config;       // the resolved job's file; required
  int role_index = 0;       // 0 .. replicas - 1
  std::string coordinator;  // an address that gRPC takes; required, except for the coordinator
  std::string listen;       // where this role serves; empty for roles that serve nothing
  // Where peers reach this role. Default: `listen`. For the NN worker, which serves nothing, the
  // host name or IP address that collectives bind to.
  std::string advertise;
};

// Takes `--name=value` and `--name value`. INVALID_ARGUMENT names a flag that is unknown, missing,
// given twice or without a value. `args` does not include the program's name.
absl::StatusOr<RoleFlags> ParseRoleFlags(Role role, const std::vector<std::string>& args);

// "data_loader", "embedding_worker", "embedding_ps", "nn_worker", "coordinator".
absl::string_view RoleName(Role role);

// "nn_worker 1"; "coordinator", of which there is one.
std::string MemberName(Role role, int index);

// How many processes of `role` the job has, and how many threads the pool of each has.
int ReplicasOf(Role role, const JobConfig& job);
int ThreadsOf(Role role, const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_ROLE_FLAGS_H_
