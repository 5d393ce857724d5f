// What the gradients of a step, which are sums over samples, are divided by.
//
// Let B be the global batch size. A full batch is divided by its weight, which gives the weighted
// mean of its samples. A step of n < B samples gives n / B of its mean. If it were divided by its
// own weight alone, a 1-sample step would weigh as much as a full batch, although it is all noise,
// and Adagrad would permanently add up to B^2 times the usual square to the accumulators of ids
// that are in every batch. With n / B, each sample pulls as strongly as in a full batch, whichever
// step it comes in: the last batch of an epoch or of a lane, a hybrid step in which only some ranks
// have a part, or the small batch of a slow stream.

#ifndef SATRAP_NN_WORKER_OPERATION_STEP_NORMALIZER_H_
#define SATRAP_NN_WORKER_OPERATION_STEP_NORMALIZER_H_

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

#endif  // SATRAP_NN_WORKER_OPERATION_STEP_NORMALIZER_H_
