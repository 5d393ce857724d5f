#include "nn_worker/device/kernels/gather_pool.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/loaded_group.h"
#include "nn_worker/device/kernels/pooling_scale.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

// A thread block handles as many samples as fit, and has one thread for each group of values (one
// load) in the feature's row of each sample. So a row is read in one pass, however many segments it
// has.
constexpr int32_t kThreads = 128;
// The number of rows that a thread loads at the same time.
constexpr int kRowsAtOnce = 4;
constexpr int64_t kMaxBlocks = 8192;
constexpr uint32_t kNoRow = 0xffffffffu;

// A thread's group of a segment.
struct GroupOfSegment {
  GatherSegment segment;
  int32_t column;  // of the table's row
  int32_t offset;  // of the segment
  int32_t count;   // values that the segment has from there on
};

SATRAP_DEVICE GroupOfSegment FindGroup(const GatherSegment* segment, int32_t group) {
  for (auto groups = static_cast<int32_t>(GroupsOf(segment->width)); group >= groups;
       groups = static_cast<int32_t>(GroupsOf(segment->width))) {
    group -= groups;
    ++segment;
  }
  const int32_t offset = group * kGroup;
  return {*segment, segment->column + offset, offset, segment->width - offset};
}

template <typename Row>
SATRAP_DEVICE LoadedGroup<Row> StartRow(const GatherFeature& feature, const GroupOfSegment& group,
                                        uint32_t row) {
  return StartLoad(
      static_cast<const Row*>(feature.table) + row * feature.table_stride + group.column,
      group.count, row + kRowsBeforeEnd < feature.table_rows);
}

// Adds a row, multiplied by its weight.
template <typename Row>
SATRAP_DEVICE void AddRow(const LoadedGroup<Row>& row, float scale, float weight, Group* sum) {
  const Group values = ValuesOf(row);
  for (int i = 0; i < kGroup; ++i) sum->lane[i] += weight * (scale * values.lane[i]);
}

// The range of a sample's ids.
struct IdRange {
  uint32_t begin, end;
};
SATRAP_DEVICE IdRange IdsOf(const GatherFeature& feature, int64_t s) {
  if (feature.offsets != nullptr) return {feature.offsets[s], feature.offsets[s + 1]};
  return {static_cast<uint32_t>(s), static_cast<uint32_t>(s) + 1};
}

// The row of an item. An item is a sample or, if the feature is a sequence, a position of a sample.
SATRAP_DEVICE uint32_t RowOf(const GatherFeature& feature, int64_t item, float* weight) {
  *weight = 1;
  int64_t id = item;
  if (feature.pooling == RowPooling::kNone) {
    const int64_t sample = item / feature.max_length;
    const IdRange ids = IdsOf(feature, sample);
    id = ids.begin + (item - sample * feature.max_length);
    if (id >= ids.end) return kNoRow;
    if (feature.weights != nullptr) *weight = feature.weights[id];
  }
  return feature.rows == nullptr ? static_cast<uint32_t>(id) : feature.rows[id];
}

// The samples or items of a thread. It handles kRowsAtOnce of them together: first, first + each,
// first + 2 each and so on. Then it handles kRowsAtOnce that begin at first + step, and so on.
struct Turns {
  int64_t first, each, step;
};

// Writes one group for all items of the thread, each of which has at most one row.
template <typename Row>
SATRAP_DEVICE void CopyRowsOf(const GatherFeature& feature, const GroupOfSegment& group,
                              const Turns& turns, int64_t items) {
  const GatherSegment& segment = group.segment;
  const bool sequence = feature.pooling == RowPooling::kNone;
  for (int64_t first = turns.first; first < items; first += turns.step) {
    uint32_t rows[kRowsAtOnce];
    float weights[kRowsAtOnce];
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const int64_t item = first + i * turns.each;
      rows[i] = RowOf(feature, item < items ? item : items - 1, &weights[i]);
    }
    LoadedGroup<Row> loaded[kRowsAtOnce];
    for (int i = 0; i < kRowsAtOnce; ++i) {
      loaded[i] = {};
      if (rows[i] != kNoRow) loaded[i] = StartRow<Row>(feature, group, rows[i]);
    }
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const int64_t item = first + i * turns.each;
      if (item >= items) break;
      int64_t out = item * segment.out_stride;
      if (sequence) {
        const int64_t sample = item / feature.max_length;
        out = sample * segment.out_stride + (item - sample * feature.max_length) * segment.width;
      }
      Group sum = {};
      if (rows[i] != kNoRow) AddRow(loaded[i], feature.scale, weights[i], &sum);
      StoreGroup(segment.out, segment.type, out + group.offset, sum, group.count,
                 segment.aligned != 0);
    }
  }
}

// The weighted sum of the rows of ids [begin, end).
template <typename Row>
SATRAP_DEVICE Group SumOf(const GatherFeature& feature, const GroupOfSegment& group, IdRange ids) {
  Group sum = {};
  for (uint32_t first = ids.begin; first < ids.end; first += kRowsAtOnce) {
    uint32_t rows[kRowsAtOnce];
    float weights[kRowsAtOnce];
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const uint32_t id = first + i < ids.end ? first + i : ids.end - 1;
      rows[i] = feature.rows[id];
      weights[i] = feature.weights == nullptr ? 1 : feature.weights[id];
    }
    LoadedGroup<Row> loaded[kRowsAtOnce];
    for (int i = 0; i < kRowsAtOnce; ++i) loaded[i] = StartRow<Row>(feature, group, rows[i]);
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (first + i < ids.end) AddRow(loaded[i], feature.scale, weights[i], &sum);
    }
  }
  return sum;
}

// Writes one group for all samples of the thread.
template <typename Row>
SATRAP_DEVICE void PoolRowsOf(const GatherFeature& feature, const GroupOfSegment& group,
                              const Turns& turns, int64_t samples) {
  const GatherSegment& segment = group.segment;
  for (int64_t first = turns.first; first < samples; first += turns.step) {
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const int64_t s = first + i * turns.each;
      if (s >= samples) break;
      const IdRange ids = IdsOf(feature, s);
      const float scale = PoolingScale(feature.pooling, feature.weights, ids.begin, ids.end);
      Group sum = SumOf<Row>(feature, group, ids);
      for (int k = 0; k < kGroup; ++k) {
        // If the divisor is 0, the result is 0, even if the sum is not finite.
        sum.lane[k] = scale == 0 ? 0 : sum.lane[k] * scale;
      }
      StoreGroup(segment.out, segment.type, s * segment.out_stride + group.offset, sum, group.count,
                 segment.aligned != 0);
    }
  }
}

SATRAP_DEVICE void WriteLengths(const GatherFeature& feature, const Turns& turns, int64_t samples) {
  for (int64_t first = turns.first; first < samples; first += turns.step) {
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const int64_t s = first + i * turns.each;
      if (s >= samples) break;
      const IdRange ids = IdsOf(feature, s);
      const auto most = static_cast<uint32_t>(feature.max_length);
      const uint32_t length = ids.end - ids.begin < most ? ids.end - ids.begin : most;
      feature.lengths[s * feature.lengths_stride] = static_cast<float>(length);
    }
  }
}

template <typename Row>
SATRAP_DEVICE void GatherRowsOf(const GatherFeature& feature, const GroupOfSegment& group,
                                const Turns& turns, int64_t samples) {
  const bool sequence = feature.pooling == RowPooling::kNone;
  if (sequence || (feature.offsets == nullptr && feature.weights == nullptr)) {
    CopyRowsOf<Row>(feature, group, turns, sequence ? samples * feature.max_length : samples);
  } else {
    PoolRowsOf<Row>(feature, group, turns, samples);
  }
}

// Blocks that run at the same time handle the same samples of all features, because these write
// neighbouring values.
SATRAP_KERNEL void GatherPoolKernel(const GatherFeature* features, const GatherSegment* segments,
                                    int64_t samples) {
  const GatherFeature feature = features[BlockIndex().x];
  const int32_t most = feature.groups < kThreads ? feature.groups : kThreads;
  const int32_t width = most > 0 ? most : 1;
  const int32_t slots = kThreads / width;
  const auto thread = static_cast<int32_t>(ThreadIndex().x);
  const int32_t slot = thread / width, lane = thread - slot * width;
  if (slot >= slots) return;
  const int64_t at_once = int64_t{kRowsAtOnce} * slots;
  const Turns turns = {BlockIndex().y * at_once + slot, slots, GridSize().y * at_once};
  if (feature.lengths != nullptr && lane == 0) WriteLengths(feature, turns, samples);
  for (int32_t g = lane; g < feature.groups; g += width) {
    const GroupOfSegment group = FindGroup(segments + feature.first_segment, g);
    if (feature.type == ElementType::kF32) {
      GatherRowsOf<float>(feature, group, turns, samples);
    } else if (feature.type == ElementType::kF16) {
      GatherRowsOf<Half>(feature, group, turns, samples);
    } else {
      GatherRowsOf<Bf16>(feature, group, turns, samples);
    }
  }
}

}  // namespace

void GatherAndPool(DeviceStream* stream, const GatherFeature* features, int num_features,
                   const GatherSegment* segments, int64_t samples) {
  if (samples == 0 || num_features == 0) return;
  // A block handles at least kRowsAtOnce samples, and more if a feature has few groups.
  int64_t blocks = kMaxBlocks / num_features;
  const int64_t most = (samples + kRowsAtOnce - 1) / kRowsAtOnce;
  if (blocks > most) blocks = most;
  if (blocks < 1) blocks = 1;
  Launch<GatherPoolKernel>(stream,
                           {static_cast<uint32_t>(num_features), static_cast<uint32_t>(blocks)},
                           {static_cast<uint32_t>(kThreads)}, 0, features, segments, samples);
}

}  // namespace satrap
