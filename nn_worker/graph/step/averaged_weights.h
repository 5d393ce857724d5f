// Keeps the means of a network's parameters over its steps (AveragedWeightsConfig), and lets them
// replace the parameters for evaluations.
//
// Layers read the parameters in place. For an evaluation with the means, the means are copied
// there, and the trained values are kept elsewhere until the evaluation ends. This costs two more
// buffers of the size of the parameters.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_GRAPH_STEP_AVERAGED_WEIGHTS_H_
#define SATRAP_NN_WORKER_GRAPH_STEP_AVERAGED_WEIGHTS_H_

#include "absl/status/statusor.h"
#include "nn_worker/backend/backend.h"

namespace satrap {

class AveragedWeights {
 public:
  // `parameters` is (1, values) of `backend`; both outlive this object. Call Reset before any other
  // method. RESOURCE_EXHAUSTED if there is no memory for the averages.
  static absl::StatusOr<AveragedWeights> Create(float decay, Tensor parameters, Backend* backend);

  // Sets the averages to the current parameters. REQUIRES: Show(false)
  void Reset();
  // Call after each step of the optimizer; does nothing if `control` did not apply it.
  // REQUIRES: Show(false)
  void Follow(Tensor control);
  // Swaps the averages in (true), or the trained values back (false). Returns whether the
  // parameters changed.
  bool Show(bool averages);

  Tensor averages() const { return averages_; }  // (1, values)

 private:
  AveragedWeights(float decay, Tensor parameters, Tensor averages, Tensor trained, Backend* backend)
      : decay_(decay),
        parameters_(parameters),
        averages_(averages),
        trained_(trained),
        backend_(backend) {}

  float decay_;
  Tensor parameters_;
  Tensor averages_;
  Tensor trained_;  // the trained values, while the parameters are the means
  Backend* backend_;
  bool shown_ = false;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_STEP_AVERAGED_WEIGHTS_H_
