#include <utility>

#include "common/base/status_macros.h"
#include "nn_worker/layer/fields.h"
#include "nn_worker/layer/layers.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

using ShapeOr = absl::StatusOr<SampleShape>;

ShapeOr Concatenated(absl::Span<const SampleShape> inputs) {
  RETURN_IF_ERROR(RequireSomeInput(inputs));
  RETURN_IF_ERROR(RequireVectors(inputs));
  int64_t dim = 0;
  for (const SampleShape& input : inputs) dim += input[0];
  return SampleShape{dim};
}

ShapeOr Stacked(absl::Span<const SampleShape> inputs) {
  ASSIGN_OR_RETURN(const FieldShape fields, FieldsOf(inputs, /*least=*/1));
  return SampleShape{fields.count, fields.dim};
}

ShapeOr Flattened(absl::Span<const SampleShape> inputs) {
  RETURN_IF_ERROR(RequireOneInput(inputs));
  return SampleShape{ShapeSize(inputs[0])};
}

// Whatever the shape of the output is, in memory y consists of the inputs side by side.
class JoiningLayer final : public BackendLayer {
 public:
  using Shape = ShapeOr (*)(absl::Span<const SampleShape> inputs);
  explicit JoiningLayer(Shape shape) : shape_(shape) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    ASSIGN_OR_RETURN(SampleShape shape, shape_(inputs));
    return std::vector<SampleShape>{std::move(shape)};
  }

  bool inputs_within_output() const override { return true; }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    JoinColumns(backend_, xs, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    SplitColumns(backend_, xs, dys[0], dxs);
    return absl::OkStatus();
  }

 private:
  const Shape shape_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewConcatLayer() {
  return std::make_unique<JoiningLayer>(Concatenated);
}
absl::StatusOr<std::unique_ptr<Layer>> NewStackLayer() {
  return std::make_unique<JoiningLayer>(Stacked);
}
absl::StatusOr<std::unique_ptr<Layer>> NewFlattenLayer() {
  return std::make_unique<JoiningLayer>(Flattened);
}

}  // namespace satrap
