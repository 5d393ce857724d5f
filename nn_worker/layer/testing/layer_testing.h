// Tests a layer by comparing its gradients with central differences of its own Forward, on every
// kind of backend.

#ifndef SATRAP_NN_WORKER_LAYER_TESTING_LAYER_TESTING_H_
#define SATRAP_NN_WORKER_LAYER_TESTING_LAYER_TESTING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

// One layer of one rank, bound to its own memory. Inputs and parameters begin with random values.
// The loss is the sum of all outputs, each multiplied by a random weight.
class LayerTester {
 public:
  // `config` is a LayerConfig in text form. A CHECK fails if the layer refuses the config or the
  // shapes.
  LayerTester(Backend* backend, Collective* collective, const std::string& config,
              const std::vector<SampleShape>& inputs, int64_t samples);

  Layer* layer() { return layer_.get(); }
  // Views of the layer's tensors, with all samples.
  std::vector<Tensor>& inputs() { return xs_; }
  std::vector<Tensor>& input_gradients() { return dxs_; }
  std::vector<Tensor>& outputs() { return ys_; }
  std::vector<Tensor>& parameters() { return parameters_; }
  std::vector<Tensor>& parameter_gradients() { return gradients_; }
  std::vector<Tensor>& states() { return states_; }
  std::vector<Tensor>& output_weights() { return weights_; }
  // Decides the step that the next EndStep ends: a step that applies, or one whose samples have no
  // weight. Before the first call the step applies.
  void DecideStep(bool applies);
  PassContext pass;  // training, step 3, first sample 10

  // These functions read or write a single value, or read all values of a tensor. They accept any
  // of the tensors above, and wait for the backend.
  float Get(const Tensor& tensor, int64_t row = 0, int64_t col = 0) const;
  void Set(const Tensor& tensor, int64_t row, int64_t col, float value);
  std::vector<float> Values(const Tensor& tensor) const;
  // All of a tensor, row by row.
  void SetValues(const Tensor& tensor, const std::vector<float>& values);

  absl::Status Forward();
  // Assigns the input gradients or, with `add`, adds them to the values in input_gradients().
  absl::Status Backward(bool add = false);
  // Whether a graph of Forward and Backward gives the same bits as the operations themselves. Also
  // true if there is no graph, because the backend makes none or the layer prevents it.
  bool GivesTheSameBitsFromAGraph();

  // Compares every input and parameter gradient with central differences; returns the largest
  // difference relative to 1 + the gradient. The layer must be smooth at its inputs.
  double LargestGradientError();

 private:
  double Loss();
  double ErrorOf(const std::vector<Tensor>& values, const std::vector<Tensor>& gradients);
  Tensor NewTensor(int64_t rows, int64_t cols, int64_t gap);
  void Randomise(Tensor tensor, int salt);
  // The tensors that Forward and Backward assign.
  std::vector<Tensor> Results() const;
  std::vector<std::vector<float>> ResultValues() const;

  Backend* const backend_;
  std::unique_ptr<Layer> layer_;
  Tensor control_, sums_, pass_numbers_;
  std::vector<Tensor> xs_, ys_, dxs_, dys_, weights_, parameters_, gradients_, states_;
};

// The backends that every layer is tested on: the CPU's, which is the reference; one that behaves
// as a device does; and the kernels of a device on the CPU, without and with the plans of a
// library. In cuda_layer_test the only backend is a card with cuBLASLt.
struct LayerBackend {
  std::string name;
  // If this fails, for example without a card, the tests are skipped with its message.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>()> make;
};
std::vector<LayerBackend> LayerBackends();

// The message with which NewLayer or Infer refuses; empty if neither does.
std::string RefusalOf(const std::string& config, const std::vector<SampleShape>& inputs);

std::string LayerBackendName(const testing::TestParamInfo<LayerBackend>& info);

// The fixture of a layer's tests. Each test file derives its own fixture from this one:
//
//   INSTANTIATE_TEST_SUITE_P(EveryBackend, FmLayerTest, testing::ValuesIn(LayerBackends()),
//                            LayerBackendName);
class LayerTest : public testing::TestWithParam<LayerBackend> {
 protected:
  LayerTest();
  void SetUp() override {
    if (backend_ == nullptr) GTEST_SKIP() << made_.status().message();
  }
  LayerTester Tester(const std::string& config, const std::vector<SampleShape>& inputs,
                     int64_t samples);
  // Expects LargestGradientError to be below `tolerance` for several samples, for one sample and
  // for no sample, both when gradients are assigned and when they are added. Also expects the same
  // bits from a graph.
  void ExpectGradientsFit(const std::string& config, const std::vector<SampleShape>& inputs,
                          double tolerance);
  // Another backend of the same kind.
  std::unique_ptr<Backend> NewBackend() const { return GetParam().make().value(); }

 private:
  absl::StatusOr<std::unique_ptr<Backend>> made_;

 protected:
  const std::unique_ptr<Backend> backend_;
  const std::vector<std::unique_ptr<Collective>> collectives_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_TESTING_LAYER_TESTING_H_
