// The job and the batches that the tests of NetworkTrainer train.

#ifndef SATRAP_NN_WORKER_TRAINER_TESTING_TRAINER_JOB_H_
#define SATRAP_NN_WORKER_TRAINER_TESTING_TRAINER_JOB_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn_worker/trainer/testing/fake_tables.h"
#include "proto/job.pb.h"

namespace satrap {

// The number of samples in a batch.
inline constexpr size_t kTrainerBatch = 60;

// A job with features of all kinds, and a model with batch norm and dropout.
JobConfig TrainerJob();

// A batch with repeated ids, samples without ids, weights, and labels that are not known.
std::vector<FakeSample> TrainerBatch(uint64_t step);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_TESTING_TRAINER_JOB_H_
