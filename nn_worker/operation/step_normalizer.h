// The number by which the gradients of a step, which are sums over samples, are divided.
//
// Let B be the global batch size. The gradients of a full batch are divided by its weight, which
// gives the weighted mean over its samples. For a step of n < B samples the result is n / B times
// the mean. If the gradients were divided by the step's own weight only, a step of 1 sample would
// count as much as a full batch, although it is mostly noise. Adagrad would then add as much as B^2
// times the usual square to the accumulators of ids that are in every batch, and these never
// shrink. With the factor n / B, each sample has the same influence as in a full batch, whichever
// step it is in: the last batch of an epoch or of a lane, a hybrid step in which only some ranks
// have a part, or the small batch of a slow stream.
//
// Kernels include this header, so it uses only the standard library's integers.

#ifndef SATRAP_NN_WORKER_OPERATION_STEP_NORMALIZER_H_
#define SATRAP_NN_WORKER_OPERATION_STEP_NORMALIZER_H_

#include <cstdint>

namespace satrap {

// `weight` and `samples` are sums over all ranks. For a step of at least `global_batch_size`
// samples the result is exactly `weight`. REQUIRES: weight > 0, samples > 0
constexpr float StepNormalizer(float weight, double samples, int64_t global_batch_size) {
  const double missing = static_cast<double>(global_batch_size) / samples;
  return static_cast<float>(weight * (missing > 1 ? missing : 1));
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPERATION_STEP_NORMALIZER_H_
