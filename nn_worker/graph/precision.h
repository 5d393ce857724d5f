// Converts the precision of a job to the dtype that its network uses. This is the dtype of the
// activations, of their gradients, and of the factors of matrix products.

#ifndef SATRAP_NN_WORKER_GRAPH_PRECISION_H_
#define SATRAP_NN_WORKER_GRAPH_PRECISION_H_

#include "nn_worker/backend/tensor.h"
#include "proto/job.pb.h"

namespace satrap {

inline DType DTypeOf(NnWorkerConfig::Precision precision) {
  switch (precision) {
    case NnWorkerConfig::BF16:
      return DType::kBF16;
    case NnWorkerConfig::F16:
      return DType::kF16;
    case NnWorkerConfig::F32:
    case NnWorkerConfig::TF32:  // a way to multiply F32
      return DType::kF32;
  }
  return DType::kF32;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_PRECISION_H_
