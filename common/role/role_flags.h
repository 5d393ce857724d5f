// The command lines of the roles and of the coordinator, and the names of the roles.
//
//   embedding_ps --role_index=0 --coordinator=unix:/.../coordinator
//                --listen=unix:/.../embedding_ps_0 --advertise=unix:/.../embedding_ps_0
//   coordinator --config=run/job.textproto --listen=unix:/.../coordinator
//
// Roles get everything else from the coordinator. Thread-safe: the functions depend only on their
// arguments.

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
  std::string listen;       // the address at which this role serves; empty if it serves nothing
  // The address at which peers reach this role. Default: `listen`. The NN worker serves nothing;
  // for it this is the host name or IP address that collectives bind to.
  std::string advertise;
  std::string ending;  // the file in which this process leaves its Ending (ending.h); empty: none
  int alive = -1;      // the pipe into which it gives signs of life (life_sign.h); -1: none
  // IP:PORT at which the role serves its metrics; empty: a free port that only this machine
  // reaches.
  std::string metrics;
  // The pod of this process, and the build of the pod's programs (RegisterRequest). Both are empty
  // if a launcher has started the process.
  std::string holder;
  std::string build;
  // How the previous process in this pod ended (RegisterRequest.before). The flags are --ended and
  // --cause, as in CoordinatorFlags.
  Ending before;
  std::string cause;
  std::vector<Flag> Table();
};

// `args` does not include the program's name. `own` are flags that only this role has. Errors are
// those of ParseOnlyFlags (common/flags/flags.h).
absl::StatusOr<RoleFlags> ParseRoleFlags(const std::vector<std::string>& args,
                                         const std::vector<Flag>& own = {});

struct CoordinatorFlags {
  // The file of the resolved job; required. A run that has a log takes its job from the log, and
  // only run_dir from this file, unless `next_job` is set.
  std::string config;
  std::string listen;  // required
  // Whether the user resumes the run. --config is then the job of the next generation, and that
  // generation begins from the cut `from`: the name of a cut or link in RUN/checkpoints, or a path
  // to one. If `from` is empty, it begins from the newest cut.
  bool next_job = false;
  std::string from;  // only with next_job or a submission
  // The number of the submission that this coordinator belongs to
  // (common/checkpoint/entries/run_end.h); 0 if a launcher has started it. In pods, `next_job` and
  // `from` are used only if the log does not have this submission yet.
  int submission = 0;
  // How the previous generation ended. --ended is this Ending without its text, as protobuf text on
  // one line, and --cause is its text. Both may be missing.
  Ending ended;
  std::string cause;
  std::string ending;   // as in RoleFlags
  int alive = -1;       // as in RoleFlags
  std::string metrics;  // where it serves its metrics, IP:PORT; empty: nowhere
  std::string holder;   // as in RoleFlags
  std::string build;    // likewise
  int role_index = 0;   // not used: there is one coordinator
  std::vector<Flag> Table();
};

// Errors are those of ParseRoleFlags.
absl::StatusOr<CoordinatorFlags> ParseCoordinatorFlags(const std::vector<std::string>& args);

// "data_loader", "embedding_worker", "embedding_ps", "nn_worker", "coordinator".
absl::string_view RoleName(Role role);

// For example "nn_worker 1". "coordinator" has no number, because there is only one.
std::string MemberName(Role role, int index);

// The number of processes of `role` in the job, and the number of threads in the pool of each
// process.
int ReplicasOf(Role role, const JobConfig& job);
int ThreadsOf(Role role, const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_ROLE_FLAGS_H_
