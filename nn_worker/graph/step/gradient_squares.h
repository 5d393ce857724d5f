// The squares of a gradient in the form in which an optimizer uses it
// (JobConfig.gradient_clip_norm).

#ifndef SATRAP_NN_WORKER_GRAPH_STEP_GRADIENT_SQUARES_H_
#define SATRAP_NN_WORKER_GRAPH_STEP_GRADIENT_SQUARES_H_

#include "absl/types/span.h"
#include "nn_worker/operation/optimizer_rule.h"

namespace satrap {

// The sum of (scale * gradient + l2 w + l1 sign(w))^2 with the rule's l2 and l1, in double
// precision. It has the same bits on every CPU, because the ranks of a step must agree on it.
// REQUIRES: gradient.size() == w.size()
double GradientSquares(float scale, const OptimizerRule& rule, absl::Span<const float> gradient,
                       absl::Span<const float> w);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_STEP_GRADIENT_SQUARES_H_
