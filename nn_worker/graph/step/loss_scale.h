// The loss scale of a job that computes in F16 (LossScaleConfig in proto/job.proto), and the factor
// that the network derives from it.
//
// The scale S that users set is meant for the mean loss. The gradients of a network are sums over
// samples, so for a global batch of B samples they are about B times as large as those of the mean
// loss. Therefore they are multiplied by S / 2^round(log2 B) instead of S. This is a power of two,
// so nothing is rounded, and for any B the result is S times the gradients of the mean, within a
// factor of sqrt(2). A factor of S would make a batch of some thousand samples overflow F16 at
// once.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_GRAPH_STEP_LOSS_SCALE_H_
#define SATRAP_NN_WORKER_GRAPH_STEP_LOSS_SCALE_H_

#include <cstdint>

#include "nn_worker/operation/step_control.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// The factor by which a network's gradients, sums over samples, are multiplied. It may change after
// each step.
struct GradientScale {
  float scale = 1;           // of the next step
  uint32_t clean_steps = 0;  // finite steps in a row since the scale changed
  GradientScaleRule rule;    // how it moves; by default never

  bool moves() const { return rule.growth_steps > 0; }
};

// The largest S that a dynamic scale grows to.
inline constexpr double kMostLossScale = 16777216;

// The scale with which a run of `job` continues from `position`, which is empty for a new run. It
// is always 1 unless the precision is F16. REQUIRES: `job` is validated
GradientScale GradientScaleOf(const JobConfig& job, const RunPosition& position);

// The scale S and the count of finite steps, in the form in which the position of a cut holds them.
LossScaleState LossScaleStateOf(const GradientScale& scale, int64_t global_batch_size);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_STEP_LOSS_SCALE_H_
