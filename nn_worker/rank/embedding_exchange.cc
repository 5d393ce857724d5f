#include "nn_worker/rank/embedding_exchange.h"

#include <algorithm>
#include <cstring>

#include "common/pooling.h"
#include "common/rpc/payload.h"

namespace satrap {
namespace {

// All values of a wire dtype are finite: no exponent is all ones.
bool AllFinite(WireDtype dtype, const uint8_t* bytes, size_t count) {
  uint32_t bad = 0;
  if (dtype == F32) {
    const auto* values = reinterpret_cast<const uint32_t*>(bytes);
    for (size_t i = 0; i < count; ++i) bad |= (values[i] & 0x7f800000u) == 0x7f800000u;
  } else {
    const uint16_t exponent = dtype == F16 ? 0x7c00 : 0x7f80;
    const auto* values = reinterpret_cast<const uint16_t*>(bytes);
    for (size_t i = 0; i < count; ++i) bad |= (values[i] & exponent) == exponent;
  }
  return bad == 0;
}

void CopyColumns(const float* from, size_t from_stride, size_t samples, size_t width, float* to,
                 size_t to_stride) {
  for (size_t s = 0; s < samples; ++s) {
    std::memcpy(to + s * to_stride, from + s * from_stride, width * sizeof(float));
  }
}

}  // namespace

EmbeddingExchange::EmbeddingExchange(const PartLayout* layout, Network* network)
    : layout_(*layout),
      network_(network),
      table_rows_(layout->tables.size()),
      rows_(layout->tables.size(), nullptr) {}

const float* EmbeddingExchange::Decode(const rpc::WireValues& values, std::vector<float>* scratch) {
  if (values.dtype == F32) return reinterpret_cast<const float*>(values.bytes);
  if (scratch->size() < values.count) scratch->resize(values.count);
  rpc::DecodeWire(values, absl::MakeSpan(scratch->data(), values.count));
  return scratch->data();
}

void EmbeddingExchange::WriteInputs(const PartView& part) {
  const Tensor numeric = network_->input_view(0);
  if (!numeric.empty() && layout_.numerics > 0) {
    CopyColumns(part.numeric.data(), layout_.numerics, part.samples, layout_.numerics,
                numeric.f32(), numeric.stride);
  }
  for (size_t t = 0; t < layout_.tables.size(); ++t) {
    rows_[t] = Decode(part.tables[t].values, &table_rows_[t]);
  }
  for (size_t f = 0; f < layout_.features.size(); ++f) {
    WriteFeature(layout_.features[f], part, part.features[f]);
  }
}

void EmbeddingExchange::WriteFeature(const FeatureLayout& feature, const PartView& part,
                                     const PartView::Feature& values) {
  const size_t row_values = layout_.tables[feature.table].row_values;
  const float* pooled = feature.pooled_at_worker ? Decode(values.pooled, &pooled_) : nullptr;
  for (const SegmentLayout& segment : feature.segments) {
    const Tensor view = network_->input_view(segment.input);
    if (view.empty()) continue;
    const RowColumns columns{row_values, segment.column, segment.width};
    if (feature.pooled_at_worker) {
      CopyColumns(pooled + segment.column, row_values, part.samples, segment.width, view.f32(),
                  view.stride);
    } else if (feature.pooling != FeatureConfig::NONE) {
      PoolForward(feature.pooling, values.indices, rows_[feature.table], columns, view.f32(),
                  view.stride);
    } else {
      // Positions follow one another without gaps; rows of the input need not.
      const size_t sequence = feature.max_length * segment.width;
      lengths_.resize(part.samples);
      sequences_.resize(part.samples * sequence);
      SequenceForward(values.indices, feature.max_length, rows_[feature.table], columns,
                      sequences_.data(), segment.width, absl::MakeSpan(lengths_));
      CopyColumns(sequences_.data(), sequence, part.samples, sequence, view.f32(), view.stride);
    }
  }
}

void EmbeddingExchange::AddGradients(const FeatureLayout& feature, const PartView& part,
                                     const PartView::Feature& values, float* gradients) {
  const size_t row_values = layout_.tables[feature.table].row_values;
  for (const SegmentLayout& segment : feature.segments) {
    const Tensor view = network_->input_gradient(segment.input);
    if (view.empty()) continue;
    const RowColumns columns{row_values, segment.column, segment.width};
    if (feature.pooled_at_worker) {
      CopyColumns(view.f32(), view.stride, part.samples, segment.width, gradients + segment.column,
                  row_values);
    } else if (feature.pooling != FeatureConfig::NONE) {
      PoolBackward(feature.pooling, values.indices, view.f32(), view.stride, columns, gradients);
    } else {
      const size_t sequence = feature.max_length * segment.width;
      sequences_.resize(part.samples * sequence);
      CopyColumns(view.f32(), view.stride, part.samples, sequence, sequences_.data(), sequence);
      SequenceBackward(values.indices, feature.max_length, sequences_.data(), segment.width,
                       columns, gradients);
    }
  }
}

PartGradients EmbeddingExchange::ReadGradients(const PartView& part, bool* finite) {
  PartGradients result;
  result.header.set_dtype(part.dtype);
  rpc::PayloadBuilder builder;
  for (size_t t = 0; t < layout_.tables.size(); ++t) {
    const TableLayout& table = layout_.tables[t];
    if (!table.sends_rows) continue;
    TableGradients* sent = result.header.add_tables();
    sent->set_table(table.id);
    sent->set_num_rows(part.tables[t].num_rows);
    sent->set_row_values(static_cast<uint32_t>(table.row_values));
    builder.Reserve(part.dtype, part.tables[t].num_rows * table.row_values,
                    sent->mutable_gradients());
  }
  for (size_t f = 0; f < layout_.features.size(); ++f) {
    if (!layout_.features[f].pooled_at_worker) continue;
    FeatureGradients* sent = result.header.add_features();
    sent->set_feature(static_cast<uint32_t>(f));
    builder.Reserve(part.dtype, part.samples * layout_.tables[layout_.features[f].table].row_values,
                    sent->mutable_gradients());
  }
  builder.Allocate();

  // f32 sums are made where they are sent from; others in scratch memory, and converted once.
  const auto fill = [&](const Section& section, auto add) {
    const size_t count = section.size_bytes() / rpc::WireValueBytes(part.dtype);
    uint8_t* to = builder.Fill<uint8_t>(section).data();
    float* sums = reinterpret_cast<float*>(to);
    if (part.dtype != F32) {
      if (gradients_.size() < count) gradients_.resize(count);
      sums = gradients_.data();
    }
    std::fill_n(sums, count, 0.f);
    add(sums);
    if (part.dtype != F32) rpc::EncodeWire(absl::MakeSpan(sums, count), part.dtype, to);
    if (!AllFinite(part.dtype, to, count)) *finite = false;
  };
  int sent_table = 0;
  int sent_feature = 0;
  for (size_t t = 0; t < layout_.tables.size(); ++t) {
    if (!layout_.tables[t].sends_rows) continue;
    fill(result.header.tables(sent_table++).gradients(), [&](float* sums) {
      for (size_t f = 0; f < layout_.features.size(); ++f) {
        const FeatureLayout& feature = layout_.features[f];
        if (feature.table != static_cast<int>(t) || feature.pooled_at_worker) continue;
        AddGradients(feature, part, part.features[f], sums);
      }
    });
  }
  for (size_t f = 0; f < layout_.features.size(); ++f) {
    if (!layout_.features[f].pooled_at_worker) continue;
    fill(result.header.features(sent_feature++).gradients(),
         [&](float* sums) { AddGradients(layout_.features[f], part, part.features[f], sums); });
  }
  result.payload = builder.Take();
  return result;
}

}  // namespace satrap
