// The loops of CpuBackend's losses (loss_operations.h), in the calling thread. `sums` points to two
// doubles; `gradient_scale` comes from the control.
// Thread-safe: a loop writes only the given rows and sums.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_LOSSES_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_LOSSES_H_

#include <cstdint>

#include "nn_worker/backend/loss_operations.h"
#include "nn_worker/backend/tensor.h"

namespace satrap::cpu {

void SquaredErrorRows(float gradient_scale, Tensor outputs, Tensor labels, Tensor weights,
                      Tensor mask, Tensor doutputs, int64_t begin, int64_t end, double* sums);
// Works on all pairs in one call, because two of them may share a sample.
void PairwiseLogistic(float gradient_scale, Tensor scores, Tensor pairs, Tensor weights,
                      Tensor dscores, double* sums);
void SoftmaxCrossEntropyRows(float gradient_scale, Tensor logits, Tensor labels, Tensor weights,
                             Tensor mask, Tensor dlogits, int64_t begin, int64_t end, double* sums);
void CandidateLossRows(float gradient_scale, const CandidateLossArgs& args, int64_t begin,
                       int64_t end, double* sums);

}  // namespace satrap::cpu

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_LOSSES_H_
