#include "nn_worker/backend/device/device_row_exchange.h"

#include <algorithm>
#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/device/device_matrix.h"
#include "nn_worker/device/kernels/gather_pool.h"
#include "nn_worker/device/kernels/scatter_rows.h"

namespace satrap {
namespace {

const float* WeightsOf(const FeatureExchange& feature) {
  return feature.weights.empty() ? nullptr : F32Data(feature.weights);
}

// The target for one segment or, if a sequence has no segments, for its lengths only.
GatherTarget TargetOf(const FeatureExchange& feature, const RowSegment& segment) {
  // All bytes are zeroed, including the gaps between fields, because DeviceTables compares bytes.
  GatherTarget target = {};
  target.width = static_cast<int32_t>(segment.width);
  target.max_length = 1;
  if (segment.width > 0) {
    target.table = F32Data(feature.rows) + segment.column;
    target.table_stride = feature.rows.stride;
    const Values out = ValuesOf(segment.values);
    target.out = out.data;
    target.type = out.type;
    target.out_stride = segment.values.stride;
    const bool sequence = feature.pooling == RowPooling::kNone && !feature.one_row_a_sample;
    target.aligned = ValuesOf(feature.rows).aligned != 0 && segment.column % 4 == 0 &&
                     out.aligned != 0 && (!sequence || segment.width % 4 == 0);
  }
  if (feature.one_row_a_sample) return target;
  target.pooling = feature.pooling;
  target.rows = U32Data(feature.ids);
  target.offsets = U32Data(feature.offsets);
  target.weights = WeightsOf(feature);
  if (feature.pooling == RowPooling::kNone) {
    target.max_length = static_cast<int32_t>(feature.max_length);
  }
  return target;
}

// Checks the number of values per sample in a segment, so that kernels do not access memory outside
// the tensors.
void CheckSegment(const FeatureExchange& feature, const RowSegment& segment, int64_t row_values) {
  const bool sequence = feature.pooling == RowPooling::kNone && !feature.one_row_a_sample;
  CHECK(segment.column >= 0 && segment.column + segment.width <= row_values)
      << "columns " << segment.column << " to " << segment.column + segment.width << " of "
      << row_values;
  CHECK(segment.values.cols == segment.width * (sequence ? feature.max_length : 1))
      << segment.values.cols << " columns for a segment of " << segment.width;
}

}  // namespace

absl::Status ReserveScatterOnDevice(DeviceTransfers* transfers, int64_t num_ids) {
  return transfers->GrowScratch(num_ids * static_cast<int64_t>(sizeof(IdPlace)));
}

void GatherRowsOnDevice(DeviceTransfers* transfers, absl::Span<const FeatureExchange> features) {
  if (features.empty()) return;
  std::vector<GatherTarget> targets;
  for (const FeatureExchange& feature : features) {
    CHECK(feature.samples == features[0].samples) << feature.samples;
    const size_t first = targets.size();
    for (const RowSegment& segment : feature.segments) {
      CheckSegment(feature, segment, feature.rows.cols);
      targets.push_back(TargetOf(feature, segment));
    }
    if (feature.lengths.empty() || feature.one_row_a_sample ||
        feature.pooling != RowPooling::kNone) {
      continue;
    }
    if (targets.size() == first) targets.push_back(TargetOf(feature, RowSegment()));
    targets[first].lengths = F32Data(feature.lengths);
    targets[first].lengths_stride = feature.lengths.stride;
  }
  if (targets.empty()) return;
  GatherAndPool(transfers->stream(), transfers->part_tables()->Table(targets),
                static_cast<int>(targets.size()), features[0].samples);
}

void ScatterGradientsOnDevice(DeviceTransfers* transfers,
                              absl::Span<const FeatureExchange> features, const RowInverse& inverse,
                              const Tensor& gradients) {
  std::vector<ScatterFeature> rows;
  std::vector<ScatterSegment> segments;
  bool aligned = ValuesOf(gradients).aligned != 0;
  int64_t num_ids = 0;
  for (const FeatureExchange& feature : features) {
    CHECK(!feature.one_row_a_sample) << "comes alone";
    CHECK(feature.samples == features[0].samples) << feature.samples;
    ScatterFeature& row = rows.emplace_back();
    row.pooling = feature.pooling;
    row.max_length = static_cast<int32_t>(feature.max_length);
    row.offsets = U32Data(feature.offsets);
    row.weights = WeightsOf(feature);
    row.first_id = num_ids;
    row.first_segment = static_cast<int32_t>(segments.size());
    num_ids += feature.ids.size();
    for (const RowSegment& segment : feature.segments) {
      CheckSegment(feature, segment, gradients.cols);
      ScatterSegment& entry = segments.emplace_back();
      entry.column = static_cast<int32_t>(segment.column);
      entry.width = static_cast<int32_t>(segment.width);
      const ConstValues gradient = ConstValuesOf(segment.values);
      entry.gradient = gradient.data;
      entry.type = gradient.type;
      entry.stride = segment.values.stride;
      aligned =
          aligned && segment.column % 4 == 0 && segment.width % 4 == 0 && gradient.aligned != 0;
    }
    row.end_segment = static_cast<int32_t>(segments.size());
  }
  CHECK(inverse.positions.size() == num_ids) << inverse.positions.size() << " for " << num_ids;
  CHECK(inverse.starts.size() == gradients.rows + 1) << inverse.starts.size();
  const auto [feature_list, segment_list] = transfers->part_tables()->Tables(rows, segments);
  auto* const places = transfers->Scratch<IdPlace>(std::max<int64_t>(1, num_ids));
  ScatterArgs args = {};
  args.starts = U32Data(inverse.starts);
  args.ids = U32Data(inverse.positions);
  args.places = places;
  args.features = feature_list;
  args.segments = segment_list;
  args.aligned = aligned;
  LocateIds(transfers->stream(), args.features, static_cast<int>(rows.size()),
            features.empty() ? 0 : features[0].samples, places);
  ScatterRows(transfers->stream(), args, F32Matrix(gradients));
}

}  // namespace satrap
