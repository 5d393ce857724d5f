#include "nn_worker/layer/layer_testing.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "google/protobuf/text_format.h"
#include "nn_worker/layer/layer_factory.h"
#include "nn_worker/layer/shape.h"

namespace satrap {

LayerTester::LayerTester(Backend* backend, Collective* collective, const std::string& config,
                         const std::vector<SampleShape>& inputs, int64_t samples)
    : pass{true, 3, 10}, backend_(backend) {
  LayerConfig parsed;
  CHECK(google::protobuf::TextFormat::ParseFromString(config, &parsed)) << config;
  auto layer = NewLayer(parsed);
  CHECK_OK(layer.status());
  layer_ = std::move(*layer);
  const auto outputs = layer_->Infer(inputs);
  CHECK_OK(outputs.status());
  int salt = 0;
  for (const SampleShape& shape : inputs) {
    xs_.push_back(NewTensor(samples, ShapeSize(shape), 3));
    dxs_.push_back(NewTensor(samples, ShapeSize(shape), 2));
    Randomise(xs_.back(), ++salt);
  }
  for (const SampleShape& shape : *outputs) {
    ys_.push_back(NewTensor(samples, ShapeSize(shape), 1));
    weights_.push_back(NewTensor(samples, ShapeSize(shape), 0));
    Randomise(weights_.back(), ++salt);
  }
  for (const ParameterSpec& spec : layer_->parameters()) {
    parameters_.push_back(NewTensor(spec.rows, spec.cols, 0));
    gradients_.push_back(NewTensor(spec.rows, spec.cols, 0));
    Randomise(parameters_.back(), ++salt);
  }
  for (const StateSpec& spec : layer_->states()) {
    states_.push_back(NewTensor(1, spec.cols, 0));
    backend_->Fill(states_.back(), spec.initial);
  }
  LayerBinding binding;
  binding.backend = backend;
  binding.collective = collective;
  binding.max_samples = samples;
  binding.seed = 5;
  binding.parameters = parameters_;
  binding.gradients = gradients_;
  binding.states = states_;
  CHECK_OK(layer_->Bind(binding));
}

Tensor LayerTester::NewTensor(int64_t rows, int64_t cols, int64_t gap) {
  memory_.emplace_back(std::max<int64_t>(1, rows * (cols + gap)), 0.0f);
  return {DType::kF32, memory_.back().data(), rows, cols, cols + gap};
}

void LayerTester::Randomise(Tensor tensor, int salt) {
  for (int64_t i = 0; i < tensor.rows; ++i) {
    for (int64_t c = 0; c < tensor.cols; ++c) {
      tensor.f32(i)[c] = static_cast<float>(2 * UniformDouble(RandomBits(salt, i, c)) - 1);
    }
  }
}

absl::Status LayerTester::Forward() { return layer_->Forward(pass, xs_, ys_); }

absl::Status LayerTester::Backward(bool add) {
  std::vector<std::vector<float>> copies;  // dy is the layer's to overwrite
  std::vector<Tensor> dys;
  for (const Tensor& weight : weights_) {
    copies.emplace_back(weight.f32(), weight.f32() + weight.size());
    dys.push_back(TensorF32(copies.back().data(), weight.rows, weight.cols));
  }
  std::vector<GradientTarget> targets;
  for (const Tensor& dx : dxs_) targets.push_back({dx, add});
  return layer_->Backward(pass, xs_, ys_, dys, targets);
}

double LayerTester::Loss() {
  CHECK_OK(Forward());
  double loss = 0;
  for (size_t o = 0; o < ys_.size(); ++o) {
    for (int64_t i = 0; i < ys_[o].rows; ++i) {
      for (int64_t c = 0; c < ys_[o].cols; ++c) {
        loss += static_cast<double>(ys_[o].f32(i)[c]) * weights_[o].f32(i)[c];
      }
    }
  }
  return loss;
}

double LayerTester::ErrorOf(const std::vector<Tensor>& values,
                            const std::vector<Tensor>& gradients) {
  constexpr float kDelta = 1.0f / 256;
  double largest = 0;
  for (size_t t = 0; t < values.size(); ++t) {
    for (int64_t i = 0; i < values[t].rows; ++i) {
      for (int64_t c = 0; c < values[t].cols; ++c) {
        float* value = values[t].f32(i) + c;
        const float kept = *value;
        *value = kept + kDelta;
        const double above = Loss();
        *value = kept - kDelta;
        const double below = Loss();
        *value = kept;
        const double want = (above - below) / (2 * kDelta);
        const double got = gradients[t].f32(i)[c];
        largest = std::max(largest, std::abs(got - want) / (1 + std::abs(want)));
      }
    }
  }
  return largest;
}

double LayerTester::LargestGradientError() {
  CHECK_OK(Forward());
  CHECK_OK(Backward());
  return std::max(ErrorOf(xs_, dxs_), ErrorOf(parameters_, gradients_));
}

}  // namespace satrap
