// Adds up the parameter gradients of a network over the ranks.
//
//   device, ranks        added up by
//   the CPU's            the collective, in place
//   another, one rank    nothing: the gradients are their own sum
//   another, several     the collective, through pinned memory; or a DeviceReduction, from device
//                        to device, if the network has one
//
// All of them give the same bits on every rank.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_GRAPH_STEP_GRADIENT_SUMS_H_
#define SATRAP_NN_WORKER_GRAPH_STEP_GRADIENT_SUMS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn_worker/backend/device_memory.h"
#include "nn_worker/backend/tensor.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/collective/device_reduction.h"

namespace satrap {

class GradientSums {
 public:
  // Ends a sum in progress. If a collective makes the sum, waits until it has ended; if a
  // DeviceReduction makes it, aborts the DeviceReduction.
  virtual ~GradientSums() = default;

  // Begins to add up the gradients, in place, once the operations enqueued so far have run. Until
  // Finish, the caller must make no other call of the collective, and nothing else may touch the
  // gradients. An error comes from the collective, the reduction or the device; there is then no
  // sum to finish.
  virtual absl::Status Start() = 0;
  // Waits for the sums: operations enqueued from then on see them. Errors are those of Start. A
  // wait ends soon after the collective or the reduction has been aborted. REQUIRES: Start
  virtual absl::Status Finish() = 0;
  // The sums, if the host has a copy of them in pinned memory; else empty. Valid until the next
  // Start.
  virtual absl::Span<const float> HostCopy() const { return {}; }
};

// `gradients`: F32 (1, size), in `memory`. `reduction` may be null. All must outlive the result.
// RESOURCE_EXHAUSTED for the pinned memory; the device's error.
absl::StatusOr<std::unique_ptr<GradientSums>> NewGradientSums(DeviceMemory* memory,
                                                              Collective* collective,
                                                              DeviceReduction* reduction,
                                                              const Tensor& gradients);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_STEP_GRADIENT_SUMS_H_
