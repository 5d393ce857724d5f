// Makes a DenseOptimizer from its configuration. A new rule needs a kind of OptimizerRule, one
// field of DenseOptimizerConfig's `kind`, one case in dense_optimizer_factory.cc and one test case
// (docs/extending.md).

#ifndef SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_FACTORY_H_
#define SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_FACTORY_H_

#include "absl/status/statusor.h"
#include "nn_worker/operation/step_control.h"
#include "nn_worker/optimizer/dense_optimizer.h"
#include "proto/model.pb.h"

namespace satrap {

// The rule of `config.kind`; if no kind is set, Adam. INVALID_ARGUMENT, naming the field, if a
// value is out of range.
absl::StatusOr<DenseOptimizer> NewDenseOptimizer(const DenseOptimizerConfig& config);

// The learning rate is base * the schedule's factor * the step's factor * the factor of `start`'s
// warm-up. The corrections are those of `optimizer`. Schedules count the steps of the run.
StepPlan PlanOf(const DenseOptimizerConfig& config, const DenseOptimizer& optimizer,
                const DenseStep& step, const DenseStart& start = {});

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_FACTORY_H_
