// Which jobs add up their dense gradients from device to device.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_JOB_REDUCTION_H_
#define SATRAP_NN_WORKER_COLLECTIVE_JOB_REDUCTION_H_

#include "proto/job.pb.h"

namespace satrap {

// As nn_worker.gradient_sums says; AUTO means NCCL where there are several cards. One rank has nothing to
// add up. REQUIRES: a validated job
inline bool SumsOnDevices(const JobConfig& job) {
  const NnWorkerConfig& config = job.nn_worker();
  if (job.action() != JobConfig::TRAIN || config.replicas() == 1) return false;
  if (config.gradient_sums() != NnWorkerConfig::AUTO) {
    return config.gradient_sums() == NnWorkerConfig::NCCL;
  }
  return config.device() == NnWorkerConfig::CUDA;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_JOB_REDUCTION_H_
