// GatherRows and ScatterGradients of CpuHalfBackend (cpu_half_backend.h), for features whose values
// may have 16 bits: blocks of samples in f32, small enough for a cache, by the loops of
// cpu_row_exchange.h.
//
// Thread-safe: a call writes only the rows of its operation, or the gradients that it is given.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_EXCHANGE_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_EXCHANGE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/backend/cpu/cpu_half_operation.h"
#include "nn_worker/backend/row_exchange_args.h"
#include "nn_worker/backend/tensor.h"

namespace satrap::cpu {

// Samples of a block. Rows of tables are prefetched within a block, so it is larger than those of
// other operations.
constexpr int64_t kExchangeSamples = 256;

bool Have16BitValues(absl::Span<const FeatureExchange> features);

// Writes the segments and lengths of the samples that `operation` is about.
void GatherHalves(absl::Span<const FeatureExchange> features, HalfOperation* operation);
// Assigns the gradients of the samples that `operation` is about. REQUIRES:
// feature.one_row_a_sample
void AssignGradients(const FeatureExchange& feature, const Tensor& gradients,
                     HalfOperation* operation);
// Adds the gradients of all samples: block by block of kExchangeSamples, within a block feature by
// feature, and each in the order of its samples.
void AddGradients(absl::Span<const FeatureExchange> features, const Tensor& gradients,
                  HalfMemory* memory);

}  // namespace satrap::cpu

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_EXCHANGE_H_
