// Code that the layers share: checks of sample shapes, their text in messages, and the backend.

#ifndef SATRAP_NN_WORKER_LAYER_SHAPE_H_
#define SATRAP_NN_WORKER_LAYER_SHAPE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

// "[16]", "[50, 16]".
std::string ShapeText(const SampleShape& shape);
// Values of one sample.
int64_t ShapeSize(const SampleShape& shape);

// RequireOneInput returns INVALID_ARGUMENT unless there is exactly one input. RequireSomeInput
// returns it unless there is at least one input.
absl::Status RequireOneInput(absl::Span<const SampleShape> inputs);
absl::Status RequireSomeInput(absl::Span<const SampleShape> inputs);
// INVALID_ARGUMENT unless every input is [dim].
absl::Status RequireVectors(absl::Span<const SampleShape> inputs);
// INVALID_ARGUMENT unless all inputs have the shape of the first.
absl::Status RequireEqualShapes(absl::Span<const SampleShape> inputs);

using Tensors = absl::Span<const Tensor>;
using GradientTargets = absl::Span<const GradientTarget>;

// A layer that has no workspace unless it overrides Bind.
class BackendLayer : public Layer {
 public:
  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    return absl::OkStatus();
  }

 protected:
  Backend* backend_ = nullptr;  // from Bind on
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_SHAPE_H_
