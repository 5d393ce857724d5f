// Decides which jobs sum their dense gradients from device to device, and tells users what they can
// do if this fails.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_JOB_REDUCTION_H_
#define SATRAP_NN_WORKER_COLLECTIVE_JOB_REDUCTION_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/job.pb.h"

namespace satrap {

// Whether the ranks of `job` sum on their devices, as nn_worker.gradient_sums says. AUTO means NCCL
// if there are several cards, unless the run is reproducible. A single rank has nothing to sum.
// REQUIRES: a validated job
inline bool SumsOnDevices(const JobConfig& job) {
  const NnWorkerConfig& config = job.nn_worker();
  if (job.action() != JobConfig::TRAIN || config.replicas() == 1) return false;
  if (config.gradient_sums() != NnWorkerConfig::AUTO) {
    return config.gradient_sums() == NnWorkerConfig::NCCL;
  }
  return config.device() == NnWorkerConfig::CUDA && !job.reproducible();
}

// `error` says why the ranks cannot sum on their devices. Returns it with advice on what else the
// user can do. REQUIRES: !error.ok()
inline absl::Status SuggestGloo(const absl::Status& error) {
  // The ranks are being stopped, so the user has nothing to change.
  if (absl::IsCancelled(error)) return error;
  return absl::Status(error.code(),
                      absl::StrCat(error.message(), "; or set nn_worker.gradient_sums to GLOO"));
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_JOB_REDUCTION_H_
