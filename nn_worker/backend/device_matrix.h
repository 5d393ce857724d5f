// The tensors of a DeviceBackend as its kernels take them.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_MATRIX_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_MATRIX_H_

#include <cstdint>

#include "common/base/check.h"
#include "nn_worker/backend/step_control.h"
#include "nn_worker/backend/tensor.h"
#include "nn_worker/device/kernels/matrix.h"

namespace satrap {

// The address of the first value. REQUIRES: the tensor has that dtype
inline float* F32Data(const Tensor& tensor) {
  CHECK(tensor.dtype == DType::kF32) << "a kernel of F32 values got another dtype";
  return static_cast<float*>(tensor.data);
}
inline double* F64Data(const Tensor& tensor) {
  CHECK(tensor.dtype == DType::kF64) << "a kernel of F64 values got another dtype";
  return static_cast<double*>(tensor.data);
}
inline uint32_t* U32Data(const Tensor& tensor) {
  CHECK(tensor.empty() || tensor.dtype == DType::kU32) << "a kernel of U32 got another dtype";
  return static_cast<uint32_t*>(tensor.data);
}

// The control of a network (backend.h).
inline StepControl* ControlData(const Tensor& control) {
  CHECK(control.dtype == DType::kU8 && control.cols == sizeof(StepControl)) << "not a StepControl";
  return static_cast<StepControl*>(control.data);
}

inline Matrix<float> F32Matrix(const Tensor& tensor) {
  return {F32Data(tensor), tensor.rows, tensor.cols, tensor.stride};
}
inline Matrix<const float> ConstF32Matrix(const Tensor& tensor) {
  return {F32Data(tensor), tensor.rows, tensor.cols, tensor.stride};
}

// Whether groups of 4 values that begin at multiples of 4 values of a row are one access each.
inline bool GroupsOfRowsAligned(const Tensor& tensor) {
  const int64_t bytes = 4 * DTypeBytes(tensor.dtype);
  return reinterpret_cast<uintptr_t>(tensor.data) % bytes == 0 &&
         (tensor.rows <= 1 || tensor.stride % 4 == 0);
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_MATRIX_H_
