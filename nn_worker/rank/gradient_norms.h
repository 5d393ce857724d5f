// Sums up the gradient norms of the steps of a job with gradient_clip_norm.
//
// Thread-safe: the function depends only on its arguments.

#ifndef SATRAP_NN_WORKER_RANK_GRADIENT_NORMS_H_
#define SATRAP_NN_WORKER_RANK_GRADIENT_NORMS_H_

#include "proto/position.pb.h"

namespace satrap {

// Adds a finite step with the gradient norm `norm`, whose gradients were multiplied by
// `clip_factor`.
inline void AddNorm(double norm, float clip_factor, GradientNorms* norms) {
  norms->set_steps(norms->steps() + 1);
  if (clip_factor < 1) norms->set_clipped_steps(norms->clipped_steps() + 1);
  norms->set_sum(norms->sum() + norm);
  norms->set_last(norm);
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_GRADIENT_NORMS_H_
