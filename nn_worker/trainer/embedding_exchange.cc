#include "nn_worker/trainer/embedding_exchange.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "common/numeric/half.h"
#include "common/rpc/payload.h"

namespace satrap {
namespace {

// Blocks of a loop over samples, and of one over values.
constexpr size_t kBlockSamples = 512;
constexpr size_t kBlockValues = 65536;

// Whether all values are finite, that is, no exponent is all ones. `dtype` is F32 or BF16.
bool AllFinite(WireDtype dtype, const uint8_t* bytes, size_t count) {
  uint32_t bad = 0;
  if (dtype == F32) {
    const auto* values = reinterpret_cast<const uint32_t*>(bytes);
    for (size_t i = 0; i < count; ++i) bad |= (values[i] & 0x7f800000u) == 0x7f800000u;
  } else {
    const auto* values = reinterpret_cast<const uint16_t*>(bytes);
    for (size_t i = 0; i < count; ++i) bad |= (values[i] & 0x7f80u) == 0x7f80u;
  }
  return bad == 0;
}

void CopyColumns(const float* from, size_t from_stride, size_t samples, size_t width, float* to,
                 size_t to_stride) {
  for (size_t s = 0; s < samples; ++s) {
    std::memcpy(to + s * to_stride, from + s * from_stride, width * sizeof(float));
  }
}

float* RowOf(const Tensor& view, size_t sample) { return view.f32(static_cast<int64_t>(sample)); }

size_t NumIds(const RowIndices& indices, size_t sample) {
  return indices.offsets.empty() ? 1 : indices.offsets[sample + 1] - indices.offsets[sample];
}

// The indices of samples [begin, end). Offsets count from the first id of the part, so rows and
// weights are cut only where there are no offsets.
RowIndices SamplesOf(const RowIndices& indices, size_t begin, size_t end) {
  RowIndices block = indices;
  block.samples = end - begin;
  if (!indices.offsets.empty()) {
    block.offsets = indices.offsets.subspan(begin, block.samples + 1);
    return block;
  }
  block.rows = indices.rows.subspan(begin, block.samples);
  if (!indices.weights.empty()) block.weights = indices.weights.subspan(begin, block.samples);
  return block;
}

}  // namespace

EmbeddingExchange::EmbeddingExchange(const PartLayout* layout, Network* network, ForkJoinPool* pool)
    : layout_(*layout),
      network_(network),
      pool_(pool),
      table_rows_(layout->tables.size()),
      rows_(layout->tables.size(), nullptr),
      pooled_(pool->num_threads()) {}

// The size of a block does not depend on the number of threads, and neither do the results.
void EmbeddingExchange::ForBlocks(size_t count, size_t block,
                                  absl::FunctionRef<void(size_t, size_t, int)> body) {
  pool_->Run(static_cast<int64_t>((count + block - 1) / block), [&](int64_t part, int thread) {
    const size_t begin = static_cast<size_t>(part) * block;
    body(begin, std::min(count, begin + block), thread);
  });
}

const float* EmbeddingExchange::DecodeRows(const rpc::WireValues& values,
                                           std::vector<float>* scratch) {
  if (values.dtype == F32) return reinterpret_cast<const float*>(values.bytes);
  if (scratch->size() < values.count) scratch->resize(values.count);
  ForBlocks(values.count, kBlockValues, [&](size_t begin, size_t end, int) {
    rpc::DecodeWire(values.Subrange(begin, end - begin),
                    absl::MakeSpan(scratch->data() + begin, end - begin));
  });
  return scratch->data();
}

std::vector<Tensor> EmbeddingExchange::OnHost(Tensor (Network::*view_of)(int) const) {
  std::vector<Tensor> views;
  for (int input = 0; input < network_->num_inputs(); ++input) {
    views.push_back((network_->*view_of)(input));
    if (!views.back().empty()) views.back() = network_->OnHost(views.back());
  }
  return views;
}

// Rows are decoded first, because samples of different blocks share them. Then a block writes all
// inputs of its samples; no two blocks write the same memory.
void EmbeddingExchange::WriteInputs(const PartView& part) {
  inputs_ = OnHost(&Network::input_view);
  for (size_t t = 0; t < layout_.tables.size(); ++t) {
    rows_[t] = DecodeRows(part.tables[t].values, &table_rows_[t]);
  }
  const Tensor numeric = inputs_[0];
  const bool has_numeric = !numeric.empty() && layout_.numerics > 0;
  ForBlocks(part.samples, kBlockSamples, [&](size_t begin, size_t end, int thread) {
    if (has_numeric) {
      CopyColumns(part.numeric.data() + begin * layout_.numerics, layout_.numerics, end - begin,
                  layout_.numerics, RowOf(numeric, begin), numeric.stride);
    }
    for (size_t f = 0; f < layout_.features.size(); ++f) {
      WriteFeature(layout_.features[f], part.features[f], begin, end, thread);
    }
  });
}

void EmbeddingExchange::WriteFeature(const FeatureLayout& feature, const PartView::Feature& values,
                                     size_t begin, size_t end, int thread) {
  if (feature.pooled_at_worker) {
    WritePooled(feature, values.pooled, begin, end, thread);
    return;
  }
  const size_t row_values = layout_.tables[feature.table].row_values;
  for (const SegmentLayout& segment : feature.segments) {
    const Tensor view = inputs_[segment.input];
    if (view.empty()) continue;
    if (feature.pooling == FeatureConfig::NONE) {
      WriteSequence(feature, segment, values.indices, begin, end);
      continue;
    }
    PoolForward(feature.pooling, SamplesOf(values.indices, begin, end), rows_[feature.table],
                {row_values, segment.column, segment.width}, RowOf(view, begin), view.stride);
  }
  if (feature.length_input < 0) return;
  const Tensor lengths = inputs_[feature.length_input];
  if (lengths.empty()) return;
  for (size_t s = begin; s < end; ++s) {
    *RowOf(lengths, s) =
        static_cast<float>(std::min(feature.max_length, NumIds(values.indices, s)));
  }
}

// SequenceForward writes samples one after another, but the rows of an input may be further apart,
// so each sample is a call of its own.
void EmbeddingExchange::WriteSequence(const FeatureLayout& feature, const SegmentLayout& segment,
                                      const RowIndices& indices, size_t begin, size_t end) {
  const Tensor view = inputs_[segment.input];
  const RowColumns columns{layout_.tables[feature.table].row_values, segment.column, segment.width};
  uint32_t length = 0;
  for (size_t s = begin; s < end; ++s) {
    SequenceForward(SamplesOf(indices, s, s + 1), feature.max_length, rows_[feature.table], columns,
                    RowOf(view, s), segment.width, absl::MakeSpan(&length, 1));
  }
}

void EmbeddingExchange::WritePooled(const FeatureLayout& feature, const rpc::WireValues& pooled,
                                    size_t begin, size_t end, int thread) {
  const size_t row_values = layout_.tables[feature.table].row_values;
  const size_t count = (end - begin) * row_values;
  const rpc::WireValues block = pooled.Subrange(begin * row_values, count);
  const float* from = reinterpret_cast<const float*>(block.bytes);
  if (block.dtype != F32) {
    pooled_[thread].resize(count);
    rpc::DecodeWire(block, absl::MakeSpan(pooled_[thread]));
    from = pooled_[thread].data();
  }
  for (const SegmentLayout& segment : feature.segments) {
    const Tensor view = inputs_[segment.input];
    if (view.empty()) continue;
    CopyColumns(from + segment.column, row_values, end - begin, segment.width, RowOf(view, begin),
                view.stride);
  }
}

// Runs on one thread for all samples: several of them add to the same row, and the order of these
// additions must not depend on the number of threads.
void EmbeddingExchange::AddGradients(const FeatureLayout& feature, const PartView& part,
                                     const PartView::Feature& values, float* gradients) {
  const size_t row_values = layout_.tables[feature.table].row_values;
  for (const SegmentLayout& segment : feature.segments) {
    const Tensor view = input_gradients_[segment.input];
    if (view.empty()) continue;
    const RowColumns columns{row_values, segment.column, segment.width};
    if (feature.pooled_at_worker) {
      CopyColumns(view.f32(), view.stride, part.samples, segment.width, gradients + segment.column,
                  row_values);
    } else if (feature.pooling != FeatureConfig::NONE) {
      PoolBackward(feature.pooling, values.indices, view.f32(), view.stride, columns, gradients);
    } else {
      for (size_t s = 0; s < part.samples; ++s) {
        SequenceBackward(SamplesOf(values.indices, s, s + 1), feature.max_length, RowOf(view, s),
                         segment.width, columns, gradients);
      }
    }
  }
}

PartGradients EmbeddingExchange::ReadGradients(const PartView& part, bool* finite) {
  input_gradients_ = OnHost(&Network::input_gradient);
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
  std::atomic<bool> all_finite{true};
  std::atomic<uint64_t> saturated{0};
  const auto fill = [&](const Section& section, auto add) {
    const size_t count = section.size_bytes() / rpc::WireValueBytes(part.dtype);
    uint8_t* to = builder.Fill<uint8_t>(section).data();
    float* sums = reinterpret_cast<float*>(to);
    if (part.dtype != F32) {
      if (gradients_.size() < count) gradients_.resize(count);
      sums = gradients_.data();
    }
    ForBlocks(count, kBlockValues,
              [&](size_t begin, size_t end, int) { std::fill(sums + begin, sums + end, 0.f); });
    add(sums);
    ForBlocks(count, kBlockValues, [&](size_t begin, size_t end, int) {
      uint8_t* const bytes = to + begin * rpc::WireValueBytes(part.dtype);
      const auto block = absl::MakeSpan(sums + begin, end - begin);
      // A sum over many samples may exceed an F16 although the model is sound, and would do so
      // again in the next step, so it is sent as the largest F16. Only the f32 sum tells whether
      // the model is broken.
      if (part.dtype != F32) rpc::EncodeWire(block, part.dtype, bytes);
      if (part.dtype == F16) {
        if (!AllFinite(F32, reinterpret_cast<const uint8_t*>(block.data()), block.size())) {
          all_finite.store(false);
        }
        saturated += SaturateF16(absl::MakeSpan(reinterpret_cast<uint16_t*>(bytes), block.size()));
      } else if (!AllFinite(part.dtype, bytes, block.size())) {
        all_finite.store(false);
      }
    });
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
  if (!all_finite.load()) *finite = false;
  result.saturated_values = saturated.load();
  result.payload = builder.Take();
  return result;
}

}  // namespace satrap
