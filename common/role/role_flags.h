// The command lines of the roles and of the coordinator, and the names of the roles.
//
//   embedding_ps --role_index=0 --coordinator=unix:/.../coordinator
//                --listen=unix:/.../embedding_ps_0 --advertise=unix:/.../embedding_ps_0
//   coordinator --config=run/job.textproto --listen=unix:/.../coordinator
//
// Roles get everything else from the coordinator. Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_ROLE_ROLE_FLAGS_H_
#define SATRAP_COMMON_ROLE_ROLE_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/flags/flags.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct RoleFlags {
  int role_index = 0;       // 0 .. replicas - 1
  std::string coordinator;  // the coordinator's address, as gRPC takes it; required
  std::string listen;       // where this role serves; empty for roles that serve nothing
  // Where peers reach this role. Default: `listen`. The NN worker serves nothing; there it is the
  // host name or IP address that collectives bind to.
  std::string advertise;
  std::string ending;  // the file in which this process leaves its Ending (ending.h); empty: none
  int alive = -1;      // the pipe into which it gives signs of life (life_sign.h); -1: none
  std::vector<Flag> Table();
};

// `args` does not include the program's name. `own` are the flags that the role has besides these.
// Errors as ParseOnlyFlags (common/flags/flags.h).
absl::StatusOr<RoleFlags> ParseRoleFlags(const std::vector<std::string>& args,
                                         const std::vector<Flag>& own = {});

struct CoordinatorFlags {
  // The resolved job's file; required. A resumed run takes its job from its log, and only run_dir
  // from this file.
  std::string config;
  std::string listen;  // required
  // The run is resumed: --config is the job of the next generation, which begins from the cut
  // `from` (a name in RUN/checkpoints or a path to one; empty: the newest).
  bool next_job = false;
  std::string from;  // only with next_job
  // How the generation before ended: --ended is the message without its text, as protobuf text on
  // one line, and --cause is the text. Both may be missing.
  Ending ended;
  std::string cause;
  std::string ending;  // as in RoleFlags
  int alive = -1;      // as in RoleFlags
  int role_index = 0;  // not used: there is one coordinator
  std::vector<Flag> Table();
};

// Errors as ParseRoleFlags.
absl::StatusOr<CoordinatorFlags> ParseCoordinatorFlags(const std::vector<std::string>& args);

// "data_loader", "embedding_worker", "embedding_ps", "nn_worker", "coordinator".
absl::string_view RoleName(Role role);

// "nn_worker 1", but "coordinator", of which there is only one.
std::string MemberName(Role role, int index);

// How many processes of `role` the job has, and how many threads the pool of each one has.
int ReplicasOf(Role role, const JobConfig& job);
int ThreadsOf(Role role, const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_ROLE_FLAGS_H_
