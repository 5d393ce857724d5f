// A DenseOptimizer is the rule by which the dense network's gradient changes its parameters, all of
// them in one call.
//
// It owns no memory: the network keeps slot_names().size() values of state for each parameter and
// passes them in. What it computes is a function of its arguments. In particular Adam's t is the
// number of the step, not a count of calls, so a skipped step or a resumed job changes nothing. The
// learning rate, the normalizer and whether the step applies are read from the network's StepControl.
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

// A step of the job, as the ranks know it. The schedule turns it into the StepPlan that
// Backend::DecideStep takes (PlanOf).
struct DenseStep {
  int64_t step = 0;                 // of the job, from 0
  int64_t global_batch_size = 1;    // for the step's normalizer
  double learning_rate_factor = 1;  // on top of the schedule
};

// The bias corrections of a rule in one step: 1 - beta^t for each of its decay rates.
struct BiasCorrections {
  float first = 1;
  float second = 1;
};

class DenseOptimizer {
 public:
  virtual ~DenseOptimizer() = default;

  // The name of each slot of state in saved models: "adam.m".
  virtual std::vector<std::string> slot_names() const = 0;
  // The value that every element of a slot begins with.
  virtual float initial_value(int slot) const = 0;

  // Of step `step` of the job, from 0.
  virtual BiasCorrections corrections(int64_t) const { return {}; }

  // One step in place, if `control` applies, with the normalised gradient (docs/glossary.md). All
  // tensors are (1, parameters). REQUIRES: slots.size() == slot_names().size()
  virtual void Step(Backend* backend, Tensor control, float l2, Tensor gradient, Tensor w,
                    absl::Span<const Tensor> slots) const = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_H_
