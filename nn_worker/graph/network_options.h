// The options of a Network, and the values that decide how its steps end.

#ifndef SATRAP_NN_WORKER_GRAPH_NETWORK_OPTIONS_H_
#define SATRAP_NN_WORKER_GRAPH_NETWORK_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/collective/device_reduction.h"
#include "nn_worker/graph/model/graph_inputs.h"
#include "nn_worker/graph/step/loss_scale.h"
#include "proto/model.pb.h"

namespace satrap {

struct NetworkOptions {
  ModelConfig model;  // with its layers, not only the name of a zoo file
  GraphInputs inputs;
  DenseOptimizerConfig optimizer;
  uint64_t seed = 1;
  int64_t max_samples = 0;  // of one part
  // Parts of this many samples also count as full: if the number of ranks does not divide the
  // global batch, parts have two sizes. 0: only parts of max_samples are full.
  int64_t min_full_samples = 0;
  // If false, the network only computes evaluations: it has no memory for gradients, losses and the
  // optimizer's state, and it can load models only with LoadScope::kModel.
  bool trains = true;
  // If this is not empty, the network only computes these values of the model (output_model.h),
  // instead of its tasks' outputs, whatever `trains` says. When it loads a model, it ignores the
  // arrays that it does not need.
  std::vector<std::string> outputs;
  // The type of activations, of their gradients, and of the factors of matrix products: F32, F16 or
  // BF16.
  DType dtype = DType::kF32;
  GradientScale gradient_scale;  // from the first step on
  // Whether Train enqueues full parts as graphs, if the backend supports graphs. Layers that
  // prevent a capture stay outside of the graphs.
  bool graph_capture = true;
  // Called once if the device refuses a graph, with a message for the user; may be null.
  std::function<void(const absl::Status&)> on_graph_refusal;
  Backend* backend = nullptr;        // outlives the network
  Collective* collective = nullptr;  // of the ranks; outlives the network
  // Adds up the gradients of several ranks from device to device. If null, the network's Collective
  // adds them up instead. Outlives the network.
  DeviceReduction* reduction = nullptr;
};

// The sums over all ranks that decide a step (Backend::DecideStep).
struct StepTotals {
  float samples = 0;
  float weight = 0;      // 0: the step does not count
  float not_finite = 0;  // ranks that saw a gradient that is infinite or NaN
};

// How much of a saved model a network loads.
enum class LoadScope {
  kAll,  // to continue: optimizer state must be there and of the same optimizer
  // For a model to start from or to score with. Optimizer state is not loaded. If the network keeps
  // averages and the model has none, they begin at the model's parameters.
  kModel,
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_NETWORK_OPTIONS_H_
