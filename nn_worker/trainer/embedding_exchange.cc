#include "nn_worker/trainer/embedding_exchange.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/numeric/half.h"
#include "common/rpc/payload.h"
#include "nn_worker/rank/step_trainer.h"

namespace satrap {
namespace {

// The number of values in a block of a loop. It does not depend on the number of threads, so the
// results do not, either.
constexpr size_t kBlockValues = 65536;

// What the bits of values show. (An exponent of all ones marks a value that is not finite, and a
// larger magnitude has larger bits.)
struct Magnitudes {
  bool finite = true;
  bool large = false;  // one is beyond kLargeGradient, or not finite
};

Magnitudes MagnitudesOf(absl::Span<const float> sums) {
  uint32_t limit;
  std::memcpy(&limit, &kLargeGradient, sizeof(limit));
  const auto* values = reinterpret_cast<const uint32_t*>(sums.data());
  uint32_t bad = 0, large = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    bad |= (values[i] & 0x7f800000u) == 0x7f800000u;
    large |= (values[i] & 0x7fffffffu) > limit;
  }
  return {bad == 0, large != 0};
}

// Whether all `count` BF16 values at `bytes` are finite.
bool AllFinite(const uint8_t* bytes, size_t count) {
  const auto* values = reinterpret_cast<const uint16_t*>(bytes);
  uint32_t bad = 0;
  for (size_t i = 0; i < count; ++i) bad |= (values[i] & 0x7f80u) == 0x7f80u;
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

DType DTypeOf(WireDtype dtype) {
  if (dtype == F32) return DType::kF32;
  return dtype == F16 ? DType::kF16 : DType::kBF16;
}

// The tensor [rows, cols] whose values are at `host` in the payload of `part`. Its address is the
// one that the backend uses: for the backend the payload begins at `payload`.
Tensor InPayload(const PartView& part, uint8_t* payload, DType dtype, const void* host, size_t rows,
                 size_t cols) {
  uint8_t* const data = payload + (static_cast<const uint8_t*>(host) - part.payload.data());
  const auto stride = static_cast<int64_t>(cols);
  return {dtype, data, static_cast<int64_t>(rows), stride, stride};
}

// The segments whose view (of the network's inputs, or of their gradients) is not empty, for all
// samples of a part.
std::vector<RowSegment> SegmentsOf(const std::vector<SegmentLayout>& layout, size_t samples,
                                   const Network& network, Tensor (Network::*view_of)(int) const) {
  std::vector<RowSegment> segments;
  for (const SegmentLayout& segment : layout) {
    const Tensor view = (network.*view_of)(segment.input);
    if (view.empty()) continue;
    segments.push_back({static_cast<int64_t>(segment.column), static_cast<int64_t>(segment.width),
                        view.FirstRows(static_cast<int64_t>(samples))});
  }
  return segments;
}

}  // namespace

EmbeddingExchange::EmbeddingExchange(const PartLayout* layout, Network* network, ForkJoinPool* pool,
                                     Collective* collective)
    : layout_(*layout),
      network_(network),
      backend_(network->backend()),
      pool_(pool),
      collective_(collective) {
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
  sums_memory_ = std::vector<SumsMemory>(sent_.size());
  for (Buffer& buffer : buffers_) {
    buffer.decoded.resize(layout_.tables.size() + layout_.features.size());
    buffer.decoded_values = std::vector<ValuesOnDevice>(buffer.decoded.size());
    buffer.features.resize(layout_.features.size());
    buffer.inverses = std::vector<Inverse>(sent_.size());
    buffer.host_sums.resize(sent_.size());
    buffer.sums_on_backend.resize(sent_.size());
  }
}

void EmbeddingExchange::ForBlocks(size_t count, ForkJoinPool* pool,
                                  absl::FunctionRef<void(size_t, size_t)> body) {
  if (pool == nullptr) return body(0, count);
  pool->Run(static_cast<int64_t>((count + kBlockValues - 1) / kBlockValues),
            [&](int64_t part, int) {
              const size_t begin = static_cast<size_t>(part) * kBlockValues;
              body(begin, std::min(count, begin + kBlockValues));
            });
}

absl::StatusOr<EmbeddingExchange::Rows> EmbeddingExchange::RowsOf(const rpc::WireValues& values,
                                                                  size_t cols, size_t index,
                                                                  ForkJoinPool* pool,
                                                                  Buffer* buffer) {
  const size_t rows = cols == 0 ? 0 : values.count / cols;
  if (values.dtype == F32 || backend_->GathersHalves()) {
    return Rows{
        InPayload(buffer->part, buffer->payload, DTypeOf(values.dtype), values.bytes, rows, cols),
        std::ldexp(1.0f, values.scale_exponent)};
  }
  std::vector<float>& decoded = buffer->decoded[index];
  if (decoded.size() < values.count) decoded.resize(values.count);
  ForBlocks(values.count, pool, [&](size_t begin, size_t end) {
    rpc::DecodeWire(values.Subrange(begin, end - begin),
                    absl::MakeSpan(decoded.data() + begin, end - begin));
  });
  ASSIGN_OR_RETURN(void* const data, buffer->decoded_values[index].Put(
                                         backend_, BytesOf(decoded.data(), values.count)));
  return Rows{TensorF32(data, static_cast<int64_t>(rows), static_cast<int64_t>(cols))};
}

FeatureExchange EmbeddingExchange::IdsOf(size_t f, const Buffer& buffer, const Rows& rows) const {
  const FeatureLayout& feature = layout_.features[f];
  const RowIndices& indices = buffer.part.features[f].indices;
  const auto in_payload = [&buffer](DType dtype, const auto& values) {
    return InPayload(buffer.part, buffer.payload, dtype, values.data(), 1, values.size());
  };
  FeatureExchange result;
  result.samples = static_cast<int64_t>(buffer.part.samples);
  result.rows = rows.values;
  result.row_scale = rows.scale;
  result.one_row_a_sample = feature.pooled_at_worker;
  if (feature.pooled_at_worker) return result;
  result.pooling = PoolingOf(feature.pooling);
  result.max_length = static_cast<int64_t>(feature.max_length);
  result.ids = in_payload(DType::kU32, indices.rows);
  if (!indices.offsets.empty()) result.offsets = in_payload(DType::kU32, indices.offsets);
  if (!indices.weights.empty()) result.weights = in_payload(DType::kF32, indices.weights);
  return result;
}

FeatureExchange EmbeddingExchange::CandidatesOf(const Buffer& buffer, const Rows& rows,
                                                Tensor (Network::*view_of)(int) const) const {
  const RowIndices& indices = buffer.part.candidates.indices;
  FeatureExchange result;
  result.samples = static_cast<int64_t>(indices.samples);
  result.rows = rows.values;
  result.row_scale = rows.scale;
  result.ids = InPayload(buffer.part, buffer.payload, DType::kU32, indices.rows.data(), 1,
                         indices.rows.size());
  result.segments = SegmentsOf(layout_.candidate_segments, indices.samples, *network_, view_of);
  return result;
}

absl::Status EmbeddingExchange::FindRows(ForkJoinPool* pool, Buffer* buffer) {
  const PartView& part = buffer->part;
  const auto samples = static_cast<int64_t>(part.samples);
  std::vector<Rows> rows(layout_.tables.size());
  for (size_t t = 0; t < rows.size(); ++t) {
    if (!layout_.tables[t].sends_rows) continue;
    ASSIGN_OR_RETURN(rows[t],
                     RowsOf(part.tables[t].values, layout_.tables[t].row_values, t, pool, buffer));
  }
  buffer->gathers.clear();
  const Tensor numeric = network_->input_view(0);
  if (!numeric.empty() && layout_.numerics > 0) {
    FeatureExchange block;
    block.samples = samples;
    block.rows = InPayload(part, buffer->payload, DType::kF32, part.numeric.data(), part.samples,
                           layout_.numerics);
    block.one_row_a_sample = true;
    block.segments = {{0, block.rows.cols, numeric.FirstRows(samples)}};
    buffer->gathers.push_back(std::move(block));
  }
  for (size_t f = 0; f < buffer->features.size(); ++f) {
    const FeatureLayout& feature = layout_.features[f];
    Rows of_feature = rows[feature.table];
    if (feature.pooled_at_worker) {
      ASSIGN_OR_RETURN(of_feature,
                       RowsOf(part.features[f].pooled, layout_.tables[feature.table].row_values,
                              layout_.tables.size() + f, pool, buffer));
    }
    buffer->features[f] = IdsOf(f, *buffer, of_feature);
    buffer->gathers.push_back(buffer->features[f]);
    FeatureExchange& gather = buffer->gathers.back();
    gather.segments = SegmentsOf(feature.segments, part.samples, *network_, &Network::input_view);
    if (feature.length_input < 0) continue;
    const Tensor lengths = network_->input_view(feature.length_input);
    if (!lengths.empty()) gather.lengths = lengths.FirstRows(samples);
  }
  buffer->candidates.clear();
  if (part.candidates.indices.samples > 0) {
    const int table = layout_.features[layout_.candidate_feature].table;
    buffer->candidates.push_back(CandidatesOf(*buffer, rows[table], &Network::input_view));
  }
  return absl::OkStatus();
}

bool EmbeddingExchange::HasCandidates(const Buffer& buffer, const Sent& sent) const {
  return !buffer.candidates.empty() && sent.by_row &&
         sent.table == layout_.features[layout_.candidate_feature].table;
}

// The inverse is made on the host from the part's own ids, once per part, and only for a backend
// that needs it.
absl::Status EmbeddingExchange::Invert(Buffer* buffer) {
  if (!backend_->ScattersByRow()) return absl::OkStatus();
  for (size_t i = 0; i < sent_.size(); ++i) {
    if (!sent_[i].by_row) continue;
    Inverse& inverse = buffer->inverses[i];
    std::vector<absl::Span<const uint32_t>> ids;
    for (const int f : sent_[i].features) ids.push_back(buffer->part.features[f].indices.rows);
    if (HasCandidates(*buffer, sent_[i])) ids.push_back(buffer->part.candidates.indices.rows);
    InvertIds(ids, buffer->part.tables[sent_[i].table].num_rows, &inverse.host);
    // Reserved here, because the scatter itself could not report that there is no room.
    RETURN_IF_ERROR(
        backend_->ReserveScatter(static_cast<int64_t>(inverse.host.positions.size()),
                                 static_cast<int64_t>(layout_.tables[sent_[i].table].row_values)));
    const auto put = [&](const std::vector<uint32_t>& values,
                         ValuesOnDevice* memory) -> absl::StatusOr<Tensor> {
      const absl::Span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(values.data()),
                                            values.size() * sizeof(uint32_t));
      ASSIGN_OR_RETURN(void* const data, memory->Put(backend_, bytes));
      const auto count = static_cast<int64_t>(values.size());
      return Tensor{DType::kU32, data, 1, count, count};
    };
    ASSIGN_OR_RETURN(inverse.on_backend.starts, put(inverse.host.starts, &inverse.starts));
    ASSIGN_OR_RETURN(inverse.on_backend.positions, put(inverse.host.positions, &inverse.positions));
  }
  return absl::OkStatus();
}

// Takes the memory here instead of when the sums are made, so that a part without room is an error
// before its step begins. When the memory grows for one buffer, the other keeps its pointers,
// because outgrown memory is not freed.
absl::Status EmbeddingExchange::ReserveSums(Buffer* buffer) {
  const bool copied = backend_->DeviceView(buffer) == nullptr;
  MutexLock lock(&sums_mutex_);
  for (size_t i = 0; i < sent_.size(); ++i) {
    const Sent& sent = sent_[i];
    const size_t rows =
        sent.by_row ? buffer->part.tables[sent.table].num_rows : buffer->part.samples;
    const auto bytes =
        static_cast<int64_t>(rows * layout_.tables[sent.table].row_values * sizeof(float));
    if (copied) {
      ASSIGN_OR_RETURN(buffer->sums_on_backend[i], sums_memory_[i].on_backend.Get(backend_, bytes));
    }
    // f32 sums go directly into the message and need no other memory of the host.
    if (buffer->part.dtype != F32) {
      ASSIGN_OR_RETURN(buffer->host_sums[i], sums_memory_[i].host.Get(backend_, bytes));
    }
  }
  return absl::OkStatus();
}

// On the CPU nothing is copied here: rows in f32, ids and numerics are read directly from the
// message.
absl::Status EmbeddingExchange::PrepareIn(Buffer* buffer, ForkJoinPool* pool) {
  if (buffer->copied == nullptr) {
    ASSIGN_OR_RETURN(buffer->copied, backend_->NewEvent());
  }
  ASSIGN_OR_RETURN(void* const payload, buffer->payload_values.Put(backend_, buffer->part.payload));
  buffer->payload = static_cast<uint8_t*>(payload);
  RETURN_IF_ERROR(FindRows(pool, buffer));
  if (buffer->use == PartUse::kTraining) {
    RETURN_IF_ERROR(Invert(buffer));
    RETURN_IF_ERROR(ReserveSums(buffer));
  }
  backend_->Record(DeviceQueue::kCopiesIn, buffer->copied.get());
  return absl::OkStatus();
}

absl::Status EmbeddingExchange::Prepare(const PartView& part, int index, ForkJoinPool* pool,
                                        PartUse use) {
  CHECK(index >= 0 && index < kBuffers) << index;
  const ProfilerRange range(backend_, "prepare a part");
  Buffer& buffer = buffers_[index];
  buffer.part = part;
  buffer.use = use;
  const absl::Status prepared = PrepareIn(&buffer, pool);
  if (!absl::IsResourceExhausted(prepared)) return prepared;
  size_t ids = 0;
  for (const PartView::Feature& feature : part.features) ids += feature.indices.rows.size();
  return absl::ResourceExhaustedError(
      absl::StrCat("no room for a part of ", part.samples, " samples, ", ids, " ids and ",
                   part.payload.size(), " bytes: ", prepared.message()));
}

absl::Status EmbeddingExchange::Reserve(const PartView& largest, PartUse use) {
  const int buffers = use == PartUse::kTraining ? kBuffers : 1;
  for (int buffer = 0; buffer < buffers; ++buffer) {
    RETURN_IF_ERROR(Prepare(largest, buffer, pool_, use));
  }
  backend_->Sync();
  return absl::OkStatus();
}

void EmbeddingExchange::WriteInputs(int buffer) {
  const ProfilerRange range(backend_, "gather embeddings");
  backend_->WaitFor(DeviceQueue::kOperations, buffers_[buffer].copied.get());
  backend_->GatherRows(buffers_[buffer].gathers);
  if (!buffers_[buffer].candidates.empty()) backend_->GatherRows(buffers_[buffer].candidates);
}

// `sums` is filled when copied_out_ has happened.
void EmbeddingExchange::Scatter(const Buffer& buffer, size_t index, absl::Span<float> sums) {
  const Sent& sent = sent_[index];
  const size_t rows = sent.by_row ? buffer.part.tables[sent.table].num_rows : buffer.part.samples;
  const size_t row_values = layout_.tables[sent.table].row_values;
  void* const memory = buffer.sums_on_backend[index];
  const bool copied = memory != nullptr;
  const Tensor to = TensorF32(copied ? memory : backend_->DeviceView(sums.data()),
                              static_cast<int64_t>(rows), static_cast<int64_t>(row_values));
  std::vector<FeatureExchange> features;
  for (const int f : sent.features) {
    features.push_back(buffer.features[f]);
    features.back().segments = SegmentsOf(layout_.features[f].segments, buffer.part.samples,
                                          *network_, &Network::input_gradient);
  }
  // The gradients of candidates are added to the other gradients of the same rows.
  if (HasCandidates(buffer, sent)) {
    features.push_back(CandidatesOf(buffer, Rows(), &Network::input_gradient));
  }
  backend_->ScatterGradients(features, buffer.inverses[index].on_backend, to);
  backend_->Record(DeviceQueue::kOperations, scattered_.get());
  backend_->WaitFor(DeviceQueue::kCopiesOut, scattered_.get());
  if (copied) {
    backend_->StartCopyOut(to,
                           {reinterpret_cast<uint8_t*>(sums.data()), sums.size() * sizeof(float)});
  }
}

// The copies to the host wait for the operations, so waiting for the copies is enough.
absl::Status EmbeddingExchange::AwaitSums() {
  backend_->Record(DeviceQueue::kCopiesOut, copied_out_.get());
  return AwaitEvent(backend_, copied_out_.get(), std::numeric_limits<int64_t>::max(),
                    [this] { return collective_ != nullptr && !collective_->status().ok(); });
}

rpc::WireLosses EmbeddingExchange::Encode(WireDtype dtype, absl::Span<float> sums, Section* section,
                                          uint8_t* to, bool* finite, bool* large) {
  std::atomic<bool> all_finite{true}, any_large{false};
  // The scale is a power of two, so nothing is rounded.
  if (const float scale = network_->gradient_scale().scale; scale != 1) {
    ForBlocks(sums.size(), pool_, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) sums[i] /= scale;
    });
  }
  const auto* const bytes = reinterpret_cast<const uint8_t*>(sums.data());
  const size_t blocks = (sums.size() + kBlockValues - 1) / kBlockValues;
  int scale = 0;
  if (dtype == F16) {
    // The scale of the section is known when all blocks have been seen.
    std::vector<float> largest(blocks);
    ForBlocks(sums.size(), pool_, [&](size_t begin, size_t end) {
      const absl::Span<const float> block = sums.subspan(begin, end - begin);
      largest[begin / kBlockValues] = LargestFiniteMagnitude(block);
    });
    scale = rpc::ScaleExponentOf(LargestFiniteMagnitude(largest));
    rpc::SetScale(dtype, scale, section);
  }
  std::vector<rpc::WireLosses> losses(blocks);
  ForBlocks(sums.size(), pool_, [&](size_t begin, size_t end) {
    uint8_t* const encoded = to + begin * rpc::WireValueBytes(dtype);
    // Checks the sums, not their encoded form: the scale of F16 hides infinities, and f32 sums are
    // not encoded.
    const Magnitudes found = MagnitudesOf(sums.subspan(begin, end - begin));
    if (!found.finite) all_finite.store(false);
    if (found.large) any_large.store(true);
    if (dtype != F32) {
      const rpc::WireValues block{F32, end - begin, bytes + begin * sizeof(float)};
      losses[begin / kBlockValues] = rpc::ConvertGradients(block, dtype, scale, encoded);
    }
    // BF16 rounds the largest floats up to infinity.
    if (dtype == BF16 && !AllFinite(encoded, end - begin)) all_finite.store(false);
  });
  if (!all_finite.load()) *finite = false;
  if (any_large.load()) *large = true;
  rpc::WireLosses total;
  for (const rpc::WireLosses& of_block : losses) total.Add(of_block);
  return total;
}

absl::StatusOr<PartGradients> EmbeddingExchange::ReadGradients(int index, bool* finite) {
  const ProfilerRange range(backend_, "scatter gradients of embeddings");
  const Buffer& buffer = buffers_[index];
  CHECK(buffer.use == PartUse::kTraining) << "the part is only scored, so it has no gradients";
  const PartView& part = buffer.part;
  if (scattered_ == nullptr) {
    ASSIGN_OR_RETURN(scattered_, backend_->NewEvent());
    ASSIGN_OR_RETURN(copied_out_, backend_->NewEvent());
  }
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
  builder.Allocate(backend_->PinnedBuffers());

  // On the host, f32 sums go directly into the message, and others into scratch memory, from which
  // they are converted once. All sums are enqueued before the only wait, so a device works on them
  // without a pause.
  std::vector<Section*> sections;
  std::vector<absl::Span<uint8_t>> bytes;
  std::vector<absl::Span<float>> sums;
  int tables = 0;
  int features = 0;
  for (size_t i = 0; i < sent_.size(); ++i) {
    sections.push_back(sent_[i].by_row
                           ? result.header.mutable_tables(tables++)->mutable_gradients()
                           : result.header.mutable_features(features++)->mutable_gradients());
    bytes.push_back(builder.Fill<uint8_t>(*sections.back()));
    const size_t count = bytes.back().size() / rpc::WireValueBytes(part.dtype);
    void* const to = part.dtype != F32 ? buffer.host_sums[i] : bytes.back().data();
    sums.push_back(absl::MakeSpan(static_cast<float*>(to), count));
    Scatter(buffer, i, sums.back());
  }
  if (const absl::Status status = AwaitSums(); !status.ok()) {
    backend_->Sync();  // copies into the payload are under way, and it is freed here
    return status;
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    result.values += sums[i].size();
    result.losses.Add(
        Encode(part.dtype, sums[i], sections[i], bytes[i].data(), finite, &result.large));
  }
  result.payload = builder.Take();
  return result;
}

}  // namespace satrap
