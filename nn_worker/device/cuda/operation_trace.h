// Times of the operations of a card's streams, by events between them (Device::BeginTrace).
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_DEVICE_CUDA_OPERATION_TRACE_H_
#define SATRAP_NN_WORKER_DEVICE_CUDA_OPERATION_TRACE_H_

#include <cuda_runtime_api.h>

#include <vector>

#include "nn_worker/device/device.h"

namespace satrap {

// The calls apply to the card that the calling thread chose last, and return CUDA's first error.
class OperationTrace {
 public:
  OperationTrace() = default;
  OperationTrace(const OperationTrace&) = delete;
  OperationTrace& operator=(const OperationTrace&) = delete;
  ~OperationTrace();

  // Call before an operation is enqueued on `stream`. `name` must outlive this object.
  cudaError_t Mark(const char* name, cudaStream_t stream);
  // Waits for all operations that were marked, and appends them in the order of Mark.
  cudaError_t End(std::vector<TracedOperation>* operations);

 private:
  struct Begin {
    const char* name;
    cudaStream_t stream;
    cudaEvent_t event;
  };

  std::vector<Begin> begins_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_CUDA_OPERATION_TRACE_H_
