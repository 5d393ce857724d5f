// The operations of losses. Gradients are those of a sum, not of a mean, multiplied by
// control.gradient_scale. Sample weights and a mask, (n, 1) each, may be empty, which means 1. A
// masked sample adds exactly 0, whatever its label, and its gradient is exactly 0. Each loss writes
//
//   sums: F64 (1, 2) = [sum weight l | sum weight]     over samples, or pairs, that count
//
// Part of Backend (backend.h), whose rules on memory, order, determinism and errors apply.

#ifndef SATRAP_NN_WORKER_BACKEND_LOSS_OPERATIONS_H_
#define SATRAP_NN_WORKER_BACKEND_LOSS_OPERATIONS_H_

#include "nn_worker/backend/tensor.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {

// The arguments of CandidateLoss. Each column of the scores belongs to an item. In each row, one
// column is the score of the sample's positive.
struct CandidateLossArgs {
  CandidateLossKind kind = CandidateLossKind::kSoftmax;
  // If true, the positive of sample i is in column i; if false, in column 0.
  bool positives_on_diagonal = false;
  // If true, a column with the same item as the sample's positive does not count for the sample,
  // unless it is the positive's own column: it adds exactly 0, whatever its score, and its gradient
  // is exactly 0.
  bool remove_hits = false;
  Tensor scores;          // (n, columns)
  Tensor items;           // U32 (1, columns): the item of each column; read with remove_hits
  Tensor positives;       // U32 (n, 1): each sample's positive item; read with remove_hits
  Tensor log_q;           // (1, columns): subtracted from each score but the positive's; or empty
  Tensor positive_log_q;  // (n, 1): subtracted from the positive's score; empty as log_q
  Tensor weights, mask;   // (n, 1)
  Tensor dscores;         // (n, columns)
  Tensor sums;
};

class LossOperations {
 public:
  virtual ~LossOperations() = default;

  // l = max(z, 0) - z y + log(1 + exp(-|z|)).
  // dz = weight mask (sigmoid(z) - y).
  // All (n, 1).
  virtual void BceWithLogits(Tensor control, Tensor logits, Tensor labels, Tensor weights,
                             Tensor mask, Tensor dlogits, Tensor sums) = 0;

  // l = (z - y)^2; dz = 2 weight mask (z - y).     all (n, 1)
  virtual void SquaredError(Tensor control, Tensor outputs, Tensor labels, Tensor weights,
                            Tensor mask, Tensor doutputs, Tensor sums) = 0;

  // BPR (Rendle et al. 2009). For a pair of sample p, the positive, and sample n, the negative,
  // l = log(1 + exp(z_n - z_p)); dz_p -= weight sigmoid(z_n - z_p), dz_n += the same. The gradient
  // of a sample is the sum over its pairs in their order, and 0 without pairs.
  // scores, dscores: (n, 1)   pairs: U32 (m, 2), rows [p | n], p != n   weights: (m, 1)
  virtual void PairwiseLogistic(Tensor control, Tensor scores, Tensor pairs, Tensor weights,
                                Tensor dscores, Tensor sums) = 0;

  // l = log(sum over c of exp(z_c)) - z_y; dz_c = weight mask (softmax(z)_c - [c == y]).
  // logits, dlogits: (n, classes)   labels: (n, 1), whole numbers in [0, classes) unless masked
  virtual void SoftmaxCrossEntropy(Tensor control, Tensor logits, Tensor labels, Tensor weights,
                                   Tensor mask, Tensor dlogits, Tensor sums) = 0;

  // With z = scores - log Q, p the column of the positive, and sums over the columns that count:
  //   kSoftmax    l = log(sum over c of exp(z_c)) - z_p
  //   kLogistic   l = sum over c of BCE(z_c, [c == p])
  // dscores is the gradient for z. Jean et al. (2015); Gutmann and Hyvarinen (2010); the
  // definitions are those of TensorFlow's sampled_softmax_loss and nce_loss.
  virtual void CandidateLoss(Tensor control, const CandidateLossArgs& args) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_LOSS_OPERATIONS_H_
