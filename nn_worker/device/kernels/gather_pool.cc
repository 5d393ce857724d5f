#include "nn_worker/device/kernels/gather_pool.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/pooling_scale.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

// The arrangement of the threads of a block: neighbours handle neighbouring groups of a row.
constexpr uint32_t kGroupsAtOnce = 8;
constexpr uint32_t kSamplesAtOnce = 32;
constexpr int64_t kMaxBlocks = 2048;
constexpr int kMaxGridY = 65535;

// Writes a group of values, starting at value `out`: scale times the weighted sum of the rows of
// ids [begin, end), starting at column c.
SATRAP_DEVICE void PoolGroup(const GatherTarget& target, uint32_t begin, uint32_t end, float scale,
                             int32_t c, int64_t out) {
  const int64_t left = target.width - c;
  Group sum = {};
  for (uint32_t j = begin; j < end; ++j) {
    const int64_t number = target.rows == nullptr ? j : target.rows[j];
    const Group row =
        LoadGroup(target.table + number * target.table_stride + c, left, target.aligned);
    const float weight = target.weights == nullptr ? 1 : target.weights[j];
    for (int i = 0; i < kGroup; ++i) sum.lane[i] += weight * row.lane[i];
  }
  for (int i = 0; i < kGroup; ++i) {
    // If the divisor is 0, the result is 0, even if the sum is not finite.
    sum.lane[i] = scale == 0 ? 0 : sum.lane[i] * scale;
  }
  StoreGroup(target.out, target.type, out + c, sum, left, target.aligned);
}

SATRAP_KERNEL void GatherPoolKernel(const GatherTarget* targets, int64_t samples) {
  const GatherTarget target = targets[BlockIndex().y];
  const bool sequence = target.pooling == RowPooling::kNone;
  const int64_t samples_at_once = static_cast<int64_t>(GridSize().x) * kSamplesAtOnce;
  for (int64_t s = static_cast<int64_t>(BlockIndex().x) * kSamplesAtOnce + ThreadIndex().y;
       s < samples; s += samples_at_once) {
    const auto own = static_cast<uint32_t>(s);
    const uint32_t begin = target.offsets == nullptr ? own : target.offsets[s];
    const uint32_t end = target.offsets == nullptr ? own + 1 : target.offsets[s + 1];
    const auto max_length = static_cast<uint32_t>(target.max_length);
    const uint32_t length = end - begin < max_length ? end - begin : max_length;
    if (target.lengths != nullptr && ThreadIndex().x == 0) {
      target.lengths[s * target.lengths_stride] = static_cast<float>(length);
    }
    const float scale = PoolingScale(target.pooling, target.weights, begin, end);
    for (int32_t c = static_cast<int32_t>(ThreadIndex().x) * kGroup; c < target.width;
         c += static_cast<int32_t>(kGroupsAtOnce) * kGroup) {
      int64_t out = s * target.out_stride;
      if (!sequence) {
        PoolGroup(target, begin, end, scale, c, out);
        continue;
      }
      // At positions after the last id nothing is summed, which gives zeros.
      for (uint32_t p = 0; p < max_length; ++p, out += target.width) {
        const uint32_t j = begin + p;
        PoolGroup(target, j, p < length ? j + 1 : j, scale, c, out);
      }
    }
  }
}

}  // namespace

void GatherAndPool(DeviceStream* stream, const GatherTarget* targets, int num_targets,
                   int64_t samples) {
  if (samples == 0) return;
  int64_t blocks = (samples + kSamplesAtOnce - 1) / kSamplesAtOnce;
  if (blocks > kMaxBlocks) blocks = kMaxBlocks;
  for (int first = 0; first < num_targets; first += kMaxGridY) {
    const int count = num_targets - first < kMaxGridY ? num_targets - first : kMaxGridY;
    Launch<GatherPoolKernel>(stream, {static_cast<uint32_t>(blocks), static_cast<uint32_t>(count)},
                             {kGroupsAtOnce, kSamplesAtOnce}, 0, targets + first, samples);
  }
}

}  // namespace satrap
