// Adapts learning rates and L2 to a batch size other than the one for which they were chosen. The
// rules of BatchScalingConfig are defined only here. Roles get their effective values from these
// functions; the job itself keeps the values of the base batch.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_LEARNING_RATE_BATCH_SCALING_H_
#define SATRAP_COMMON_LEARNING_RATE_BATCH_SCALING_H_

#include <string>

#include "proto/job.pb.h"

namespace satrap {

struct BatchScaling {
  double ratio = 1;          // global_batch_size / base_batch_size
  double sparse_rate = 1;    // factor of the learning rates of tables
  double sparse_l2 = 1;      // factor of the l2 of segments
  double dense_rate = 1;     // factor of the learning rate of the dense network
  int64_t dense_warmup = 0;  // warm-up steps of the dense network; 0: as the job says
};

// REQUIRES: a validated job
BatchScaling BatchScalingOf(const JobConfig& job);

// A table of `job`, or its dense optimizer, with the effective values. If the job has no
// batch_scaling, these are the job's own values.
TableConfig EffectiveTable(const JobConfig& job, const TableConfig& table);
DenseOptimizerConfig EffectiveDenseOptimizer(const JobConfig& job);

// For people: "batch 2048 is 16 x 128, rule COWCLIP: features.embedding learning rate 0.001, l2
// 0.00016; dense learning rate 0.004, warm-up 500 steps". "" if the job has no batch_scaling.
std::string BatchScalingText(const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_COMMON_LEARNING_RATE_BATCH_SCALING_H_
