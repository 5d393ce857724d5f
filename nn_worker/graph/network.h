// A Network is the dense part of a model, ready to train: a graph bound to memory, an optimizer and
// the ranks' collective.
//
// One training step of a rank. Samples may be 0; every rank makes the same calls:
//
//     write the part's inputs to input_view(i)   pooled segments straight to where the first layer
//                                                reads
//     Forward(samples, pass)
//     Loss(labels, weights, mask)                dlogits are a sum over samples, not a mean
//     Backward()
//     read input_gradient(i)                     sums too: scatter them to the rows
//     AllReduce(sums)                            the parameter gradients, and sums of the caller
//     Step(dense_step)                           or nothing if the step does not count
//
// Memory. There is one flat buffer each for parameters, gradients and optimizer state. Create
// allocates them and all workspace, for `max_samples`. Parameters begin at multiples of a cache
// line; the gaps hold zeros and stay so. Views stay valid for the life of the network; their values
// change with each pass. An input may lie within the memory of a concatenation, so its stride may
// be wider than its columns.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_GRAPH_NETWORK_H_
#define SATRAP_NN_WORKER_GRAPH_NETWORK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/graph/dense_checkpoint.h"
#include "nn_worker/graph/graph_inputs.h"
#include "nn_worker/layer/layer.h"
#include "nn_worker/optimizer/dense_optimizer.h"
#include "proto/model.pb.h"

namespace satrap {

struct NetworkOptions {
  ModelConfig model;  // with its layers, not only the name of a zoo file
  GraphInputs inputs;
  DenseOptimizerConfig optimizer;
  uint64_t seed = 1;
  int64_t max_samples = 0;           // of one part
  Backend* backend = nullptr;        // outlives the network
  Collective* collective = nullptr;  // of the ranks; outlives the network
};

struct LossSums {
  double loss = 0;    // sum of weight * loss
  double weight = 0;  // sum of weight; of samples that are not masked
};

class Network {
 public:
  // The most sums that AllReduce takes besides the gradients.
  static constexpr int kExtraSums = 8;

  // INVALID_ARGUMENT for a model that does not fit its inputs (graph_builder.h) or an optimizer out
  // of range; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<Network>> Create(const NetworkOptions& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Graph inputs: 0 is "numeric", 1 + i is GraphInputs.segments[i]; behind them the lengths of
  // GraphInputs.sequences.
  int num_inputs() const;
  // (max_samples, values of one sample). Empty if no layer reads the input: it need not be
  // gathered.
  Tensor input_view(int input) const;
  // (max_samples, values of one sample), valid after Backward for the rows of the part. Empty for
  // "numeric", for lengths and for inputs that no layer reads.
  Tensor input_gradient(int input) const;
  // What the views are memory of.
  Backend* backend() const;

  // Computes the logits of rows [0, samples) of the inputs. An evaluation uses no collective, takes
  // batch norm's running statistics and drops nothing; a row's logit then depends on that row
  // alone, bit by bit. An error is the collective's. REQUIRES: samples <= max_samples
  absl::Status Forward(int64_t samples, const PassContext& pass);
  // A copy of the last Forward's logits, one a sample. Waits for the backend.
  std::vector<float> ReadLogits();

  // Enqueues the loss and its gradient. Empty weights or an empty mask mean all 1. A mask of 0
  // leaves a sample out. REQUIRES: a Forward; labels.size() == samples, weights and mask likewise
  // unless empty
  void Loss(absl::Span<const float> labels, absl::Span<const float> weights,
            absl::Span<const float> mask);
  // Of the last Loss, over this rank's part. Waits for the backend.
  LossSums ReadLoss();

  // REQUIRES: a training Forward and its Loss. An error is the collective's.
  absl::Status Backward();
  // Gradients of parameters (before the reduction: this rank's; after: all ranks') and of inputs
  // that are not finite. Waits for the backend.
  int64_t CountNonFiniteGradients();

  // Adds up the gradients and `sums` over all ranks, in place and in one allreduce: every rank
  // calls it with the same number of sums. Waits for the backend. An error is the collective's.
  // REQUIRES: sums.size() <= kExtraSums
  absl::Status AllReduce(absl::Span<float> sums);

  // For tests and tools: the whole flat buffers, (1, values), gaps included.
  Tensor gradients() const;
  Tensor parameters() const;

  // Applies one optimizer step with the reduced gradients; running statistics follow. Every rank
  // calls it, with equal arguments, or none. An error is the collective's.
  absl::Status Step(const DenseStep& step);

  // Trainable values, without gaps: what papers count.
  int64_t num_parameters() const;
  // "deep/linear_0.weight", in the order of parameters().
  std::vector<std::string> parameter_names() const;
  // A copy; NOT_FOUND.
  absl::StatusOr<NamedArray> Parameter(absl::string_view name);

  // Parameters, optimizer state and running statistics, as dense_checkpoint.h.
  std::string Save();
  enum class LoadScope {
    kAll,    // to go on: optimizer state must be there and of the same optimizer
    kModel,  // to start from or to score: optimizer state is left as it is
  };
  // Changes nothing unless it succeeds. DATA_LOSS if damaged; FAILED_PRECONDITION, naming an array,
  // if names or shapes are not those of this network.
  absl::Status Load(absl::string_view bytes, LoadScope scope);

 private:
  struct Rep;
  explicit Network(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_NETWORK_H_
