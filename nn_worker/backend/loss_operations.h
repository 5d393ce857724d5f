// The operations of losses other than BceWithLogits (backend.h), with that one's rules: gradients are
// those of a sum, not of a mean, times control.gradient_scale; sample weights and a mask, (n, 1) each, may be empty, which means 1;
// a masked sample adds exactly 0, whatever its label, and its gradient is exactly 0; and
//
//   sums: F64 (1, 2) = [sum weight l | sum weight]     over samples, or pairs, that count
//
// Part of Backend, whose rules on memory, order, determinism and errors hold.

#ifndef SATRAP_NN_WORKER_BACKEND_LOSS_OPERATIONS_H_
#define SATRAP_NN_WORKER_BACKEND_LOSS_OPERATIONS_H_

#include "nn_worker/backend/tensor.h"

namespace satrap {

class LossOperations {
 public:
  virtual ~LossOperations() = default;

  // l = (z - y)^2; dz = 2 weight mask (z - y).     all (n, 1)
  virtual void SquaredError(Tensor control, Tensor outputs, Tensor labels, Tensor weights,
                            Tensor mask, Tensor doutputs, Tensor sums) = 0;

  // BPR (Rendle et al. 2009): of a pair of sample p, a positive, and n, a negative,
  // l = log(1 + exp(z_n - z_p)); dz_p -= weight sigmoid(z_n - z_p), dz_n += the same. The gradient of
  // a sample is the sum over its pairs in their order, and 0 without pairs.
  // scores, dscores: (n, 1)   pairs: U32 (m, 2), rows [p | n], p != n   weights: (m, 1)
  virtual void PairwiseLogistic(Tensor control, Tensor scores, Tensor pairs, Tensor weights,
                                Tensor dscores, Tensor sums) = 0;

  // l = log(sum over c of exp(z_c)) - z_y; dz_c = weight mask (softmax(z)_c - [c == y]).
  // logits, dlogits: (n, classes)   labels: (n, 1), of samples that count: whole, in [0, classes)
  virtual void SoftmaxCrossEntropy(Tensor control, Tensor logits, Tensor labels, Tensor weights,
                                   Tensor mask, Tensor dlogits, Tensor sums) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_LOSS_OPERATIONS_H_
