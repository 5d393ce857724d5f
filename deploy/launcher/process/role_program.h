// The program of a role, and the names of its files.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_ROLE_PROGRAM_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_ROLE_PROGRAM_H_

#include <string>

#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// The path of a role's program, relative to the folder of programs: "embedding_ps/embedding_ps".
// The NN worker has one for each device.
std::string ProgramOf(Role role, const JobConfig& job);

// "embedding_ps_0", for names of logs and sockets.
std::string FileNameOf(Role role, int index);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_ROLE_PROGRAM_H_
