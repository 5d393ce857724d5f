// Converts the tensors of a DeviceBackend to the arguments of its kernels.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_MATRIX_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_MATRIX_H_

#include <cstdint>

#include "common/base/check.h"
#include "nn_worker/backend/tensor.h"
#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/step_control.h"

namespace satrap {

// The address of the first value. REQUIRES: the tensor has the dtype of the function's name
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

// The type of samples' values or their gradients, which may have 16 bits. REQUIRES: F32, F16 or
// BF16
inline ElementType ElementTypeOf(DType dtype) {
  CHECK(dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16)
      << "a kernel of F32, F16 and BF16 values got another dtype";
  if (dtype == DType::kF32) return ElementType::kF32;
  return dtype == DType::kF16 ? ElementType::kF16 : ElementType::kBF16;
}
inline Values ValuesOf(const Tensor& tensor) {
  return {tensor.data, tensor.rows, tensor.cols, tensor.stride, ElementTypeOf(tensor.dtype)};
}
inline ConstValues ConstValuesOf(const Tensor& tensor) { return ValuesOf(tensor); }

inline void CheckSameShape(const Tensor& a, const Tensor& b) {
  CHECK(a.rows == b.rows && a.cols == b.cols)
      << "(" << a.rows << ", " << a.cols << ") and (" << b.rows << ", " << b.cols << ")";
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_MATRIX_H_
