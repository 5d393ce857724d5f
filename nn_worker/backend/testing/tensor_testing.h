// Reads and writes single values of tensors, for tests. Each call copies one value and waits for
// the backend, so it works on every backend and is slow.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_TENSOR_TESTING_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_TENSOR_TESTING_H_

#include <cstdint>

#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {

// A view of one value. REQUIRES: (row, col) is within the tensor
inline Tensor ElementOf(const Tensor& tensor, int64_t row, int64_t col) {
  return tensor.Rows(row, 1).Columns(col, 1);
}

inline float ValueAt(Backend* backend, const Tensor& tensor, int64_t row = 0, int64_t col = 0) {
  return ReadFloats(backend, ElementOf(tensor, row, col))[0];
}
inline void SetValueAt(Backend* backend, const Tensor& tensor, int64_t row, int64_t col,
                       float value) {
  CopyIn(backend, absl::MakeConstSpan(&value, 1), ElementOf(tensor, row, col));
}

// A mask whose pass numbers are in memory of `backend`.
inline DropoutMask NewDropoutMask(Backend* backend, uint64_t seed, const PassNumbers& pass) {
  const Tensor memory = AllocatePassNumbers(backend).value();
  WritePassNumbers(backend, pass, memory);
  return {seed, pass, memory};
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_TENSOR_TESTING_H_
