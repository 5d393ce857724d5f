// What the gradients of a step, which are sums over samples, are divided by.
//
// A full batch gives the mean over the weight. A step of n < B samples, B being the global batch
// size, gives n / B of that mean: divided by its own few samples, the sum of a 1-sample step would
// be as large as that of a full batch but all noise, and Adagrad would add up to B^2 times the
// usual square to the accumulators of ids that are in every batch, for good. So each sample pulls
// as strongly as in a full batch, whichever step it comes in: the last batch of an epoch or of a
// lane, a hybrid step in which only some ranks have a part, or the small batch of a slow stream.

#ifndef SATRAP_NN_WORKER_RANK_STEP_NORMALIZER_H_
#define SATRAP_NN_WORKER_RANK_STEP_NORMALIZER_H_

#include <algorithm>
#include <cstdint>

namespace satrap {

// `weight` and `samples` are sums over all ranks. A step of `global_batch_size` samples or more is
// divided by `weight` exactly. REQUIRES: weight > 0, samples > 0
inline float StepNormalizer(float weight, uint64_t samples, int64_t global_batch_size) {
  const double missing = static_cast<double>(global_batch_size) / static_cast<double>(samples);
  return static_cast<float>(weight * std::max(1.0, missing));
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_STEP_NORMALIZER_H_
