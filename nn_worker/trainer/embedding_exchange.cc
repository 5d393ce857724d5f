#include "nn_worker/trainer/embedding_exchange.h"

#include <algorithm>
#include <atomic>

#include "common/base/status_macros.h"
#include "common/numeric/half.h"
#include "common/rpc/payload.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

// A block of a loop over values. Does not depend on the number of threads, and neither do the
// results.
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

absl::Span<const uint8_t> BytesOf(const float* values, size_t count) {
  return {reinterpret_cast<const uint8_t*>(values), count * sizeof(float)};
}

RowPooling PoolingOf(FeatureConfig::Pooling pooling) {
  switch (pooling) {
    case FeatureConfig::SUM:
      return RowPooling::kSum;
    case FeatureConfig::MEAN:
      return RowPooling::kMean;
    case FeatureConfig::SQRT_N:
      return RowPooling::kSqrtN;
    case FeatureConfig::NONE:
      return RowPooling::kNone;
  }
  return RowPooling::kSum;
}

// The segments of a feature whose view (of the network's inputs, or of their gradients) is not
// empty, for all samples of a part.
std::vector<RowSegment> SegmentsOf(const FeatureLayout& feature, size_t samples,
                                   const Network& network, Tensor (Network::*view_of)(int) const) {
  std::vector<RowSegment> segments;
  for (const SegmentLayout& segment : feature.segments) {
    const Tensor view = (network.*view_of)(segment.input);
    if (view.empty()) continue;
    segments.push_back({static_cast<int64_t>(segment.column), static_cast<int64_t>(segment.width),
                        view.FirstRows(static_cast<int64_t>(samples))});
  }
  return segments;
}

}  // namespace

EmbeddingExchange::EmbeddingExchange(const PartLayout* layout, Network* network, ForkJoinPool* pool)
    : layout_(*layout),
      network_(network),
      backend_(network->backend()),
      pool_(pool),
      features_(layout->features.size()),
      decoded_(layout->tables.size() + layout->features.size()),
      decoded_memory_(decoded_.size()) {
  for (size_t t = 0; t < layout_.tables.size(); ++t) {
    if (!layout_.tables[t].sends_rows) continue;
    Sent sent;
    sent.table = static_cast<int>(t);
    sent.by_row = true;
    for (size_t f = 0; f < layout_.features.size(); ++f) {
      const FeatureLayout& feature = layout_.features[f];
      if (feature.table != sent.table || feature.pooled_at_worker) continue;
      sent.features.push_back(static_cast<int>(f));
    }
    sent_.push_back(std::move(sent));
  }
  for (size_t f = 0; f < layout_.features.size(); ++f) {
    if (!layout_.features[f].pooled_at_worker) continue;
    Sent sent;
    sent.table = layout_.features[f].table;
    sent.features = {static_cast<int>(f)};
    sent_.push_back(std::move(sent));
  }
}

void EmbeddingExchange::ForBlocks(size_t count, absl::FunctionRef<void(size_t, size_t)> body) {
  pool_->Run(static_cast<int64_t>((count + kBlockValues - 1) / kBlockValues),
             [&](int64_t part, int) {
               const size_t begin = static_cast<size_t>(part) * kBlockValues;
               body(begin, std::min(count, begin + kBlockValues));
             });
}

Tensor EmbeddingExchange::InPayload(DType dtype, const void* host, size_t rows, size_t cols) const {
  uint8_t* const data = on_backend_ + (static_cast<const uint8_t*>(host) - payload_);
  const auto stride = static_cast<int64_t>(cols);
  return {dtype, data, static_cast<int64_t>(rows), stride, stride};
}

absl::StatusOr<Tensor> EmbeddingExchange::RowsOf(const rpc::WireValues& values, size_t cols,
                                                 size_t slot) {
  const size_t rows = cols == 0 ? 0 : values.count / cols;
  if (values.dtype == F32) return InPayload(DType::kF32, values.bytes, rows, cols);
  std::vector<float>& decoded = decoded_[slot];
  if (decoded.size() < values.count) decoded.resize(values.count);
  ForBlocks(values.count, [&](size_t begin, size_t end) {
    rpc::DecodeWire(values.Subrange(begin, end - begin),
                    absl::MakeSpan(decoded.data() + begin, end - begin));
  });
  ASSIGN_OR_RETURN(void* const data,
                   decoded_memory_[slot].Hold(backend_, BytesOf(decoded.data(), values.count)));
  return TensorF32(data, static_cast<int64_t>(rows), static_cast<int64_t>(cols));
}

FeatureExchange EmbeddingExchange::IdsOf(size_t f, const PartView& part, const Tensor& rows) const {
  const FeatureLayout& feature = layout_.features[f];
  const RowIndices& indices = part.features[f].indices;
  FeatureExchange result;
  result.samples = static_cast<int64_t>(part.samples);
  result.rows = rows;
  result.one_row_a_sample = feature.pooled_at_worker;
  if (feature.pooled_at_worker) return result;
  result.pooling = PoolingOf(feature.pooling);
  result.max_length = static_cast<int64_t>(feature.max_length);
  result.ids = InPayload(DType::kU32, indices.rows.data(), 1, indices.rows.size());
  if (!indices.offsets.empty()) {
    result.offsets = InPayload(DType::kU32, indices.offsets.data(), 1, indices.offsets.size());
  }
  if (!indices.weights.empty()) {
    result.weights = InPayload(DType::kF32, indices.weights.data(), 1, indices.weights.size());
  }
  return result;
}

// On the CPU nothing is copied here: rows, ids and numerics are read where the message left them.
absl::Status EmbeddingExchange::WriteInputs(const PartView& part) {
  payload_ = part.payload.data();
  ASSIGN_OR_RETURN(void* const on_backend, payload_memory_.Hold(backend_, part.payload));
  on_backend_ = static_cast<uint8_t*>(on_backend);
  std::vector<Tensor> rows(layout_.tables.size());
  for (size_t t = 0; t < rows.size(); ++t) {
    if (!layout_.tables[t].sends_rows) continue;
    ASSIGN_OR_RETURN(rows[t], RowsOf(part.tables[t].values, layout_.tables[t].row_values, t));
  }
  const auto samples = static_cast<int64_t>(part.samples);
  std::vector<FeatureExchange> gathers;
  const Tensor numeric = network_->input_view(0);
  if (!numeric.empty() && layout_.numerics > 0) {
    FeatureExchange block;
    block.samples = samples;
    block.rows = InPayload(DType::kF32, part.numeric.data(), part.samples, layout_.numerics);
    block.one_row_a_sample = true;
    block.segments = {{0, block.rows.cols, numeric.FirstRows(samples)}};
    gathers.push_back(std::move(block));
  }
  for (size_t f = 0; f < features_.size(); ++f) {
    const FeatureLayout& feature = layout_.features[f];
    Tensor of_feature = rows[feature.table];
    if (feature.pooled_at_worker) {
      ASSIGN_OR_RETURN(of_feature,
                       RowsOf(part.features[f].pooled, layout_.tables[feature.table].row_values,
                              layout_.tables.size() + f));
    }
    features_[f] = IdsOf(f, part, of_feature);
    gathers.push_back(features_[f]);
    gathers.back().segments = SegmentsOf(feature, part.samples, *network_, &Network::input_view);
    if (feature.length_input < 0) continue;
    const Tensor lengths = network_->input_view(feature.length_input);
    if (!lengths.empty()) gathers.back().lengths = lengths.FirstRows(samples);
  }
  backend_->GatherRows(gathers);
  return absl::OkStatus();
}

// Made on the host from the part's own ids, once for a part, and only for a backend that wants it.
absl::StatusOr<RowInverse> EmbeddingExchange::InverseOf(const PartView& part, Sent* sent) {
  if (!sent->by_row || !backend_->ScattersByRow()) return RowInverse();
  std::vector<absl::Span<const uint32_t>> ids;
  for (const int f : sent->features) ids.push_back(part.features[f].indices.rows);
  InvertIds(ids, part.tables[sent->table].num_rows, &sent->inverse);
  const auto hold = [&](const std::vector<uint32_t>& values,
                        GrowingMemory* memory) -> absl::StatusOr<Tensor> {
    const absl::Span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(values.data()),
                                          values.size() * sizeof(uint32_t));
    ASSIGN_OR_RETURN(void* const data, memory->Hold(backend_, bytes));
    const auto count = static_cast<int64_t>(values.size());
    return Tensor{DType::kU32, data, 1, count, count};
  };
  RowInverse inverse;
  ASSIGN_OR_RETURN(inverse.starts, hold(sent->inverse.starts, &sent->starts));
  ASSIGN_OR_RETURN(inverse.positions, hold(sent->inverse.positions, &sent->positions));
  return inverse;
}

// `sums` is filled by the next Sync.
absl::Status EmbeddingExchange::Scatter(const PartView& part, float* sums, Sent* sent) {
  const size_t rows = sent->by_row ? part.tables[sent->table].num_rows : part.samples;
  const size_t row_values = layout_.tables[sent->table].row_values;
  Tensor to = TensorF32(backend_->DeviceView(sums), static_cast<int64_t>(rows),
                        static_cast<int64_t>(row_values));
  const bool copied = to.empty();
  if (copied) {
    ASSIGN_OR_RETURN(to.data, sent->memory.Get(backend_, to.size_bytes()));
  }
  std::vector<FeatureExchange> features;
  for (const int f : sent->features) {
    features.push_back(features_[f]);
    features.back().segments =
        SegmentsOf(layout_.features[f], part.samples, *network_, &Network::input_gradient);
  }
  ASSIGN_OR_RETURN(const RowInverse inverse, InverseOf(part, sent));
  backend_->ScatterGradients(features, inverse, to);
  if (copied) CopyOut(backend_, to, absl::MakeSpan(sums, rows * row_values));
  return absl::OkStatus();
}

uint64_t EmbeddingExchange::Encode(WireDtype dtype, absl::Span<float> sums, uint8_t* to,
                                   bool* finite) {
  std::atomic<bool> all_finite{true};
  std::atomic<uint64_t> saturated{0};
  ForBlocks(sums.size(), [&](size_t begin, size_t end) {
    uint8_t* const bytes = to + begin * rpc::WireValueBytes(dtype);
    const absl::Span<float> block = sums.subspan(begin, end - begin);
    // A sum over many samples may exceed an F16 although the model is sound, and would do so again
    // in the next step, so it is sent as the largest F16. Only the f32 sum tells whether the model
    // is broken.
    if (dtype != F32) rpc::EncodeWire(block, dtype, bytes);
    if (dtype == F16) {
      if (!AllFinite(F32, reinterpret_cast<const uint8_t*>(block.data()), block.size())) {
        all_finite.store(false);
      }
      saturated += SaturateF16(absl::MakeSpan(reinterpret_cast<uint16_t*>(bytes), block.size()));
    } else if (!AllFinite(dtype, bytes, block.size())) {
      all_finite.store(false);
    }
  });
  if (!all_finite.load()) *finite = false;
  return saturated.load();
}

absl::StatusOr<PartGradients> EmbeddingExchange::ReadGradients(const PartView& part, bool* finite) {
  PartGradients result;
  result.header.set_dtype(part.dtype);
  rpc::PayloadBuilder builder;
  for (const Sent& sent : sent_) {
    const TableLayout& table = layout_.tables[sent.table];
    if (sent.by_row) {
      const size_t num_rows = part.tables[sent.table].num_rows;
      TableGradients* of_table = result.header.add_tables();
      of_table->set_table(table.id);
      of_table->set_num_rows(num_rows);
      of_table->set_row_values(static_cast<uint32_t>(table.row_values));
      builder.Reserve(part.dtype, num_rows * table.row_values, of_table->mutable_gradients());
    } else {
      FeatureGradients* of_feature = result.header.add_features();
      of_feature->set_feature(static_cast<uint32_t>(sent.features[0]));
      builder.Reserve(part.dtype, part.samples * table.row_values, of_feature->mutable_gradients());
    }
  }
  builder.Allocate();

  // f32 sums are made where they are sent from; others in scratch memory, and converted once. All
  // are enqueued before the one wait, so a device works on them without a pause.
  std::vector<absl::Span<uint8_t>> sections;
  std::vector<absl::Span<float>> sums;
  int tables = 0;
  int features = 0;
  for (Sent& sent : sent_) {
    const Section& section = sent.by_row ? result.header.tables(tables++).gradients()
                                         : result.header.features(features++).gradients();
    sections.push_back(builder.Fill<uint8_t>(section));
    const size_t count = sections.back().size() / rpc::WireValueBytes(part.dtype);
    float* to = reinterpret_cast<float*>(sections.back().data());
    if (part.dtype != F32) {
      if (sent.host.size() < count) sent.host.resize(count);
      to = sent.host.data();
    }
    sums.push_back(absl::MakeSpan(to, count));
    if (const absl::Status status = Scatter(part, to, &sent); !status.ok()) {
      backend_->Sync();  // copies into the payload are under way, and it is freed here
      return status;
    }
  }
  backend_->Sync();
  for (size_t i = 0; i < sums.size(); ++i) {
    result.saturated_values += Encode(part.dtype, sums[i], sections[i].data(), finite);
  }
  result.payload = builder.Take();
  return result;
}

}  // namespace satrap
