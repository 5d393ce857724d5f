// What the gradients of a step, which are sums over samples, are divided by.
//
// Let B be the global batch size. A full batch is divided by its weight, which gives the weighted
// mean of its samples. A step of n < B samples gives n / B of its mean. If it were divided by its
// own weight alone, a 1-sample step would weigh as much as a full batch, although it is all noise,
// and Adagrad would permanently add up to B^2 times the usual square to the accumulators of ids
// that are in every batch. With n / B, each sample pulls as strongly as in a full batch, whichever
// step it comes in: the last batch of an epoch or of a lane, a hybrid step in which only some ranks
// have a part, or the small batch of a slow stream.
//
// Kernels include this header, so it knows only the standard library's integers.

#ifndef SATRAP_NN_WORKER_OPERATION_STEP_NORMALIZER_H_
#define SATRAP_NN_WORKER_OPERATION_STEP_NORMALIZER_H_

#include <cstdint>

namespace satrap {

// `weight` and `samples` are sums over all ranks. A step of `global_batch_size` samples or more is
// divided by `weight` exactly. REQUIRES: weight > 0, samples > 0
constexpr float StepNormalizer(float weight, double samples, int64_t global_batch_size) {
  const double missing = static_cast<double>(global_batch_size) / samples;
  return static_cast<float>(weight * (missing > 1 ? missing : 1));
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPERATION_STEP_NORMALIZER_H_
