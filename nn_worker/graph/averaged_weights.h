// The means of a network's parameters over its steps (AveragedWeightsConfig), and their use in the place
// of the parameters.
//
// Layers read the parameters where they lie. To evaluate with the means, these are copied there, and
// what was trained is kept aside meanwhile. It costs two more buffers of the size of the parameters.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_GRAPH_AVERAGED_WEIGHTS_H_
#define SATRAP_NN_WORKER_GRAPH_AVERAGED_WEIGHTS_H_

#include "absl/status/statusor.h"
#include "nn_worker/backend/backend.h"

namespace satrap {

class AveragedWeights {
 public:
  // `parameters` is (1, values) of `backend`; both outlive this object. Reset must come first.
  // RESOURCE_EXHAUSTED.
  static absl::StatusOr<AveragedWeights> Create(float decay, Tensor parameters, Backend* backend);

  // The means become what the parameters are. REQUIRES: these are what was trained
  void Reset();
  // After the optimizer's step that `control` decided. REQUIRES: the parameters are what was trained
  void Follow(Tensor control);
  // Makes the parameters the means, or again what was trained. Returns whether they changed.
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
  Tensor trained_;  // while the parameters are the means
  Backend* backend_;
  bool shown_ = false;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_AVERAGED_WEIGHTS_H_
