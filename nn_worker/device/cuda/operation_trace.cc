#include "nn_worker/device/cuda/operation_trace.h"

#include <cstddef>
#include <map>

namespace satrap {

OperationTrace::~OperationTrace() {
  for (const Begin& begin : begins_) cudaEventDestroy(begin.event);
}

cudaError_t OperationTrace::Mark(const char* name, cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  const cudaError_t error = cudaEventCreate(&event);
  if (error != cudaSuccess) return error;
  begins_.push_back({name, stream, event});
  return cudaEventRecord(event, stream);
}

cudaError_t OperationTrace::End(std::vector<TracedOperation>* operations) {
  const size_t count = begins_.size();
  std::map<cudaStream_t, cudaEvent_t> ends;  // of the operation that was visited last
  for (const Begin& begin : begins_) ends[begin.stream] = nullptr;
  for (auto& [stream, end] : ends) {
    cudaError_t error = Mark("", stream);
    end = begins_.back().event;
    if (error == cudaSuccess) error = cudaEventSynchronize(end);
    if (error != cudaSuccess) return error;
  }
  std::vector<TracedOperation> traced(count);
  for (size_t i = count; i-- > 0;) {
    float milliseconds = 0;
    cudaEvent_t& end = ends[begins_[i].stream];
    const cudaError_t error = cudaEventElapsedTime(&milliseconds, begins_[i].event, end);
    if (error != cudaSuccess) return error;
    traced[i] = {begins_[i].name, 1e3 * static_cast<double>(milliseconds)};
    end = begins_[i].event;
  }
  operations->insert(operations->end(), traced.begin(), traced.end());
  return cudaSuccess;
}

}  // namespace satrap
