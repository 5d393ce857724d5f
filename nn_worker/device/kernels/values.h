// Values and ConstValues are views of device memory like Matrix (matrix.h), except that the type of
// their values, f32 or one of the 16-bit types, is known only at run time. Samples' values and
// their gradients may have any of these types, and often several in one operation, so a kernel is
// compiled once for all types. The kernel loads values as f32, computes in f32, and rounds each
// result once, when it stores it (elementwise.h).
//
// Lists of such views are in device memory. The views have no bytes between their fields, so equal
// lists are equal byte by byte.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_VALUES_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_VALUES_H_

#include <cstdint>
#include <type_traits>

#include "nn_worker/device/float16.h"
#include "nn_worker/device/kernels/matrix.h"

namespace satrap {

enum class ElementType : int32_t { kF32, kF16, kBF16 };

constexpr int64_t ElementBytes(ElementType type) { return type == ElementType::kF32 ? 4 : 2; }

template <typename T>
constexpr ElementType ElementTypeOf() {
  using Value = std::remove_const_t<T>;
  static_assert(std::is_same_v<Value, float> || std::is_same_v<Value, Half> ||
                std::is_same_v<Value, Bf16>);
  if (std::is_same_v<Value, float>) return ElementType::kF32;
  return std::is_same_v<Value, Half> ? ElementType::kF16 : ElementType::kBF16;
}

// Whether each group of 4 values, starting at a multiple of 4 in a row, can be loaded in one
// access.
inline bool GroupsAligned(const void* data, int64_t rows, int64_t stride, ElementType type) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(4 * ElementBytes(type)) == 0 &&
         (rows <= 1 || stride % 4 == 0);
}

struct Values {
  void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // values from one row to the next, >= cols
  ElementType type = ElementType::kF32;
  int32_t aligned = 0;  // GroupsAligned

  Values() = default;
  Values(void* first, int64_t num_rows, int64_t num_cols, int64_t row_stride, ElementType of)
      : data(first),
        rows(num_rows),
        cols(num_cols),
        stride(row_stride),
        type(of),
        aligned(satrap::GroupsAligned(first, num_rows, row_stride, of) ? 1 : 0) {}
  template <typename T>
  Values(T* first, int64_t num_rows, int64_t num_cols, int64_t row_stride)
      : Values(first, num_rows, num_cols, row_stride, ElementTypeOf<T>()) {}
  template <typename T>
  // NOLINTNEXTLINE(google-explicit-constructor): a Matrix is Values whose type is T
  Values(const Matrix<T>& m) : Values(m.data, m.rows, m.cols, m.stride, ElementTypeOf<T>()) {}
};

struct ConstValues {
  const void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
  ElementType type = ElementType::kF32;
  int32_t aligned = 0;

  ConstValues() = default;
  ConstValues(const void* first, int64_t num_rows, int64_t num_cols, int64_t row_stride,
              ElementType of)
      : data(first),
        rows(num_rows),
        cols(num_cols),
        stride(row_stride),
        type(of),
        aligned(satrap::GroupsAligned(first, num_rows, row_stride, of) ? 1 : 0) {}
  template <typename T>
  ConstValues(const T* first, int64_t num_rows, int64_t num_cols, int64_t row_stride)
      : ConstValues(first, num_rows, num_cols, row_stride, ElementTypeOf<T>()) {}
  template <typename T>
  // NOLINTNEXTLINE(google-explicit-constructor): likewise
  ConstValues(const Matrix<T>& m)
      : ConstValues(m.data, m.rows, m.cols, m.stride, ElementTypeOf<T>()) {}
  // This constructor is constexpr, so that kernels may use it, too.
  // NOLINTNEXTLINE(google-explicit-constructor): as a pointer to const
  constexpr ConstValues(const Values& v)
      : data(v.data),
        rows(v.rows),
        cols(v.cols),
        stride(v.stride),
        type(v.type),
        aligned(v.aligned) {}
};

// Returns the view for groups that begin at multiples of `step` values of a row as well as at
// multiples of 4. If `step` is not a multiple of 4, the returned view does not count as aligned;
// otherwise it is the same view.
template <typename View>
View WithGroupsAt(View view, int64_t step) {
  if (step % 4 != 0) view.aligned = 0;
  return view;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_VALUES_H_
