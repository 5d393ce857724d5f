#include "nn_worker/backend/device/device_row_exchange.h"

#include <algorithm>
#include <tuple>
#include <utility>
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

bool IsSequence(const FeatureExchange& feature) {
  return feature.pooling == RowPooling::kNone && !feature.one_row_a_sample;
}

// The feature, without its segments.
GatherFeature GatherFeatureOf(const FeatureExchange& feature) {
  // All bytes are zeroed, including the gaps between fields, because DeviceTables compares bytes.
  GatherFeature entry = {};
  entry.max_length = 1;
  if (!feature.segments.empty()) {
    const ConstValues rows = ConstValuesOf(feature.rows);
    entry.table = rows.data;
    entry.table_stride = rows.stride;
    entry.table_rows = rows.rows;
    entry.type = rows.type;
  }
  entry.scale = feature.row_scale;
  if (feature.one_row_a_sample) return entry;
  entry.pooling = feature.pooling;
  entry.rows = U32Data(feature.ids);
  entry.offsets = U32Data(feature.offsets);
  entry.weights = WeightsOf(feature);
  if (!IsSequence(feature)) return entry;
  entry.max_length = static_cast<int32_t>(feature.max_length);
  if (!feature.lengths.empty()) {
    entry.lengths = F32Data(feature.lengths);
    entry.lengths_stride = feature.lengths.stride;
  }
  return entry;
}

GatherSegment GatherSegmentOf(const FeatureExchange& feature, const RowSegment& segment) {
  const Values out = ValuesOf(segment.values);
  GatherSegment entry = {};
  entry.column = static_cast<int32_t>(segment.column);
  entry.width = static_cast<int32_t>(segment.width);
  entry.out = out.data;
  entry.out_stride = out.stride;
  entry.type = out.type;
  const bool aligned = out.aligned != 0 && (!IsSequence(feature) || segment.width % 4 == 0);
  entry.aligned = aligned ? 1 : 0;
  return entry;
}

// Checks the number of values per sample in a segment, so that kernels do not access memory outside
// the tensors.
void CheckSegment(const FeatureExchange& feature, const RowSegment& segment, int64_t row_values) {
  CHECK(segment.column >= 0 && segment.column + segment.width <= row_values)
      << "columns " << segment.column << " to " << segment.column + segment.width << " of "
      << row_values;
  CHECK(segment.values.cols == segment.width * (IsSequence(feature) ? feature.max_length : 1))
      << segment.values.cols << " columns for a segment of " << segment.width;
}

// The columns at which the spans of a scatter begin, and the column at which the last span ends.
// Spans begin and end wherever a segment of any feature begins or ends.
std::vector<int64_t> SpansOf(absl::Span<const FeatureExchange> features, int64_t row_values) {
  std::vector<int64_t> bounds = {0, row_values};
  for (const FeatureExchange& feature : features) {
    for (const RowSegment& segment : feature.segments) {
      CheckSegment(feature, segment, row_values);
      bounds.push_back(segment.column);
      bounds.push_back(segment.column + segment.width);
    }
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  return bounds;
}

std::vector<ScatterGroup> GroupsOfSpans(const std::vector<int64_t>& bounds) {
  std::vector<ScatterGroup> groups;
  for (size_t span = 0; span + 1 < bounds.size(); ++span) {
    for (int64_t column = bounds[span]; column < bounds[span + 1]; column += 4) {
      groups.push_back({static_cast<int32_t>(column),
                        static_cast<int32_t>(std::min<int64_t>(4, bounds[span + 1] - column)),
                        static_cast<int32_t>(span), static_cast<int32_t>(column - bounds[span])});
    }
  }
  return groups;
}

// Sets the sources of a feature, one for each span.
void FindSources(const FeatureExchange& feature, const std::vector<int64_t>& bounds,
                 absl::Span<ScatterSource> sources) {
  for (const RowSegment& segment : feature.segments) {
    const ConstValues gradient = ConstValuesOf(segment.values);
    CHECK(gradient.stride <= INT32_MAX) << gradient.stride;
    for (size_t span = 0; span < sources.size(); ++span) {
      const int64_t offset = bounds[span] - segment.column;
      if (offset < 0 || offset >= segment.width) continue;
      ScatterSource& source = sources[span];
      CHECK(source.gradient == nullptr)
          << "two segments of a feature contain column " << bounds[span];
      source.gradient =
          static_cast<const char*>(gradient.data) + offset * ElementBytes(gradient.type);
      source.stride = static_cast<int32_t>(gradient.stride);
      source.position_stride = static_cast<int32_t>(segment.width);
      source.type = gradient.type;
    }
  }
}

ScatterFeature ScatterFeatureOf(const FeatureExchange& feature, int64_t first_id) {
  ScatterFeature entry = {};
  entry.pooling = feature.pooling;
  entry.max_length = static_cast<int32_t>(feature.max_length);
  entry.offsets = U32Data(feature.offsets);
  entry.weights = WeightsOf(feature);
  entry.first_id = first_id;
  return entry;
}

// Whether every id has coefficient 1, and id i belongs to sample i.
bool HasOneIdASample(const FeatureExchange& feature) {
  return feature.offsets.empty() && feature.weights.empty() &&
         (feature.pooling != RowPooling::kNone || feature.max_length > 0);
}

// The type of the first gradient, and whether another gradient has a different type.
std::pair<ElementType, bool> TypeOf(const std::vector<ScatterSource>& sources) {
  const ScatterSource* first = nullptr;
  for (const ScatterSource& source : sources) {
    if (source.gradient == nullptr) continue;
    if (first == nullptr) first = &source;
    if (source.type != first->type) return {first->type, true};
  }
  return {first == nullptr ? ElementType::kF32 : first->type, false};
}

// The scratch memory of a scatter. Each part begins at a multiple of 64 bytes.
struct ScatterScratch {
  int64_t places, pieces, large_rows, end;  // in bytes from its beginning
};
ScatterScratch ScatterScratchOf(int64_t num_ids, int64_t row_values, bool with_places) {
  ScatterScratch at = {};
  const int64_t rows = PieceRows(num_ids);
  if (with_places) at.pieces = PaddedBytes(num_ids * static_cast<int64_t>(sizeof(IdPlace)));
  at.large_rows = at.end = at.pieces;
  if (rows == 0) return at;
  at.large_rows +=
      PaddedBytes(rows * PieceColumns(row_values) * static_cast<int64_t>(sizeof(float)));
  at.end = at.large_rows + PaddedBytes(rows * static_cast<int64_t>(sizeof(uint32_t)));
  return at;
}

}  // namespace

absl::Status ReserveScatterOnDevice(DeviceTransfers* transfers, int64_t num_ids,
                                    int64_t row_values) {
  return transfers->GrowScratch(ScatterScratchOf(num_ids, row_values, /*with_places=*/true).end);
}

void GatherRowsOnDevice(DeviceTransfers* transfers, absl::Span<const FeatureExchange> features) {
  std::vector<GatherFeature> entries;
  std::vector<GatherSegment> segments;
  for (const FeatureExchange& feature : features) {
    CHECK(feature.samples == features[0].samples) << feature.samples;
    GatherFeature entry = GatherFeatureOf(feature);
    entry.first_segment = static_cast<int32_t>(segments.size());
    for (const RowSegment& segment : feature.segments) {
      CheckSegment(feature, segment, feature.rows.cols);
      segments.push_back(GatherSegmentOf(feature, segment));
      entry.groups += static_cast<int32_t>((segment.width + 3) / 4);
    }
    if (entry.groups > 0 || entry.lengths != nullptr) entries.push_back(entry);
  }
  if (entries.empty()) return;
  const auto [feature_list, segment_list] = transfers->part_tables()->Tables(entries, segments);
  GatherAndPool(transfers->stream(), feature_list, static_cast<int>(entries.size()), segment_list,
                features[0].samples);
}

void ScatterGradientsOnDevice(DeviceTransfers* transfers,
                              absl::Span<const FeatureExchange> features, const RowInverse& inverse,
                              const Tensor& gradients) {
  const std::vector<int64_t> bounds = SpansOf(features, gradients.cols);
  const std::vector<ScatterGroup> groups = GroupsOfSpans(bounds);
  const size_t num_spans = bounds.size() - 1;
  std::vector<ScatterFeature> entries;
  std::vector<ScatterSource> sources(features.size() * num_spans);
  bool one_id = true;
  int64_t num_ids = 0;
  for (const FeatureExchange& feature : features) {
    CHECK(!feature.one_row_a_sample) << "comes alone";
    CHECK(feature.samples == features[0].samples) << feature.samples;
    FindSources(feature, bounds,
                absl::MakeSpan(sources).subspan(entries.size() * num_spans, num_spans));
    entries.push_back(ScatterFeatureOf(feature, num_ids));
    one_id = one_id && HasOneIdASample(feature);
    num_ids += feature.ids.size();
  }
  CHECK(inverse.positions.size() == num_ids) << inverse.positions.size() << " for " << num_ids;
  CHECK(inverse.starts.size() == gradients.rows + 1) << inverse.starts.size();
  const ScatterScratch at = ScatterScratchOf(num_ids, gradients.cols, !one_id);
  auto* const scratch = transfers->Scratch<char>(std::max<int64_t>(1, at.end));
  const auto [feature_list, group_list, source_list] =
      transfers->part_tables()->Tables(entries, groups, sources);
  ScatterArgs args = {};
  args.starts = U32Data(inverse.starts);
  args.ids = U32Data(inverse.positions);
  args.samples = features.empty() ? 0 : static_cast<uint32_t>(features[0].samples);
  args.num_ids = static_cast<uint32_t>(num_ids);
  args.groups = group_list;
  args.sources = source_list;
  args.num_groups = static_cast<int32_t>(groups.size());
  args.num_spans = static_cast<int32_t>(num_spans);
  std::tie(args.type, args.mixed) = TypeOf(sources);
  args.pieces = reinterpret_cast<float*>(scratch + at.pieces);
  args.large_rows = reinterpret_cast<uint32_t*>(scratch + at.large_rows);
  if (!one_id) {
    auto* const places = reinterpret_cast<IdPlace*>(scratch + at.places);
    LocateIds(transfers->stream(), feature_list, static_cast<int>(entries.size()),
              features[0].samples, places);
    args.places = places;
  }
  ScatterRows(transfers->stream(), args, F32Matrix(gradients));
}

}  // namespace satrap
