// The losses of ReferenceBackend, as backend.h and loss_operations.h define them: sample by sample,
// in double.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_LOSSES_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_LOSSES_H_

#include "nn_worker/backend/loss_operations.h"
#include "nn_worker/backend/tensor.h"

namespace satrap::reference {

void BceWithLogits(double gradient_scale, Tensor logits, Tensor labels, Tensor weights, Tensor mask,
                   Tensor dlogits, Tensor sums);
void SquaredError(double gradient_scale, Tensor outputs, Tensor labels, Tensor weights, Tensor mask,
                  Tensor doutputs, Tensor sums);
void PairwiseLogistic(double gradient_scale, Tensor scores, Tensor pairs, Tensor weights,
                      Tensor dscores, Tensor sums);
void SoftmaxCrossEntropy(double gradient_scale, Tensor logits, Tensor labels, Tensor weights,
                         Tensor mask, Tensor dlogits, Tensor sums);
void CandidateLoss(double gradient_scale, const CandidateLossArgs& args);

}  // namespace satrap::reference

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_LOSSES_H_
