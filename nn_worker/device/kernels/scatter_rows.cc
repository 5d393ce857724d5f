#include "nn_worker/device/kernels/scatter_rows.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/pooling_scale.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

constexpr uint32_t kGroupsAtOnce = 8;
constexpr uint32_t kRowsAtOnce = 32;
constexpr int64_t kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;
constexpr int kMaxGridY = 65535;

SATRAP_KERNEL void LocateIdsKernel(const ScatterFeature* features, uint32_t first_feature,
                                   int64_t samples, IdPlace* places) {
  const uint32_t number = first_feature + BlockIndex().y;
  const ScatterFeature feature = features[number];
  const bool sequence = feature.pooling == RowPooling::kNone;
  const int64_t at_once = static_cast<int64_t>(GridSize().x) * BlockSize().x;
  for (int64_t s = static_cast<int64_t>(BlockIndex().x) * BlockSize().x + ThreadIndex().x;
       s < samples; s += at_once) {
    const auto own = static_cast<uint32_t>(s);
    const uint32_t begin = feature.offsets == nullptr ? own : feature.offsets[s];
    const uint32_t end = feature.offsets == nullptr ? own + 1 : feature.offsets[s + 1];
    const float scale = PoolingScale(feature.pooling, feature.weights, begin, end);
    for (uint32_t j = begin; j < end; ++j) {
      const bool cut_off = sequence && j - begin >= static_cast<uint32_t>(feature.max_length);
      const float weight = feature.weights == nullptr ? 1 : feature.weights[j];
      places[feature.first_id + j] = {number, own, sequence && !cut_off ? j - begin : 0,
                                      cut_off ? 0 : weight * scale};
    }
  }
}

// Adds the coefficient times the segment's gradient in columns [c, c + 4) to `sum`.
SATRAP_DEVICE void AddSegment(const ScatterSegment& segment, const IdPlace& place, int32_t c,
                              bool aligned, Group* sum) {
  const int32_t offset = c - segment.column;
  if (offset <= -kGroup || offset >= segment.width) return;
  const int64_t first =
      place.sample * segment.stride + static_cast<int64_t>(place.position) * segment.width + offset;
  if (aligned) {
    const Group values =
        LoadGroup(segment.gradient, segment.type, first, segment.width - offset, true);
    for (int i = 0; i < kGroup; ++i) sum->lane[i] += place.coefficient * values.lane[i];
    return;
  }
  for (int i = 0; i < kGroup; ++i) {
    if (offset + i < 0 || offset + i >= segment.width) continue;
    sum->lane[i] += place.coefficient * LoadValue(segment.gradient, segment.type, first + i);
  }
}

SATRAP_KERNEL void ScatterRowsKernel(ScatterArgs args, Matrix<float> gradients) {
  const int64_t rows_at_once = static_cast<int64_t>(GridSize().x) * kRowsAtOnce;
  for (int64_t r = static_cast<int64_t>(BlockIndex().x) * kRowsAtOnce + ThreadIndex().y;
       r < gradients.rows; r += rows_at_once) {
    const uint32_t begin = args.starts[r], end = args.starts[r + 1];
    for (int64_t c = static_cast<int64_t>(ThreadIndex().x) * kGroup; c < gradients.cols;
         c += static_cast<int64_t>(kGroupsAtOnce) * kGroup) {
      Group sum = {};
      for (uint32_t k = begin; k < end; ++k) {
        const IdPlace place = args.places[args.ids[k]];
        // The id is skipped rather than multiplied by 0, because its gradient may be infinite.
        if (place.coefficient == 0) continue;
        const ScatterFeature& feature = args.features[place.feature];
        for (int32_t s = feature.first_segment; s < feature.end_segment; ++s) {
          AddSegment(args.segments[s], place, static_cast<int32_t>(c), args.aligned, &sum);
        }
      }
      StoreGroup(gradients.data + r * gradients.stride + c, sum, gradients.cols - c, args.aligned);
    }
  }
}

uint32_t BlocksOf(int64_t count, int64_t each) {
  const int64_t blocks = (count + each - 1) / each;
  return static_cast<uint32_t>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

}  // namespace

void LocateIds(DeviceStream* stream, const ScatterFeature* features, int num_features,
               int64_t samples, IdPlace* places) {
  if (samples == 0) return;
  for (int first = 0; first < num_features; first += kMaxGridY) {
    const int count = num_features - first < kMaxGridY ? num_features - first : kMaxGridY;
    Launch<LocateIdsKernel>(stream, {BlocksOf(samples, kThreads), static_cast<uint32_t>(count)},
                            {kThreads}, 0, features, first, samples, places);
  }
}

void ScatterRows(DeviceStream* stream, const ScatterArgs& args, Matrix<float> gradients) {
  if (gradients.rows == 0 || gradients.cols == 0) return;
  Launch<ScatterRowsKernel>(stream, {BlocksOf(gradients.rows, kRowsAtOnce)},
                            {kGroupsAtOnce, kRowsAtOnce}, 0, args, gradients);
}

}  // namespace satrap
