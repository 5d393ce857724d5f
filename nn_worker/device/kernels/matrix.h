// A Matrix is a view of device memory that is passed to kernels: `rows` rows of `cols` values, row
// i at data + i * stride. It owns nothing.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_MATRIX_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_MATRIX_H_

#include <cstdint>

namespace satrap {

template <typename T>
struct Matrix {
  T* data;
  int64_t rows;
  int64_t cols;
  int64_t stride;  // values from one row to the next, >= cols
};

// A matrix whose rows follow one another without gaps.
template <typename T>
Matrix<T> MatrixOf(T* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols};
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_MATRIX_H_
