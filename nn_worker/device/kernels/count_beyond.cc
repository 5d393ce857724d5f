#include "nn_worker/device/kernels/count_beyond.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"
#include "nn_worker/device/kernels/warp_sum.h"

namespace satrap {
namespace {

constexpr int kThreads = static_cast<int>(kElementwiseThreads);
constexpr int kWarps = kThreads / kWarpSize;

// Sums up `value` over the block. Only thread 0 gets the sum.
SATRAP_DEVICE uint64_t BlockSum(uint64_t value, int thread) {
  SHARED_ARRAY(uint64_t, sums, [kWarps]);
  value = WarpSum(value);
  if (thread % kWarpSize == 0) sums[thread / kWarpSize] = value;
  SyncThreads();
  uint64_t sum = 0;
  for (int warp = 0; thread == 0 && warp < kWarps; ++warp) sum += sums[warp];
  return sum;
}

SATRAP_KERNEL void CountKernel(ConstValues x, float limit, uint64_t* partials) {
  uint64_t count = 0;
  ForEachGroup(x.rows, GroupsOf(x.cols), [&](int64_t r, int64_t g) {
    const Group values = LoadGroup(x, r, g * kGroup);
    for (int i = 0; i < kGroup; ++i) {
      // A comparison with NaN is false, so this form counts a NaN.
      const float value = values.lane[i];
      count += value <= limit && value >= -limit ? 0 : 1;
    }
  });
  const int thread = static_cast<int>(ThreadIndex().y * BlockSize().x + ThreadIndex().x);
  const uint64_t sum = BlockSum(count, thread);
  if (thread == 0) partials[BlockIndex().y * GridSize().x + BlockIndex().x] = sum;
}

SATRAP_KERNEL void AddCountsKernel(const uint64_t* partials, int64_t parts, double* count) {
  const int thread = static_cast<int>(ThreadIndex().x);
  uint64_t found = 0;
  for (int64_t part = thread; part < parts; part += kThreads) found += partials[part];
  const uint64_t sum = BlockSum(found, thread);
  if (thread == 0) *count += static_cast<double>(sum);
}

}  // namespace

void CountBeyond(DeviceStream* stream, ConstValues x, float limit, uint64_t* partials,
                 double* count) {
  if (x.rows == 0 || x.cols == 0) return;
  x = Flattened(x);
  const ElementwiseShape shape = ShapeOf(x.rows, GroupsOf(x.cols), kBeyondPartials);
  Launch<CountKernel>(stream, shape.grid, shape.block, 0, x, limit, partials);
  Launch<AddCountsKernel>(stream, {1}, {kThreads}, 0, partials, shape.grid.volume(), count);
}

}  // namespace satrap
