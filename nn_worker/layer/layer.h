// A Layer is a differentiable function from n tensors to m tensors, with its parameters. Each layer
// has its own file, with forward and backward next to each other. A layer is written against
// Backend and knows nothing of the graph around it.
//
// Life: NewLayer (layer_factory.h); Infer once, with the shapes of its inputs; then parameters()
// and states() say what it needs; Bind once; then Forward, and after a training Forward at most one
// Backward; EndStep at the end of every step.
//
// Memory. Parameters, their gradients and the states lie in the network's flat buffers; a layer
// gets views. In Backward, a layer reads x and y again, which stay unchanged. For anything else
// that it keeps from Forward to Backward, it allocates memory in Bind.
//
// Gradients. Backward ASSIGNS parameter gradients (sums over the part's samples, not means); a part
// of zero samples gives zeros. Each wanted dx is assigned or added to, as its target says, in the
// order of the inputs: the same tensor may be given twice. The layer may overwrite dy. A dx never
// overlaps an x, a y or the dy, with one exception: the dx of a layer whose output holds its inputs
// (inputs_within_output) may be the matching columns of dy.
//
// Dtypes. xs, ys and their gradients may be F32, F16 or BF16, also in one call; parameters,
// gradients of parameters, states and what a layer allocates for itself are F32 or F64.
//
// Zero samples are legal. A layer that uses the collective makes the same calls for them, because
// the other ranks would wait for it otherwise.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_LAYER_LAYER_H_
#define SATRAP_NN_WORKER_LAYER_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn_worker/layer/layer_binding.h"

namespace satrap {

// The shape of one sample: [dim], or [length, dim] for a sequence.
using SampleShape = absl::InlinedVector<int64_t, 2>;

// Infer returns this as the size of an output that has one column for each sample of the part. The
// graph replaces it with the largest size of a part.
inline constexpr int64_t kSamplesOfPart = -1;

struct ParameterSpec {
  enum class Initial { kConstant, kNormal, kUniform };
  std::string name;  // within the layer: "weight"
  int64_t rows = 1;
  int64_t cols = 1;
  Initial initial = Initial::kConstant;
  double scale = 0;  // the constant; the standard deviation; the bound of [-bound, bound)
  // Whether the layer's products can read a 16-bit copy of this parameter. If so, and if the
  // network computes in 16 bits, the layer gets such a copy, which is made anew from the parameter
  // after each step. Otherwise its products read the parameter itself.
  bool in_products = false;
  // Whether this parameter is a bias of such products. If so, the layer gets a 16-bit copy on a
  // backend that adds biases in the type of results (LinearOperations::takes_rounded_biases).
  bool added_to_products = false;
};

// Values that belong to a model but have no gradient, such as running statistics. One row.
struct StateSpec {
  std::string name;
  int64_t cols = 1;
  float initial = 0;
};

class Layer {
 public:
  virtual ~Layer() = default;

  virtual int num_outputs() const { return 1; }
  // True if the input belongs to the part instead of its samples, as candidates do. Its shape is
  // then [most rows, dim], and its tensor has (rows of the part, dim).
  virtual bool reads_part(int /*input*/) const { return false; }
  // The shapes of the num_outputs() outputs. INVALID_ARGUMENT, naming the input that does not fit;
  // the caller adds the layer's name to the message.
  virtual absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) = 0;
  virtual std::vector<ParameterSpec> parameters() const { return {}; }
  virtual std::vector<StateSpec> states() const { return {}; }
  // True if each row of output 0 consists of the rows of the inputs, one after another. The graph
  // may then place the inputs within the output, so that there is nothing to copy.
  virtual bool inputs_within_output() const { return false; }
  // True if the layer's products read and write the padding (tensor.h) of input 0, of output 0, of
  // their gradients, and of the parameters and their gradients. A parameter of such a layer has one
  // row, or a row for each value of the input, and a column for each value of the output.
  virtual bool multiplies_padding() const { return false; }
  // True if no gradient flows from the output to the inputs. Backward is then not called.
  virtual bool stops_gradient() const { return false; }
  // Multiplications and additions of the products in Forward, for one sample. Called after Infer.
  virtual int64_t ForwardFlops() const {
    int64_t values = 0;
    for (const ParameterSpec& spec : parameters()) values += spec.rows * spec.cols;
    return 2 * values;
  }

  // True if Forward or Backward of a training pass uses the collective or copies to the host, and
  // so cannot be captured in a graph (DeviceMemory::Capture). Call after Bind. If false, two
  // training passes over the same tensors, with the same numbers of samples and candidates, must
  // enqueue the same operations with the same arguments; values that differ from pass to pass must
  // be read from memory that the binding names.
  virtual bool prevents_capture() const { return false; }

  // RESOURCE_EXHAUSTED if the workspace cannot be allocated; the backend's error.
  virtual absl::Status Bind(const LayerBinding& binding) = 0;
  // The backend's object for the product whose ReLU is output 0; null if there is none. Call after
  // Bind.
  virtual PreparedLinear* relu_product() const { return nullptr; }

  // xs and ys: (samples, product of the shape) each. Fails only if a collective fails.
  virtual absl::Status Forward(const PassContext& pass, absl::Span<const Tensor> xs,
                               absl::Span<const Tensor> ys) = 0;
  // REQUIRES: the last Forward was a training pass over the same tensors
  virtual absl::Status Backward(const PassContext& pass, absl::Span<const Tensor> xs,
                                absl::Span<const Tensor> ys, absl::Span<const Tensor> dys,
                                absl::Span<const GradientTarget> dxs) = 0;
  // Called when the step of the last training pass is decided: updates the states if the control
  // applies. Every rank calls it in every step, because the host does not always know whether the
  // control applies. Fails only if a collective fails.
  virtual absl::Status EndStep() { return absl::OkStatus(); }
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_LAYER_H_
