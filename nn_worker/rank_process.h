// The process of an NN worker: one rank of the dense network. It serves no calls.

#ifndef SATRAP_NN_WORKER_RANK_PROCESS_H_
#define SATRAP_NN_WORKER_RANK_PROCESS_H_

#include "nn_worker/device_program.h"

namespace satrap {

// The main function of a program: takes the command line (card_flag.h, common/role/role_flags.h),
// runs the rank until its run or generation ends, and returns the exit code. `devices` is null for
// a program without kernels, which refuses jobs whose nn_worker.device is not CPU.
int RunRankProcess(int argc, char** argv, const DeviceProgram* devices);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_PROCESS_H_
