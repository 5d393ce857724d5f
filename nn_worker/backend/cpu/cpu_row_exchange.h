// The loops of CpuBackend::GatherRows and ScatterGradients: they apply common/batch/pooling.h to
// tensors, so that pooling here and at the embedding worker gives the same bits.
//
// Thread-safe: a call writes only the given samples, or the gradients passed to it.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_ROW_EXCHANGE_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_ROW_EXCHANGE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/backend/row_exchange_args.h"

namespace satrap::cpu {

// Writes the segments and lengths of samples [begin, end).
void GatherSamples(const FeatureExchange& feature, int64_t begin, int64_t end);
// Adds the gradients of all samples, in order, to `gradients` (num_rows, row_values). If the
// feature has one row per sample, assigns them instead.
void ScatterFeature(const FeatureExchange& feature, const Tensor& gradients);
// Whether ScatterFeature assigns every value of `gradients` if it is called for these features, so
// that the caller need not clear `gradients` before. This is so if there is only one feature, this
// feature has one row per sample, and its segments cover the whole row.
bool AssignsEveryValue(absl::Span<const FeatureExchange> features, const Tensor& gradients);

}  // namespace satrap::cpu

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_ROW_EXCHANGE_H_
