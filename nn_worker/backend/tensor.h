// A Tensor is a view of backend memory: `rows` rows of `cols` values, row i at data + i * stride.
// It does not own the memory and is cheap to copy. Row i is sample i of a part. A layer's values
// [samples, length, dim] are a tensor [samples, length * dim].
//
// `data` is an address in the backend's memory, which the host may not be able to access. Code
// outside a backend passes it on, but never reads or writes through it. Values are copied in and
// out (tensor_copy.h).
//
// Alignment. An operation may rely on a row beginning at a multiple of the size of a value, but on
// no more, because a view of some columns begins at the first of them. Rows laid out with
// PaddedStride begin at multiples of kAlignmentBytes, so an operation that wants wide accesses
// checks `data` and `stride` first. The memory between the end of a row and the next row may be
// columns of other tensors, so an operation neither reads nor writes it.
//
// Padding. A tensor may say that memory beyond its values belongs to it and holds zeros: zero_cols
// values after each row, and zero_rows rows after the last one. Products of prepared linear layers
// may read padding as factors, because libraries multiply widths that are multiples of 8 several
// times as fast as others. They may also write to padding what they compute from other padding:
// zeros, or NaN where the other factor is infinite or NaN. All other operations leave padding
// alone.

#ifndef SATRAP_NN_WORKER_BACKEND_TENSOR_H_
#define SATRAP_NN_WORKER_BACKEND_TENSOR_H_

#include <algorithm>
#include <cstdint>

#include "common/base/check.h"

namespace satrap {

enum class DType { kF32, kF64, kF16, kBF16, kU32, kU8 };

inline int64_t DTypeBytes(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 8;
    case DType::kF32:
    case DType::kU32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
}

// The size of a cache line. Memory from Backend::Allocate begins at a multiple of it.
constexpr int64_t kAlignmentBytes = 64;

// The smallest stride, at least cols and above 0, at which every row begins at a multiple of
// kAlignmentBytes if the first one does. A multiple of kAlignmentBytes holds twice as many 16-bit
// values as 32-bit values, so the stride of 16-bit values is a multiple of twice as many values.
inline int64_t PaddedStride(DType dtype, int64_t cols) {
  const int64_t line = kAlignmentBytes / DTypeBytes(dtype);
  return std::max<int64_t>(1, (cols + line - 1) / line) * line;
}

// The smallest size of a buffer, above 0, after which another one may begin.
inline int64_t PaddedBytes(int64_t bytes) { return PaddedStride(DType::kU8, bytes); }

struct Tensor {
  DType dtype = DType::kF32;
  void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;     // values from one row to the next, >= cols + zero_cols
  int64_t zero_cols = 0;  // padding after each row
  int64_t zero_rows = 0;  // padding after the last row

  bool empty() const { return data == nullptr; }
  int64_t size() const { return rows * cols; }
  int64_t size_bytes() const { return size() * DTypeBytes(dtype); }
  bool has_gaps() const { return stride != cols && rows > 1; }
  int64_t padded_cols() const { return cols + zero_cols; }
  int64_t padded_rows() const { return rows + zero_rows; }

  // The tensor whose values include the padding.
  Tensor WithPadding() const { return {dtype, data, padded_rows(), padded_cols(), stride}; }

  // Rows [begin, begin + count), with their padding columns. REQUIRES: within rows
  Tensor Rows(int64_t begin, int64_t count) const {
    CHECK(begin >= 0 && count >= 0 && begin + count <= rows);
    Tensor view = *this;
    view.data = static_cast<char*>(data) + begin * stride * DTypeBytes(dtype);
    view.rows = count;
    view.zero_rows = 0;
    return view;
  }
  Tensor FirstRows(int64_t count) const { return Rows(0, count); }
  // Columns [begin, begin + count) of every row, without padding, because the values after them may
  // belong to other columns. REQUIRES: within cols
  Tensor Columns(int64_t begin, int64_t count) const {
    CHECK(begin >= 0 && count >= 0 && begin + count <= cols);
    Tensor view = *this;
    view.data = static_cast<char*>(data) + begin * DTypeBytes(dtype);
    view.cols = count;
    view.zero_cols = view.zero_rows = 0;
    return view;
  }
  // The first rows and columns; the others become their padding. REQUIRES: the others hold zeros;
  // this tensor has no padding of its own
  Tensor Padded(int64_t own_rows, int64_t own_cols) const {
    CHECK(own_rows <= rows && own_cols <= cols && zero_rows == 0 && zero_cols == 0);
    return {dtype, data, own_rows, own_cols, stride, cols - own_cols, rows - own_rows};
  }
  // The same values as rows of `new_cols`, without padding. REQUIRES: no gaps; the number of values
  // stays the same
  Tensor Reshaped(int64_t new_rows, int64_t new_cols) const {
    CHECK(!has_gaps() && new_rows * new_cols == size());
    return {dtype, data, new_rows, new_cols, new_cols};
  }
};

// A view of consecutive rows without gaps. (The function has a long name because the name F32
// already belongs to a WireDtype in proto/job.proto.)
inline Tensor TensorF32(void* data, int64_t rows, int64_t cols) {
  return {DType::kF32, data, rows, cols, cols};
}

// The tensor to which a gradient is written or added. It is empty if the gradient is not wanted.
struct GradientTarget {
  Tensor tensor;
  bool add = false;  // += instead of =
  bool wanted() const { return !tensor.empty(); }
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TENSOR_H_
