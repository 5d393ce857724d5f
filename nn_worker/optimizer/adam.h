// Kingma and Ba (2015), algorithm 1: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
// w -= lr mhat / (sqrt(vhat) + epsilon), mhat = m / (1 - b1^t), vhat = v / (1 - b2^t), t = step
// + 1. Slots: adam.m, adam.v.

#ifndef SATRAP_NN_WORKER_OPTIMIZER_ADAM_H_
#define SATRAP_NN_WORKER_OPTIMIZER_ADAM_H_

#include <memory>

#include "nn_worker/optimizer/dense_optimizer.h"
#include "proto/model.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewDenseOptimizer checks
std::unique_ptr<const DenseOptimizer> NewAdam(const DenseOptimizerConfig::Adam& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPTIMIZER_ADAM_H_
