#include "data_loader/batch/part_encoder.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/base/check.h"
#include "common/config/job_facts.h"
#include "data_loader/batch/provenance.h"
#include "data_loader/transform/feature_cross.h"

namespace satrap {
namespace {

// Records are copied feature by feature in tiles of this many rows, so that a tile's rows stay in
// the L1 cache while the id arrays of all features are written.
constexpr size_t kTileRows = 64;

}  // namespace

PartEncoder::Feature PartEncoder::FeatureOf(const FeatureConfig& config) {
  const bool skip = config.missing() == FeatureConfig::SKIP;
  Feature feature{Feature::kId, 0, false, 0, {}};
  if (config.cross_columns_size() > 0) {
    feature.kind = skip ? Feature::kCrossOrNone : Feature::kCross;
    for (const std::string& column : config.cross_columns()) {
      const int index = schema_.IndexOfId(column);
      CHECK(index >= 0) << "feature " << config.name() << " crosses no column " << column;
      feature.crossed.push_back(static_cast<size_t>(index));
    }
    return feature;
  }
  const std::string& column = ColumnOf(config);
  int index;
  if (config.from_numeric_case() != FeatureConfig::FROM_NUMERIC_NOT_SET) {
    index = schema_.IndexOfNumeric(column);
    feature.kind = skip ? Feature::kNumericOrNone : Feature::kNumeric;
    feature.to_id = to_ids_.size();
    to_ids_.emplace_back(config);
  } else if (schema_.IndexOfIdList(column) >= 0) {
    index = schema_.IndexOfIdList(column);
    feature.kind = Feature::kList;
    feature.weighted = schema_.weighted[static_cast<size_t>(index)];
  } else {
    index = schema_.IndexOfId(column);
    feature.kind = skip ? Feature::kIdOrNone : Feature::kId;
  }
  CHECK(index >= 0) << "feature " << config.name() << " reads no column " << column;
  feature.column = static_cast<size_t>(index);
  return feature;
}

PartEncoder::PartEncoder(const DataConfig& data) : schema_(SchemaOf(data)) {
  for (const FeatureConfig& config : data.features()) features_.push_back(FeatureOf(config));
  for (const NumericConfig& config : data.numerics()) {
    const int index = schema_.IndexOfNumeric(ColumnOf(config));
    CHECK(index >= 0) << "numeric " << config.name() << " reads no column";
    dense_.push_back({static_cast<size_t>(index), NumericTransform(config)});
  }
}

uint64_t PartEncoder::NumericId(const Feature& feature, const Row& row, bool* missing) const {
  const float x = row.block->numerics(row.row)[feature.column];
  *missing = std::isnan(x);
  return *missing ? kMissingId : to_ids_[feature.to_id].Apply(x);
}

uint64_t PartEncoder::CrossIdOf(const Feature& feature, const Row& row) {
  const uint64_t* ids = row.block->ids(row.row);
  uint64_t crossed[kMaxCrossColumns];
  for (size_t i = 0; i < feature.crossed.size(); ++i) crossed[i] = ids[feature.crossed[i]];
  return CrossId(absl::MakeSpan(crossed, feature.crossed.size()));
}

bool PartEncoder::CrossMisses(const Feature& feature, const Row& row) {
  for (const size_t column : feature.crossed) {
    if (row.block->IsMissing(row.row, column)) return true;
  }
  return false;
}

// The total number of ids of the feature in all rows. A feature of kind kId, kNumeric or kCross has
// exactly one per row.
size_t PartEncoder::CountIds(const Feature& feature, const Rows& rows) const {
  size_t count = 0;
  for (const Row& row : rows) {
    switch (feature.kind) {
      case Feature::kId:
      case Feature::kNumeric:
      case Feature::kCross:
        return rows.size();
      case Feature::kIdOrNone:
        count += row.block->IsMissing(row.row, feature.column) ? 0 : 1;
        break;
      case Feature::kCrossOrNone:
        count += CrossMisses(feature, row) ? 0 : 1;
        break;
      case Feature::kNumericOrNone:
        count += std::isnan(row.block->numerics(row.row)[feature.column]) ? 0 : 1;
        break;
      case Feature::kList:
        count += row.block->list_ids(row.row, feature.column).size();
        break;
    }
  }
  return count;
}

// Shuffled rows may be anywhere in their block, so the next tile's rows are prefetched while this
// tile is copied.
void PartEncoder::PrefetchIds(const Row& row) const {
  const char* ids = reinterpret_cast<const char*>(row.block->ids(row.row));
  for (size_t at = 0; at < schema_.ids.size() * sizeof(uint64_t); at += 64) {
    __builtin_prefetch(ids + at);
  }
}

void PartEncoder::FillSingleIds(const Rows& rows,
                                absl::Span<const absl::Span<uint64_t>> ids) const {
  for (size_t from = 0; from < rows.size(); from += kTileRows) {
    const size_t to = std::min(rows.size(), from + kTileRows);
    for (size_t i = to; i < std::min(rows.size(), to + kTileRows); ++i) PrefetchIds(rows[i]);
    for (size_t f = 0; f < features_.size(); ++f) {
      const Feature& feature = features_[f];
      uint64_t* out = ids[f].data();
      if (feature.kind == Feature::kId) {
        for (size_t i = from; i < to; ++i) out[i] = rows[i].block->ids(rows[i].row)[feature.column];
      } else if (feature.kind == Feature::kNumeric) {
        bool missing;
        for (size_t i = from; i < to; ++i) out[i] = NumericId(feature, rows[i], &missing);
      } else if (feature.kind == Feature::kCross) {
        for (size_t i = from; i < to; ++i) out[i] = CrossIdOf(feature, rows[i]);
      }
    }
  }
}

void PartEncoder::FillJagged(const Feature& feature, const Rows& rows, absl::Span<uint64_t> ids,
                             absl::Span<uint32_t> offsets, absl::Span<float> values) const {
  size_t count = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    offsets[i] = static_cast<uint32_t>(count);
    const Row& row = rows[i];
    if (feature.kind == Feature::kList) {
      const absl::Span<const uint64_t> from = row.block->list_ids(row.row, feature.column);
      std::copy(from.begin(), from.end(), ids.begin() + count);
      if (feature.weighted) {
        const absl::Span<const float> weights = row.block->list_values(row.row, feature.column);
        std::copy(weights.begin(), weights.end(), values.begin() + count);
      }
      count += from.size();
    } else if (feature.kind == Feature::kIdOrNone) {
      if (row.block->IsMissing(row.row, feature.column)) continue;
      ids[count++] = row.block->ids(row.row)[feature.column];
    } else if (feature.kind == Feature::kCrossOrNone) {
      if (!CrossMisses(feature, row)) ids[count++] = CrossIdOf(feature, row);
    } else {
      bool missing;
      const uint64_t id = NumericId(feature, row, &missing);
      if (!missing) ids[count++] = id;
    }
  }
  offsets[rows.size()] = static_cast<uint32_t>(count);
  CHECK(count == ids.size());
}

bool PartEncoder::MissesLabels(const Rows& rows) const {
  // With a single label column, every good record has its label.
  if (schema_.labels.size() == 1) return false;
  for (const Row& row : rows) {
    const float* labels = row.block->labels(row.row);
    for (size_t t = 0; t < schema_.labels.size(); ++t) {
      if (std::isnan(labels[t])) return true;
    }
  }
  return false;
}

// A missing label is sent as 0. Readers ignore it because of the mask.
void PartEncoder::FillLabels(const Rows& rows, absl::Span<float> labels,
                             absl::Span<uint8_t> mask) const {
  size_t at = 0;
  for (const Row& row : rows) {
    const float* of_row = row.block->labels(row.row);
    for (size_t t = 0; t < schema_.labels.size(); ++t, ++at) {
      const bool known = !std::isnan(of_row[t]);
      labels[at] = known ? of_row[t] : 0.0f;
      if (!mask.empty()) mask[at] = known ? 1 : 0;
    }
  }
}

Part PartEncoder::Encode(absl::Span<const BlockRange> ranges, uint64_t first_sample) const {
  Part part;
  PartDescription* description = part.header.mutable_part();
  Rows rows;
  for (const BlockRange& range : ranges) {
    if (range.size() == 0) continue;
    for (uint32_t i = range.from; i < range.to; ++i) {
      rows.push_back({&range.block->records, range.block->order[i]});
    }
    *description->add_provenance() = ProvenanceOf(range);
  }
  description->set_samples(static_cast<uint32_t>(rows.size()));
  description->set_first_sample(first_sample);
  description->set_numerics(static_cast<uint32_t>(dense_.size()));
  description->set_tasks(static_cast<uint32_t>(schema_.labels.size()));

  // Lay the payload out first: reserve every section with its final size, then allocate all memory
  // at once and fill it in place. CountIds must therefore agree with FillJagged.
  rpc::PayloadBuilder builder;
  Reserve(rows, &part, &builder);
  builder.Allocate();
  FillFeatures(rows, part, &builder);
  FillSamples(rows, part, &builder);
  part.payload = builder.Take();
  return part;
}

void PartEncoder::Reserve(const Rows& rows, Part* part, rpc::PayloadBuilder* builder) const {
  PartDescription* const description = part->header.mutable_part();
  const size_t samples = rows.size(), tasks = schema_.labels.size();
  for (const Feature& feature : features_) {
    FeatureIds* ids = part->header.add_features();
    const size_t count = CountIds(feature, rows);
    const bool jagged = feature.kind != Feature::kId && feature.kind != Feature::kNumeric &&
                        feature.kind != Feature::kCross;
    ids->set_num_ids(count);
    builder->Reserve<uint64_t>(count, ids->mutable_ids());
    if (jagged) builder->Reserve<uint32_t>(samples + 1, ids->mutable_offsets());
    if (feature.weighted) builder->Reserve<float>(count, ids->mutable_weights());
  }
  builder->Reserve<float>(samples * dense_.size(), description->mutable_numeric_values());
  builder->Reserve<float>(samples * tasks, description->mutable_labels());
  if (MissesLabels(rows)) {
    builder->Reserve<uint8_t>(samples * tasks, description->mutable_label_mask());
  }
  if (schema_.has_weight) builder->Reserve<float>(samples, description->mutable_weights());
  if (schema_.has_group) builder->Reserve<uint64_t>(samples, description->mutable_groups());
  if (schema_.has_time) builder->Reserve<int64_t>(samples, description->mutable_times());
}

void PartEncoder::FillFeatures(const Rows& rows, const Part& part,
                               rpc::PayloadBuilder* builder) const {
  // Fill features with exactly one id per sample together, tile by tile, and the others one by one.
  std::vector<absl::Span<uint64_t>> single_ids;
  for (size_t f = 0; f < features_.size(); ++f) {
    const FeatureIds& ids = part.header.features(static_cast<int>(f));
    single_ids.push_back(builder->Fill<uint64_t>(ids.ids()));
    if (!ids.has_offsets()) continue;
    absl::Span<float> values;
    if (features_[f].weighted) values = builder->Fill<float>(ids.weights());
    FillJagged(features_[f], rows, single_ids[f], builder->Fill<uint32_t>(ids.offsets()), values);
  }
  FillSingleIds(rows, single_ids);
}

void PartEncoder::FillSamples(const Rows& rows, const Part& part,
                              rpc::PayloadBuilder* builder) const {
  const PartDescription& description = part.header.part();
  const size_t samples = rows.size(), tasks = schema_.labels.size();
  float* dense = builder->Fill<float>(description.numeric_values()).data();
  const absl::Span<float> labels = builder->Fill<float>(description.labels());
  for (size_t i = 0; i < samples; ++i) {
    const Row& row = rows[i];
    const size_t ahead = std::min(samples - 1, i + 16);
    __builtin_prefetch(rows[ahead].block->numerics(rows[ahead].row));
    const float* numerics = row.block->numerics(row.row);
    for (const Dense& column : dense_) *dense++ = column.transform.Apply(numerics[column.column]);
    if (tasks == 1) labels[i] = row.block->label(row.row);
  }
  if (tasks > 1) {
    absl::Span<uint8_t> mask;
    if (description.has_label_mask()) mask = builder->Fill<uint8_t>(description.label_mask());
    FillLabels(rows, labels, mask);
  }
  if (schema_.has_weight) {
    float* weights = builder->Fill<float>(description.weights()).data();
    for (const Row& row : rows) *weights++ = row.block->weight(row.row);
  }
  if (schema_.has_group) {
    uint64_t* groups = builder->Fill<uint64_t>(description.groups()).data();
    for (const Row& row : rows) *groups++ = row.block->group(row.row);
  }
  if (schema_.has_time) {
    int64_t* times = builder->Fill<int64_t>(description.times()).data();
    for (const Row& row : rows) *times++ = row.block->time(row.row);
  }
}

}  // namespace satrap
