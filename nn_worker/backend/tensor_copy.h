// Typed versions of Backend::CopyIn and CopyOut, which copy between the host and the memory of a
// Backend. Row i of `host` is row i of the tensor, without gaps.
//
// On the host F32 is float, F64 double, U32 uint32_t and U8 uint8_t; F16 and BF16 are their bits in
// a uint16_t. REQUIRES, in all functions: the tensor's dtype matches the host's values; host.size()
// == tensor.size()

#ifndef SATRAP_NN_WORKER_BACKEND_TENSOR_COPY_H_
#define SATRAP_NN_WORKER_BACKEND_TENSOR_COPY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

// The host's memory may be reused as soon as the call returns.
void CopyIn(Backend* backend, absl::Span<const float> host, Tensor tensor);
void CopyIn(Backend* backend, absl::Span<const double> host, Tensor tensor);
void CopyIn(Backend* backend, absl::Span<const uint16_t> host, Tensor tensor);
void CopyIn(Backend* backend, absl::Span<const uint32_t> host, Tensor tensor);
void CopyIn(Backend* backend, absl::Span<const uint8_t> host, Tensor tensor);

// The host's memory is filled when the backend's next Sync returns, or earlier.
void CopyOut(Backend* backend, Tensor tensor, absl::Span<float> host);
void CopyOut(Backend* backend, Tensor tensor, absl::Span<double> host);
void CopyOut(Backend* backend, Tensor tensor, absl::Span<uint16_t> host);
void CopyOut(Backend* backend, Tensor tensor, absl::Span<uint32_t> host);
void CopyOut(Backend* backend, Tensor tensor, absl::Span<uint8_t> host);

// All values of an F32 or F64 tensor. Waits for the backend.
std::vector<float> ReadFloats(Backend* backend, Tensor tensor);
std::vector<double> ReadDoubles(Backend* backend, Tensor tensor);

// Allocates a zeroed tensor in the backend's memory. Rows have no gaps unless `stride` is given.
// RESOURCE_EXHAUSTED.
absl::StatusOr<Tensor> AllocateTensor(Backend* backend, DType dtype, int64_t rows, int64_t cols,
                                      int64_t stride = 0);

// AllocateControl allocates the control of a network, with the initial values of StepControl.
// ReadControl returns a control's values; it waits for the backend.
absl::StatusOr<Tensor> AllocateControl(Backend* backend);
StepControl ReadControl(Backend* backend, Tensor control);

// AllocatePassNumbers allocates memory for PassNumbers. WritePassNumbers copies numbers into it.
absl::StatusOr<Tensor> AllocatePassNumbers(Backend* backend);
void WritePassNumbers(Backend* backend, const PassNumbers& numbers, Tensor memory);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TENSOR_COPY_H_
