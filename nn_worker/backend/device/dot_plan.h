// Decides which kernels compute PairDots and its gradient. If the vectors are in many terms, the
// kernels that read each vector only once are faster (PairDotsInTiles and PairDotsGradInTiles,
// kernels/pair_dots.h). This file makes the lists that these kernels need. Both kinds of kernels
// give the same bits.
//
// Functions are thread-safe.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DOT_PLAN_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DOT_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/device/kernels/pair_dots.h"

namespace satrap {

struct DotPlan {
  ElementType type;
  std::vector<DotVector> vectors;
  std::vector<DotTile> tiles;
  std::vector<int32_t> terms;  // of PairDotsInTiles
};

// Null if there are fewer than 8 vectors, if these have different types or do not fit into shared
// memory, or if fewer than a quarter of the products of the tiles are terms.
absl::optional<DotPlan> PlanDots(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms,
                                 int64_t dim);

struct DotGradPlan {
  ElementType type;
  std::vector<DotVector> vectors;
  std::vector<DotGradTarget> targets;
  std::vector<DotPair> pairs;
};

// Null if there are fewer than 8 vectors or these do not fit into shared memory, if vectors or
// gradients have different types, if two inputs share a gradient, if a wanted gradient has columns
// that are in no vector or in two, if the terms are not all pairs of two different vectors, or if
// a vector meets the others in an order other than that of inputs and columns.
absl::optional<DotGradPlan> PlanDotGrad(absl::Span<const Tensor> xs,
                                        absl::Span<const PairTerm> terms, int64_t dim,
                                        absl::Span<const GradientTarget> dxs);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DOT_PLAN_H_
