// The loops of CpuBackend::GatherRows and ScatterGradients: those of common/batch/pooling.h over
// tensors, so that pooling here and at the embedding worker has the same bits.
//
// Thread-safe: a call writes only the given samples, or the gradients that it is given.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_ROW_EXCHANGE_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_ROW_EXCHANGE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/backend/row_exchange_args.h"

namespace satrap::cpu {

// Writes the segments and lengths of samples [begin, end).
void GatherSamples(const FeatureExchange& feature, int64_t begin, int64_t end);
// Adds the gradients of all samples, in order, to `gradients` (num_rows, row_values); of a feature
// with one row per sample, assigns them.
void ScatterFeature(const FeatureExchange& feature, const Tensor& gradients);
// Whether ScatterFeature of the features assigns every value of `gradients`, so that there is
// nothing to clear before: each segment of a row is read once.
bool AssignsEveryValue(absl::Span<const FeatureExchange> features, const Tensor& gradients);

}  // namespace satrap::cpu

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_ROW_EXCHANGE_H_
