// Makes a DenseOptimizer from its configuration. A new rule is one file, one test case, one field
// of DenseOptimizerConfig's `kind`, and one line in dense_optimizer_factory.cc.

#ifndef SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_FACTORY_H_
#define SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_FACTORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/optimizer/dense_optimizer.h"
#include "proto/model.pb.h"

namespace satrap {

// The rule of `config.kind`, Adam if none is set. INVALID_ARGUMENT, naming the field, if a value is
// out of range.
absl::StatusOr<std::unique_ptr<const DenseOptimizer>> NewDenseOptimizer(
    const DenseOptimizerConfig& config);

// The learning rate is base * the schedule's factor * the step's; the corrections are those of
// `optimizer`.
StepPlan PlanOf(const DenseOptimizerConfig& config, const DenseOptimizer& optimizer,
                const DenseStep& step);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_FACTORY_H_
