#include "nn_worker/device/kernels/batched_product.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

// Loads the values of a row of B that a group of Y needs, in one access if they are neighbours.
SATRAP_DEVICE Group LoadColumns(const RowMatrices& b, int64_t sample, int64_t at, int64_t left) {
  if (b.col_stride == 1) return LoadGroup(b.values, sample, at, left);
  Group group = {};
  for (int i = 0; i < kGroup && i < left; ++i) {
    group.lane[i] = LoadValue(b.values, sample, at + i * b.col_stride);
  }
  return group;
}

SATRAP_KERNEL void BatchedProductKernel(BatchedProductArgs args) {
  const int64_t rows_a_sample = args.count * args.rows;
  ForEachGroup(args.y.rows * rows_a_sample, GroupsOf(args.cols), [&](int64_t n, int64_t g) {
    const int64_t sample = n / rows_a_sample, m = n % rows_a_sample / args.rows;
    const int64_t row = n % args.rows, col = g * kGroup, left = args.cols - col;
    const int64_t of_a = m * args.a.step + row * args.a.row_stride;
    const int64_t of_b = m * args.b.step + col * args.b.col_stride;
    Group sum = {};
    for (int64_t k = 0; k < args.inner; ++k) {
      const float factor = LoadValue(args.a.values, sample, of_a + k * args.a.col_stride);
      const Group values = LoadColumns(args.b, sample, of_b + k * args.b.row_stride, left);
      for (int i = 0; i < kGroup; ++i) sum.lane[i] += factor * values.lane[i];
    }
    for (int i = 0; i < kGroup; ++i) sum.lane[i] *= args.scale;
    PutGroup(args.y, sample, m * args.y_step + row * args.y_stride + col, sum, left, args.add);
  });
}

}  // namespace

void BatchedProduct(DeviceStream* stream, const BatchedProductArgs& args) {
  const int64_t rows = args.y.rows * args.count * args.rows;
  if (rows == 0 || args.cols == 0) return;
  BatchedProductArgs of_kernel = args;
  // With a single matrix the steps are not used, and callers may set them to anything.
  if (args.count == 1) of_kernel.a.step = of_kernel.b.step = of_kernel.y_step = 0;
  of_kernel.b.values =
      WithGroupsAt(WithGroupsAt(args.b.values, of_kernel.b.step), args.b.row_stride);
  of_kernel.y = WithGroupsAt(WithGroupsAt(args.y, of_kernel.y_step), args.y_stride);
  const ElementwiseShape shape = ShapeOf(rows, GroupsOf(args.cols));
  Launch<BatchedProductKernel>(stream, shape.grid, shape.block, 0, of_kernel);
}

}  // namespace satrap
