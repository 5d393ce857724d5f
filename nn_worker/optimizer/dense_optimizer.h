// A DenseOptimizer is the rule that turns the dense network's gradient into a step: one call for
// all parameters.
//
// It owns no memory: the network keeps `num_slots` values of state beside each parameter and passes
// them in. What it computes is a function of its arguments; in particular Adam's t is the step's
// number, not a count of calls, so that a repeated or skipped step and a resumed job agree.
//
// Thread-safe: all methods are const.

#ifndef SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_H_
#define SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "nn_worker/backend/backend.h"

namespace satrap {

struct DenseStep {
  int64_t step = 0;                 // of the job, from 0
  double global_weight = 1;         // the step's normalizer: gradients are sums over samples. > 0
  double learning_rate_factor = 1;  // on top of the schedule
};

class DenseOptimizer {
 public:
  virtual ~DenseOptimizer() = default;

  // One name a slot of state, as saved: "adam.m".
  virtual std::vector<std::string> slot_names() const = 0;
  // The value that every element of a slot begins with.
  virtual float initial_value(int slot) const = 0;

  // One step in place: g = gradient / global_weight + l2 * w, at `learning_rate`.
  // All (1, parameters).  REQUIRES: slots.size() == slot_names().size()
  virtual void Step(Backend* backend, int64_t step, const StepScale& scale, Tensor gradient,
                    Tensor w, absl::Span<const Tensor> slots) const = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_H_
