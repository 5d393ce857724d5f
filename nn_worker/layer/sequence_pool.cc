#include "nn_worker/layer/layers.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

SequencePooling PoolingOf(SequencePoolConfig::Kind kind) {
  switch (kind) {
    case SequencePoolConfig::MEAN:
      return SequencePooling::kMean;
    case SequencePoolConfig::SUM:
      return SequencePooling::kSum;
    case SequencePoolConfig::MAX:
      return SequencePooling::kMax;
  }
  CHECK(false) << "no sequence pooling " << kind;
  return SequencePooling::kMean;
}

class SequencePoolLayer final : public BackendLayer {
 public:
  explicit SequencePoolLayer(SequencePooling pooling) : pooling_(pooling) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    if (inputs.size() != 2 || inputs[0].size() != 2 || inputs[1] != SampleShape{1}) {
      std::string got;
      for (const SampleShape& input : inputs) absl::StrAppend(&got, " ", ShapeText(input));
      return absl::InvalidArgumentError(absl::StrCat(
          "takes a sequence [length, dim] and its length [1], got", got.empty() ? " none" : got));
    }
    return std::vector<SampleShape>{{inputs[0][1]}};
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->SequencePool(pooling_, xs[0], xs[1], ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors ys, Tensors dys,
                        GradientTargets dxs) override {
    if (dxs[0].wanted()) {
      backend_->SequencePoolGrad(pooling_, xs[0], xs[1], ys[0], dys[0], dxs[0]);
    }
    // The length has no gradient, because the output does not change continuously with it.
    if (dxs[1].wanted() && !dxs[1].add) backend_->Fill(dxs[1].tensor, 0);
    return absl::OkStatus();
  }

 private:
  const SequencePooling pooling_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewSequencePoolLayer(const SequencePoolConfig& config) {
  return std::make_unique<SequencePoolLayer>(PoolingOf(config.kind()));
}

}  // namespace satrap
