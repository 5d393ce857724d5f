// a += g^2; w -= lr g / (sqrt(a) + epsilon) (Duchi, Hazan and Singer 2011). One slot: adagrad.a.

#ifndef SATRAP_NN_WORKER_OPTIMIZER_ADAGRAD_H_
#define SATRAP_NN_WORKER_OPTIMIZER_ADAGRAD_H_

#include <memory>

#include "nn_worker/optimizer/dense_optimizer.h"
#include "proto/model.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewDenseOptimizer checks
std::unique_ptr<const DenseOptimizer> NewAdagrad(const DenseOptimizerConfig::Adagrad& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPTIMIZER_ADAGRAD_H_
