// Gives access to the values of a tensor in host memory. Only code that computes in host memory may
// include this file (cpu_*.cc, reference_backend.cc and product_benchmark.cc in nn_worker/backend),
// which tests/style checks. All other code copies values (tensor_copy.h), and so works on any
// backend.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_HOST_TENSOR_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_HOST_TENSOR_H_

#include <cstdint>

#include "common/base/check.h"
#include "nn_worker/backend/tensor.h"
#include "nn_worker/operation/step_control.h"

namespace satrap {

// The values of a row of an F32 tensor.
inline float* FloatsOf(const Tensor& tensor, int64_t row = 0) {
  CHECK(tensor.dtype == DType::kF32);
  return static_cast<float*>(tensor.data) + row * tensor.stride;
}

// The values of a row of an F64 tensor.
inline double* DoublesOf(const Tensor& tensor, int64_t row = 0) {
  CHECK(tensor.dtype == DType::kF64);
  return static_cast<double*>(tensor.data) + row * tensor.stride;
}

// The values of a row of a U32 tensor.
inline uint32_t* UintsOf(const Tensor& tensor, int64_t row = 0) {
  CHECK(tensor.dtype == DType::kU32);
  return static_cast<uint32_t*>(tensor.data) + row * tensor.stride;
}

// A network's control as a StepControl.
inline StepControl* ControlOf(const Tensor& control) {
  CHECK(control.dtype == DType::kU8 && control.rows == 1 && control.cols == sizeof(StepControl))
      << "not a StepControl";
  return static_cast<StepControl*>(control.data);
}

// The bytes of a row, whatever its dtype.
inline uint8_t* BytesOf(const Tensor& tensor, int64_t row = 0) {
  return static_cast<uint8_t*>(tensor.data) + row * tensor.stride * DTypeBytes(tensor.dtype);
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_HOST_TENSOR_H_
