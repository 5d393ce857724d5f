// What a network passes to a layer: a LayerBinding once, and a PassContext for each pass.

#ifndef SATRAP_NN_WORKER_LAYER_LAYER_BINDING_H_
#define SATRAP_NN_WORKER_LAYER_LAYER_BINDING_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/collective/collective.h"

namespace satrap {

struct LayerBinding {
  Backend* backend = nullptr;        // outlives the layer
  Collective* collective = nullptr;  // outlives the layer
  int64_t max_samples = 0;
  uint64_t seed = 0;    // of this layer
  Tensor control;       // of the network (Backend::DecideStep), for EndStep
  Tensor pass_numbers;  // of the training pass that runs (dropout_mask.h)
  // These have the order of parameters() and states(). Rows have no gaps, except that parameters
  // and gradients of a layer with multiplies_padding() may have padding.
  absl::Span<const Tensor> parameters;
  absl::Span<const Tensor> gradients;
  absl::Span<const Tensor> states;
  // 16-bit copies of the parameters, in the order of parameters(); rows may have gaps. The tensor
  // of a parameter without a copy is empty. If there are no copies at all, the span is empty.
  absl::Span<const Tensor> copies;
  // The tensors that Forward and Backward get, with the largest number of rows. In a network that
  // is not trained the gradients are empty.
  absl::Span<const Tensor> xs, ys, dys;
  absl::Span<const GradientTarget> dxs;
  // The relu_product of the layer that made xs[0], if this layer is the last to add to the gradient
  // of xs[0]; else null.
  PreparedLinear* input_relu = nullptr;
};

// What a layer knows about the pass that it computes.
struct PassContext {
  static PassContext Evaluation() { return PassContext(); }
  static PassContext Training(int64_t step, int64_t first_sample_of_step, int64_t candidates = 0) {
    return PassContext{true, step, first_sample_of_step, candidates};
  }

  bool training = false;
  // These are for a training pass. Sample i of the part is sample first_sample_of_step + i of the
  // step: no two samples of a step have the same number, even if they are on different ranks.
  int64_t step = 0;
  int64_t first_sample_of_step = 0;
  int64_t candidates = 0;  // of the part

  PassNumbers numbers() const { return {static_cast<uint64_t>(step), first_sample_of_step}; }
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_LAYER_BINDING_H_
