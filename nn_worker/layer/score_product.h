// The scores of items for users: y = x items^T + bias, and its gradients. This is the expensive
// part of the layers candidate_logits and in_batch_logits: one matrix product forward and two
// backward.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_LAYER_SCORE_PRODUCT_H_
#define SATRAP_NN_WORKER_LAYER_SCORE_PRODUCT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "nn_worker/backend/backend.h"

namespace satrap {

class ScoreProduct {
 public:
  // Allocates memory for up to `most_items` items of `dim` values. RESOURCE_EXHAUSTED.
  absl::Status Bind(Backend* backend, int64_t most_items, int64_t dim);

  // x: (n, dim)   items: (m, dim)   bias: (m, 1) or empty   y: (n, m)   REQUIRES: m >= 1
  void Forward(Tensor x, Tensor items, Tensor bias, Tensor y);
  // The gradients of the last Forward; dy is overwritten. A target that is not wanted is not
  // touched.
  void Backward(Tensor x, Tensor y, Tensor dy, GradientTarget dx, GradientTarget ditems,
                GradientTarget dbias);

 private:
  // The first m vectors of a scratch tensor, as one row or as a matrix.
  Tensor Row(Tensor scratch, int64_t m) const { return scratch.Columns(0, m * dim_); }

  Backend* backend_ = nullptr;
  int64_t dim_ = 0;
  bool has_bias_ = false;
  Tensor packed_;      // (1, items dim): the items, or their gradients, without gaps
  Tensor transposed_;  // (1, dim items): the factor of the product
  Tensor dtransposed_;
  Tensor bias_, dbias_;  // (1, items)
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_SCORE_PRODUCT_H_
