#include "nn_worker/device/kernels/dropout.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"
#include "nn_worker/operation/dropout_mask.h"

namespace satrap {
namespace {

// Repeats Mix64 and RandomBits of common/numeric, because kernels cannot include their headers. The
// test compares the two versions.
SATRAP_DEVICE uint64_t Mixed(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}
SATRAP_DEVICE uint64_t RowBits(uint64_t key, uint64_t sample) {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  return Mixed(Mixed(Mixed(key + kStep) ^ sample) + kStep);
}

SATRAP_KERNEL void DropoutKernel(ConstValues x, uint64_t seed, const PassNumbers* pass,
                                 uint32_t threshold, float scale, Values y, bool add) {
  const uint64_t key = RowBits(seed, pass->step);
  const int64_t first_sample = pass->first_sample;
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup;
    const uint64_t bits = RowBits(key, static_cast<uint64_t>(first_sample + r));
    Group values = LoadGroup(x, r, c);
    for (int i = 0; i < kGroup; ++i) {
      const uint32_t drawn =
          DropoutBits(static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32),
                      static_cast<uint32_t>(c + i));
      values.lane[i] *= drawn >= threshold ? scale : 0;
    }
    PutGroup(y, r, c, values, add);
  });
}

}  // namespace

void DropOut(DeviceStream* stream, ConstValues x, uint64_t seed, const PassNumbers* pass,
             float rate, Values y, bool add) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<DropoutKernel>(stream, shape.grid, shape.block, 0, x, seed, pass, DropoutThreshold(rate),
                        1.0f / (1.0f - rate), y, add);
}

}  // namespace satrap
