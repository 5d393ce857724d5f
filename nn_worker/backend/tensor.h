// A Tensor is a view of backend memory: `rows` rows of `cols` values, row i at data + i * stride.
// It does not own the memory and is cheap to copy. Reading it as another dtype than its own fails a
// CHECK.
//
// Row i is sample i of a part. A layer's [samples, length, dim] is [samples, length * dim] here.
//
// f32() and f64() compute an address; whether the host may dereference it depends on the backend
// (Backend::HostView).

#ifndef SATRAP_NN_WORKER_BACKEND_TENSOR_H_
#define SATRAP_NN_WORKER_BACKEND_TENSOR_H_

#include <cstdint>

#include "common/base/check.h"

namespace satrap {

enum class DType { kF32, kF64 };

inline int64_t DTypeBytes(DType dtype) { return dtype == DType::kF64 ? 8 : 4; }

struct Tensor {
  DType dtype = DType::kF32;
  void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // values from one row to the next, >= cols

  bool empty() const { return data == nullptr; }
  int64_t size() const { return rows * cols; }

  float* f32(int64_t row = 0) const {
    CHECK(dtype == DType::kF32);
    return static_cast<float*>(data) + row * stride;
  }
  double* f64(int64_t row = 0) const {
    CHECK(dtype == DType::kF64);
    return static_cast<double*>(data) + row * stride;
  }

  // The first `count` rows. REQUIRES: count <= rows
  Tensor FirstRows(int64_t count) const {
    CHECK(count <= rows);
    Tensor view = *this;
    view.rows = count;
    return view;
  }
  // Columns [begin, begin + count) of every row. REQUIRES: within cols
  Tensor Columns(int64_t begin, int64_t count) const {
    CHECK(begin >= 0 && begin + count <= cols);
    Tensor view = *this;
    view.data = static_cast<char*>(data) + begin * DTypeBytes(dtype);
    view.cols = count;
    return view;
  }
};

// A view of rows that follow one another without gaps. (Plain F32 is a WireDtype in
// proto/job.proto, hence the longer names.)
inline Tensor TensorF32(float* data, int64_t rows, int64_t cols) {
  return {DType::kF32, data, rows, cols, cols};
}
inline Tensor TensorF64(double* data, int64_t rows, int64_t cols) {
  return {DType::kF64, data, rows, cols, cols};
}

// Where a gradient is written or added. An empty tensor means that it is not wanted.
struct GradientTarget {
  Tensor tensor;
  bool add = false;  // += instead of =
  bool wanted() const { return !tensor.empty(); }
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TENSOR_H_
