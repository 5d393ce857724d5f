#include "nn_worker/trainer/memory_plan/largest_part.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/batch/transfer.h"
#include "common/rpc/payload.h"

namespace satrap {
namespace {

// Bytes of the payload in addition to the values of rows, for alignment between sections.
constexpr size_t kSpareBytes = 1 << 16;

int64_t IdsOfSample(const FeatureConfig& feature, const DataConfig& data) {
  if (!IsMultiValued(feature, data)) return 1;
  if (feature.pooling() == FeatureConfig::NONE) return feature.max_length();
  return kExpectedIds;
}

// Sections that are filled once the payload exists: with zeros, and then by `fill`.
class Sections {
 public:
  template <typename T>
  void Add(
      size_t count, Section* section,
      std::function<void(absl::Span<T>)> fill = [](absl::Span<T>) {}) {
    builder_.Reserve<T>(count, section);
    fills_.push_back([this, section, fill = std::move(fill)] {
      const absl::Span<T> values = builder_.Fill<T>(*section);
      std::fill(values.begin(), values.end(), T{0});
      fill(values);
    });
  }
  void AddWire(WireDtype dtype, size_t count, Section* section) {
    builder_.Reserve(dtype, count, section);
    rpc::SetScale(dtype, /*scale_exponent=*/0, section);
    fills_.push_back([this, section] {
      const absl::Span<uint8_t> bytes = builder_.Fill<uint8_t>(*section);
      std::fill(bytes.begin(), bytes.end(), uint8_t{0});
    });
  }
  size_t size_bytes() const { return builder_.size_bytes(); }
  Buffer Take(std::shared_ptr<BufferAllocator> allocator) {
    builder_.Allocate(std::move(allocator));
    for (const auto& fill : fills_) fill();
    return builder_.Take();
  }

 private:
  rpc::PayloadBuilder builder_;
  std::vector<std::function<void()>> fills_;
};

void Describe(Stream stream, size_t samples, const PartLayout& layout, PartDescription* part,
              Sections* sections) {
  part->mutable_id()->set_stream(stream);
  part->set_samples(static_cast<uint32_t>(samples));
  part->set_numerics(static_cast<uint32_t>(layout.numerics));
  part->set_tasks(static_cast<uint32_t>(layout.labels));
  sections->Add<float>(samples * layout.numerics, part->mutable_numeric_values());
  sections->Add<float>(samples * layout.labels, part->mutable_labels(),
                       [](absl::Span<float> labels) {
                         for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 2 == 0 ? 0 : 1;
                       });
  sections->Add<uint8_t>(
      samples * layout.labels, part->mutable_label_mask(),
      [](absl::Span<uint8_t> known) { std::fill(known.begin(), known.end(), uint8_t{1}); });
  sections->Add<float>(samples, part->mutable_weights());
  if (layout.groups) sections->Add<uint64_t>(samples, part->mutable_groups());
  sections->Add<int64_t>(samples, part->mutable_times());
}

void AddIds(size_t samples, size_t of_sample, bool with_offsets, FeatureRows* rows,
            Sections* sections) {
  rows->set_num_ids(samples * of_sample);
  sections->Add<uint32_t>(samples * of_sample, rows->mutable_indices());
  if (with_offsets) {
    sections->Add<uint32_t>(samples + 1, rows->mutable_offsets(),
                            [of_sample](absl::Span<uint32_t> offsets) {
                              for (size_t i = 0; i < offsets.size(); ++i) {
                                offsets[i] = static_cast<uint32_t>(i * of_sample);
                              }
                            });
  }
  if (of_sample > 1) sections->Add<float>(samples * of_sample, rows->mutable_weights());
}

}  // namespace

PartInput LargestPart(const JobConfig& job, const PartLayout& layout,
                      std::shared_ptr<BufferAllocator> allocator) {
  return LargestPartOf(MaxSamplesOfPart(job), job, layout, std::move(allocator));
}

PartInput LargestPartOf(int64_t part_samples, const JobConfig& job, const PartLayout& layout,
                        std::shared_ptr<BufferAllocator> allocator, int64_t largest_bytes) {
  const auto samples = static_cast<size_t>(part_samples);
  PartInput input;
  NextBatchAnswerHeader& header = input.header;
  header.set_result(NextBatchAnswerHeader::PART);
  header.set_dtype(job.embedding_worker().wire_dtype());
  Sections sections;
  const bool trains = job.action() == JobConfig::TRAIN;
  Describe(trains ? TRAIN_STREAM : TEST_STREAM, samples, layout, header.mutable_part(), &sections);
  std::vector<size_t> num_rows(layout.tables.size());
  for (size_t f = 0; f < layout.features.size(); ++f) {
    const FeatureLayout& feature = layout.features[f];
    FeatureRows* const rows = header.add_features();
    if (feature.pooled_at_worker) {
      sections.AddWire(header.dtype(), samples * layout.tables[feature.table].row_values,
                       rows->mutable_pooled());
      continue;
    }
    const FeatureConfig& config = job.data().features(static_cast<int>(f));
    const auto of_sample = static_cast<size_t>(IdsOfSample(config, job.data()));
    // A sample has exactly one item, so a part of the train stream has no offsets for this feature.
    const bool is_item = trains && static_cast<int>(f) == layout.candidate_feature;
    AddIds(samples, of_sample, !is_item, rows, &sections);
    num_rows[feature.table] += samples * of_sample;
  }
  if (trains && layout.candidate_feature >= 0) {
    CandidateRows* const candidates = header.mutable_candidates();
    sections.Add<uint32_t>(0, candidates->mutable_indices());
    sections.Add<float>(0, candidates->mutable_log_q());
    sections.Add<float>(layout.log_q ? samples : 0, candidates->mutable_positive_log_q());
  }
  double row_bytes = 0;
  for (size_t t = 0; t < num_rows.size(); ++t) {
    row_bytes += static_cast<double>(num_rows[t] * layout.tables[t].row_values *
                                     rpc::WireValueBytes(header.dtype()));
  }
  const double room = std::max(0.0, static_cast<double>(largest_bytes) -
                                        static_cast<double>(sections.size_bytes() + kSpareBytes));
  const double share = row_bytes > room ? room / row_bytes : 1;
  for (size_t t = 0; t < layout.tables.size(); ++t) {
    if (!layout.tables[t].sends_rows) continue;
    // At least one row, because all indices are 0 and thus refer to row 0.
    const auto count =
        std::max<size_t>(1, static_cast<size_t>(share * static_cast<double>(num_rows[t])));
    TableRows* const rows = header.add_tables();
    rows->set_table(layout.tables[t].id);
    rows->set_num_rows(count);
    rows->set_row_values(static_cast<uint32_t>(layout.tables[t].row_values));
    sections.AddWire(header.dtype(), count * layout.tables[t].row_values, rows->mutable_values());
  }
  input.payload = sections.Take(std::move(allocator));
  return input;
}

}  // namespace satrap
