// GatherRows and ScatterGradients of CpuHalfBackend (cpu_half_backend.h), for features whose values
// may have 16 bits. The loops of cpu_row_exchange.h run on blocks of samples in f32 that are small
// enough for a cache.
//
// Thread-safe: a call writes only the rows of its operation, or the gradients passed to it.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_EXCHANGE_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_EXCHANGE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/backend/cpu/cpu_half_operation.h"
#include "nn_worker/backend/row_exchange_args.h"
#include "nn_worker/backend/tensor.h"

namespace satrap::cpu {

// The number of samples in a block. Blocks are larger than those of other operations, because rows
// of tables are prefetched only within a block.
constexpr int64_t kExchangeSamples = 256;

bool Have16BitValues(absl::Span<const FeatureExchange> features);

// Writes the segments and lengths of the samples that `operation` covers.
void GatherHalves(absl::Span<const FeatureExchange> features, HalfOperation* operation);
// Assigns the gradients of the samples that `operation` covers. REQUIRES: feature.one_row_a_sample
void AssignGradients(const FeatureExchange& feature, const Tensor& gradients,
                     HalfOperation* operation);
// Adds the gradients of all samples: one block of kExchangeSamples after another, within a block
// one feature after another, and within a feature in the order of the samples.
void AddGradients(absl::Span<const FeatureExchange> features, const Tensor& gradients,
                  HalfMemory* memory);

}  // namespace satrap::cpu

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_EXCHANGE_H_
