// Makes the backend for the NN workers of a job whose device is the CPU.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_JOB_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_JOB_BACKEND_H_

#include <memory>

#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/backend.h"
#include "proto/job.pb.h"

namespace satrap {

// Makes a CpuBackend or a CpuHalfBackend, depending on the precision. `pool` must outlive it.
// REQUIRES: the config of a validated job with device CPU
std::unique_ptr<Backend> NewCpuJobBackend(const NnWorkerConfig& config, ForkJoinPool* pool);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_JOB_BACKEND_H_
