#include "nn_worker/layer/testing/layer_testing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/numeric/random.h"
#include "google/protobuf/text_format.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/tensor_testing.h"
#include "nn_worker/layer/layer_factory.h"
#include "nn_worker/layer/shape.h"

namespace satrap {

std::string LayerBackendName(const testing::TestParamInfo<LayerBackend>& info) {
  return info.param.name;
}

std::string RefusalOf(const std::string& config, const std::vector<SampleShape>& inputs) {
  LayerConfig parsed;
  CHECK(google::protobuf::TextFormat::ParseFromString(config, &parsed)) << config;
  const auto layer = NewLayer(parsed);
  if (!layer.ok()) return std::string(layer.status().message());
  return std::string((*layer)->Infer(inputs).status().message());
}

LayerTest::LayerTest()
    : made_(GetParam().make()),
      backend_(made_.ok() ? *std::move(made_) : nullptr),
      collectives_(NewLocalCollectives(1)) {}

LayerTester LayerTest::Tester(const std::string& config, const std::vector<SampleShape>& inputs,
                              int64_t samples) {
  return LayerTester(backend_.get(), collectives_[0].get(), config, inputs, samples);
}

void LayerTest::ExpectGradientsFit(const std::string& config,
                                   const std::vector<SampleShape>& inputs, double tolerance) {
  for (const int64_t samples : {7, 1, 0}) {
    LayerTester tester = Tester(config, inputs, samples);
    // A layer must overwrite the gradients of its parameters, not add to the gradients of the last
    // step.
    for (const Tensor& gradient : tester.parameter_gradients()) backend_->Fill(gradient, 5);
    EXPECT_LT(tester.LargestGradientError(), tolerance) << config << ", " << samples << " samples";
    EXPECT_TRUE(tester.GivesTheSameBitsFromAGraph()) << config << ", " << samples << " samples";
    // Runs the backward pass once more, with `add`. The result must be twice the gradient.
    std::vector<std::vector<float>> once;
    for (const Tensor& dx : tester.input_gradients()) once.push_back(tester.Values(dx));
    ASSERT_TRUE(tester.Forward().ok());
    ASSERT_TRUE(tester.Backward(/*add=*/true).ok());
    for (size_t i = 0; i < once.size(); ++i) {
      const std::vector<float> twice = tester.Values(tester.input_gradients()[i]);
      for (size_t c = 0; c < twice.size(); ++c) {
        ASSERT_NEAR(twice[c], 2 * once[i][c], 1e-5 * (1 + std::abs(once[i][c])))
            << config << ", " << samples << " samples, input " << i << ", value " << c;
      }
    }
  }
}

LayerTester::LayerTester(Backend* backend, Collective* collective, const std::string& config,
                         const std::vector<SampleShape>& inputs, int64_t samples)
    : pass{true, 3, 10}, backend_(backend) {
  LayerConfig parsed;
  CHECK(google::protobuf::TextFormat::ParseFromString(config, &parsed)) << config;
  auto layer = NewLayer(parsed);
  CHECK_OK(layer.status());
  layer_ = std::move(*layer);
  auto outputs = layer_->Infer(inputs);
  CHECK_OK(outputs.status());
  for (SampleShape& shape : *outputs) {
    std::replace(shape.begin(), shape.end(), kSamplesOfPart, samples);
  }
  int salt = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool of_part = layer_->reads_part(static_cast<int>(i));
    const int64_t rows = of_part ? inputs[i][0] : samples;
    const int64_t cols = of_part ? inputs[i][1] : ShapeSize(inputs[i]);
    // Rows are padded, differently for inputs, gradients and outputs. A layer that uses the wrong
    // stride reads the values between rows, which are NaN on the host's device.
    xs_.push_back(NewTensor(rows, cols, 3));
    dxs_.push_back(NewTensor(rows, cols, 2));
    Randomise(xs_.back(), ++salt);
  }
  for (const SampleShape& shape : *outputs) {
    ys_.push_back(NewTensor(samples, ShapeSize(shape), 1));
    dys_.push_back(NewTensor(samples, ShapeSize(shape), 0));
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
  // Batch norm's running statistics change only in a step that applies.
  const auto control = AllocateControl(backend_);
  CHECK_OK(control.status());
  control_ = *control;
  sums_ = NewTensor(1, kNumStepSums, 0);
  DecideStep(true);
  LayerBinding binding;
  binding.control = control_;
  pass_numbers_ = AllocatePassNumbers(backend_).value();
  binding.pass_numbers = pass_numbers_;
  binding.backend = backend;
  binding.collective = collective;
  binding.max_samples = samples;
  binding.seed = 5;
  binding.parameters = parameters_;
  binding.gradients = gradients_;
  binding.states = states_;
  std::vector<GradientTarget> targets;
  for (const Tensor& dx : dxs_) targets.push_back({dx, /*add=*/false});
  binding.xs = xs_;
  binding.ys = ys_;
  binding.dys = dys_;
  binding.dxs = targets;
  CHECK_OK(layer_->Bind(binding));
}

void LayerTester::DecideStep(bool applies) {
  CopyIn(backend_, std::vector<float>{1, applies ? 1.0f : 0.0f, 0}, sums_);
  backend_->DecideStep(StepPlan(), sums_, control_);
}

Tensor LayerTester::NewTensor(int64_t rows, int64_t cols, int64_t gap) {
  const auto tensor = AllocateTensor(backend_, DType::kF32, rows, cols, cols + gap);
  CHECK_OK(tensor.status());
  return *tensor;
}

void LayerTester::Randomise(Tensor tensor, int salt) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.rows; ++i) {
    for (int64_t c = 0; c < tensor.cols; ++c) {
      values.push_back(static_cast<float>(2 * UniformDouble(RandomBits(salt, i, c)) - 1));
    }
  }
  CopyIn(backend_, values, tensor);
}

float LayerTester::Get(const Tensor& tensor, int64_t row, int64_t col) const {
  return ValueAt(backend_, tensor, row, col);
}
void LayerTester::Set(const Tensor& tensor, int64_t row, int64_t col, float value) {
  SetValueAt(backend_, tensor, row, col, value);
}
std::vector<float> LayerTester::Values(const Tensor& tensor) const {
  return ReadFloats(backend_, tensor);
}

void LayerTester::SetValues(const Tensor& tensor, const std::vector<float>& values) {
  CopyIn(backend_, values, tensor);
}

absl::Status LayerTester::Forward() {
  WritePassNumbers(backend_, pass.numbers(), pass_numbers_);
  return layer_->Forward(pass, xs_, ys_);
}

absl::Status LayerTester::Backward(bool add) {
  // The layer may overwrite dy, so it gets a copy.
  for (size_t o = 0; o < dys_.size(); ++o) backend_->Copy(weights_[o], dys_[o], /*add=*/false);
  std::vector<GradientTarget> targets;
  for (const Tensor& dx : dxs_) targets.push_back({dx, add});
  return layer_->Backward(pass, xs_, ys_, dys_, targets);
}

std::vector<Tensor> LayerTester::Results() const {
  std::vector<Tensor> results = ys_;
  results.insert(results.end(), dxs_.begin(), dxs_.end());
  results.insert(results.end(), gradients_.begin(), gradients_.end());
  return results;
}

std::vector<std::vector<float>> LayerTester::ResultValues() const {
  std::vector<std::vector<float>> values;
  for (const Tensor& result : Results()) values.push_back(Values(result));
  return values;
}

bool LayerTester::GivesTheSameBitsFromAGraph() {
  if (backend_->GraphEpoch() < 0 || layer_->prevents_capture()) return true;
  // As in a network, the pass runs once before it is captured, so that its lists are in device
  // memory.
  CHECK_OK(Forward());
  CHECK_OK(Backward());
  const std::vector<std::vector<float>> expected = ResultValues();
  const auto graph = backend_->Capture([this]() -> absl::Status {
    RETURN_IF_ERROR(layer_->Forward(pass, xs_, ys_));
    return Backward();
  });
  CHECK_OK(graph.status());
  for (const Tensor& result : Results()) backend_->Fill(result, 5);
  backend_->Enqueue(graph->get());
  const std::vector<std::vector<float>> got = ResultValues();
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t bytes = got[i].size() * sizeof(float);
    if (bytes > 0 && std::memcmp(got[i].data(), expected[i].data(), bytes) != 0) return false;
  }
  return true;
}

double LayerTester::Loss() {
  CHECK_OK(Forward());
  double loss = 0;
  for (size_t o = 0; o < ys_.size(); ++o) {
    const std::vector<float> y = ReadFloats(backend_, ys_[o]);
    const std::vector<float> weight = ReadFloats(backend_, weights_[o]);
    for (size_t i = 0; i < y.size(); ++i) loss += static_cast<double>(y[i]) * weight[i];
  }
  return loss;
}

double LayerTester::ErrorOf(const std::vector<Tensor>& values,
                            const std::vector<Tensor>& gradients) {
  // kDelta is a power of two, so that adding it rounds little. The error of the central difference
  // is of the order of kDelta^2.
  constexpr float kDelta = 1.0f / 256;
  double largest = 0;
  for (size_t t = 0; t < values.size(); ++t) {
    for (int64_t i = 0; i < values[t].rows; ++i) {
      for (int64_t c = 0; c < values[t].cols; ++c) {
        const float kept = Get(values[t], i, c);
        Set(values[t], i, c, kept + kDelta);
        const double above = Loss();
        Set(values[t], i, c, kept - kDelta);
        const double below = Loss();
        Set(values[t], i, c, kept);
        const double want = (above - below) / (2 * kDelta);
        const double got = Get(gradients[t], i, c);
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
