// A DenseOptimizer says how the dense network's gradient changes its parameters: a rule of the
// backend (StepOperations::OptimizerStep) and the state that it needs.
//
// It owns no memory: for each parameter, the network keeps one value of each state array. A step
// depends only on its arguments. In particular, Adam's t is the number of the step, not a count of
// calls, so t is still correct after a skipped step and in a resumed job.

#ifndef SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_H_
#define SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "nn_worker/operation/optimizer_rule.h"

namespace satrap {

// A step of the job, as the ranks know it. PlanOf turns it into the StepPlan that
// Backend::DecideStep takes.
struct DenseStep {
  int64_t step = 0;                 // of the job, from 0
  int64_t global_batch_size = 1;    // for the step's normalizer
  double learning_rate_factor = 1;  // on top of the schedule
};

// In a run that starts from a model: what the optimizer's steps need to know about that model.
struct DenseStart {
  // Steps that the optimizer's state had seen before the run's first step. Bias corrections
  // continue from this number.
  int64_t steps_before = 0;
  // The learning rate grows linearly over this many steps of the run, on top of its schedule,
  // because the optimizer's state began anew.
  int64_t warmup_steps = 0;
};

struct DenseOptimizer {
  struct State {
    std::string name;         // in saved models: "adam.m"; the kind is before the dot
    float initial_value = 0;  // of every element
  };

  OptimizerRule rule;  // with l2 and weight decay of parameters that have no settings of their own
  std::vector<State> states;  // NumStates(rule)

  // The kind with which the names of the state arrays begin; empty if there is no state.
  std::string state_kind() const {
    return states.empty() ? "" : states[0].name.substr(0, states[0].name.find('.'));
  }
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPTIMIZER_DENSE_OPTIMIZER_H_
