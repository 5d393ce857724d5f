// Tests a layer by comparing its gradients with central differences of its own Forward.

#ifndef SATRAP_NN_WORKER_LAYER_LAYER_TESTING_H_
#define SATRAP_NN_WORKER_LAYER_LAYER_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn_worker/backend/backend.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

// One layer of one rank, bound to memory of its own. Inputs and parameters begin with random
// values; the loss is sum of output * a random weight.
class LayerTester {
 public:
  // `config` is a LayerConfig in text form. CHECK-fails if the layer refuses it or the shapes.
  LayerTester(Backend* backend, Collective* collective, const std::string& config,
              const std::vector<SampleShape>& inputs, int64_t samples);

  Layer* layer() { return layer_.get(); }
  // Views of the layer's tensors, all samples.
  std::vector<Tensor>& inputs() { return xs_; }
  std::vector<Tensor>& input_gradients() { return dxs_; }
  std::vector<Tensor>& outputs() { return ys_; }
  std::vector<Tensor>& parameters() { return parameters_; }
  std::vector<Tensor>& parameter_gradients() { return gradients_; }
  std::vector<Tensor>& states() { return states_; }
  std::vector<Tensor>& output_weights() { return weights_; }
  PassContext pass;  // training, step 3, first sample 10

  absl::Status Forward();
  // Assigns the input gradients, or, with `add`, adds to what input_gradients() hold.
  absl::Status Backward(bool add = false);

  // Compares every input and parameter gradient with central differences; returns the largest
  // difference relative to 1 + the gradient. The layer must be smooth at its inputs.
  double LargestGradientError();

 private:
  double Loss();
  double ErrorOf(const std::vector<Tensor>& values, const std::vector<Tensor>& gradients);
  Tensor NewTensor(int64_t rows, int64_t cols, int64_t gap);
  void Randomise(Tensor tensor, int salt);

  Backend* const backend_;
  std::unique_ptr<Layer> layer_;
  std::vector<std::vector<float>> memory_;
  std::vector<Tensor> xs_, ys_, dxs_, weights_, parameters_, gradients_, states_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_LAYER_TESTING_H_
