#include "nn_worker/graph/step/loss_scale.h"

#include <cmath>

namespace satrap {
namespace {

double BatchScale(int64_t global_batch_size) {
  return std::exp2(std::round(std::log2(static_cast<double>(global_batch_size))));
}

}  // namespace

GradientScale GradientScaleOf(const JobConfig& job, const RunPosition& position) {
  GradientScale gradient;
  if (job.nn_worker().precision() != NnWorkerConfig::F16) return gradient;
  const LossScaleConfig& config = job.nn_worker().loss_scale();
  const double batch = BatchScale(job.global_batch_size());
  double scale = config.initial();
  // A static scale is always the job's, even if the run had a different one before.
  if (config.dynamic()) {
    gradient.rule.growth_steps = static_cast<uint32_t>(config.growth_steps());
    gradient.rule.least = static_cast<float>(1 / batch);
    gradient.rule.most = static_cast<float>(kMostLossScale / batch);
    if (position.has_loss_scale()) {
      scale = position.loss_scale().scale();
      gradient.clean_steps = static_cast<uint32_t>(position.loss_scale().finite_steps());
    }
  }
  gradient.scale = static_cast<float>(scale / batch);
  return gradient;
}

LossScaleState LossScaleStateOf(const GradientScale& scale, int64_t global_batch_size) {
  LossScaleState state;
  state.set_scale(scale.scale * BatchScale(global_batch_size));
  state.set_finite_steps(scale.clean_steps);
  return state;
}

}  // namespace satrap
