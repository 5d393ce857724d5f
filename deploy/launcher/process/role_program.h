// The path of a role's program, and the names of its files.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_ROLE_PROGRAM_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_ROLE_PROGRAM_H_

#include <string>

#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// The path of a role's program, relative to the folder of programs: "embedding_ps/embedding_ps".
// There is a program of the NN worker for each device.
std::string ProgramOf(Role role, const JobConfig& job);

// For example "embedding_ps_0", which is part of the names of logs and sockets.
std::string FileNameOf(Role role, int index);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_ROLE_PROGRAM_H_
