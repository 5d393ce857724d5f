// The training step of a model's dense network by itself, for benchmarks of devices. The step reads
// rows, and the row number of each id, from the memory of a backend. It writes the gradients of
// these rows to that memory, too, and makes a step of Adam. There are no messages and no other
// ranks, and the rows do not change.
//
// One step, all of it enqueued as operations of the backend:
//
//     GatherRows         the numerics, and the row of each id, into the network's inputs
//     Network::Train     forward, loss and backward, as a graph if that is asked for. It copies the
//                        labels in, 4 bytes a sample
//     ScatterGradients   into (rows, values of a row), F32
//     Network::Step      Adam
//
// As in a job, the inverse of the ids, which ScatterGradients may read, is made beforehand. Unlike
// in a job, nothing checks for gradients that are not finite, except in F16, whose loss scale
// depends on that.
//
// The part is synthetic, and the same in every step and on every backend. Each feature has one id
// per sample, drawn uniformly from a vocabulary so large that about half of the part's ids are
// distinct. Labels follow from the numerics and the rows, so that there is something to learn.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_BACKEND_BENCHMARK_MODEL_STEP_H_
#define SATRAP_NN_WORKER_BACKEND_BENCHMARK_MODEL_STEP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/row_exchange_args.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/zoo/zoo.h"
#include "proto/job.pb.h"
#include "proto/model.pb.h"

namespace satrap {

struct ModelStepOptions {
  ModelConfig model;  // with its layers; its inputs are ExampleInputs(model, data)
  ExampleData data;
  int64_t samples = 0;
  NnWorkerConfig::Precision precision = NnWorkerConfig::F32;  // the backend was made for it
  bool graph_capture = true;
  std::function<void(const absl::Status&)> on_graph_refusal;  // as in NetworkOptions; may be null
  Backend* backend = nullptr;                                 // outlives the step
};

class ModelStep {
 public:
  // Errors as Network::Create. REQUIRES: samples > 0; the model reads features only as "*.SEGMENT"
  static absl::StatusOr<std::unique_ptr<ModelStep>> Create(const ModelStepOptions& options);

  // Enqueues a step. Waits for the device only in F16. Returns the device's error, if it has
  // failed.
  absl::Status Run();

  // The mean loss of a sample in the last Run. Waits for the backend.
  double ReadLoss();
  int64_t graph_launches() const { return network_->graph_launches(); }
  int64_t num_rows() const { return row_gradients_.rows; }
  // (num_rows, values of a row): sums over the samples, with the network's gradient scale.
  Tensor row_gradients() const { return row_gradients_; }

 private:
  struct Part;  // on the host

  ModelStep(const ModelStepOptions& options, GraphInputs inputs);
  static Part MakePart(const ModelStepOptions& options, int64_t row_values);
  // Copies the part into the backend's memory, and prepares what the steps gather and scatter.
  absl::Status Bind(const Part& part, int64_t row_values);

  const int64_t samples_;
  const GraphInputs inputs_;
  const std::vector<std::unique_ptr<Collective>> collectives_;
  std::unique_ptr<Network> network_;
  Backend* const backend_;
  std::vector<float> labels_;
  std::vector<FeatureExchange> gathers_, scatters_;
  RowInverse inverse_;
  Tensor row_gradients_;
  int64_t step_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BENCHMARK_MODEL_STEP_H_
