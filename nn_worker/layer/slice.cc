#include "nn_worker/layer/layers.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class SliceLayer final : public BackendLayer {
 public:
  explicit SliceLayer(const SliceConfig& config) : config_(config) {}

  int num_outputs() const override { return config_.ranges_size(); }

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    std::vector<SampleShape> outputs;
    for (const SliceConfig::Range& range : config_.ranges()) {
      if (range.begin() + int64_t{range.size()} > inputs[0][0]) {
        return absl::InvalidArgumentError(absl::StrCat("the range of ", range.size(),
                                                       " elements from ", range.begin(),
                                                       " is not within ", ShapeText(inputs[0])));
      }
      outputs.push_back(inputs[0]);
      outputs.back()[0] = range.size();
    }
    width_ = inputs[0].size() == 1 ? 1 : inputs[0][1];
    return outputs;
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    for (int i = 0; i < config_.ranges_size(); ++i) {
      backend_->Copy(RangeOf(xs[0], i), ys[i], /*add=*/false);
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    if (!dxs[0].wanted()) return absl::OkStatus();
    // Ranges may overlap or leave values out, so their gradients are added to zeros.
    if (!dxs[0].add) backend_->Fill(dxs[0].tensor, 0);
    for (int i = 0; i < config_.ranges_size(); ++i) {
      backend_->Copy(dys[i], RangeOf(dxs[0].tensor, i), /*add=*/true);
    }
    return absl::OkStatus();
  }

 private:
  Tensor RangeOf(const Tensor& x, int i) const {
    return x.Columns(config_.ranges(i).begin() * width_, config_.ranges(i).size() * width_);
  }

  const SliceConfig config_;
  int64_t width_ = 1;  // values of one element of the first axis
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewSliceLayer(const SliceConfig& config) {
  if (config.ranges().empty()) return absl::InvalidArgumentError("needs at least one range");
  return std::make_unique<SliceLayer>(config);
}

}  // namespace satrap
