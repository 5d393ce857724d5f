#include "tests/simulation/data/sim_part.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/payload.h"
#include "tests/simulation/data/sim_formats.h"

namespace satrap::simulation {
namespace {

template <typename T>
std::vector<T> Copy(const Buffer& payload, const Section& section, uint64_t count) {
  const auto view = rpc::SectionView<T>(payload, section, count, "simulation");
  CHECK_OK(view.status());
  return std::vector<T>(view->begin(), view->end());
}

std::vector<float> CopyWire(const Buffer& payload, const Section& section, WireDtype dtype,
                            uint64_t count) {
  const auto view = rpc::WireView(payload, section, dtype, count, "simulation");
  CHECK_OK(view.status());
  std::vector<float> values(count);
  rpc::DecodeWire(*view, absl::MakeSpan(values));
  return values;
}

// Which of the part's TableRows the row indices of a feature refer to, by its index. Table
// "counters" comes first, as in the job.
int TableRowsOf(int feature) { return feature == kCounter ? 0 : 1; }

// The ids of the samples that the part's provenance names, in order.
std::vector<uint64_t> IdsOfProvenance(const WorldShape& shape, const PartDescription& part) {
  const auto stream = part.id().stream();
  const bool shuffled = stream == TRAIN_STREAM && shape.shuffle_rows > 0;
  const uint64_t block_rows = shuffled ? shape.shuffle_rows : formats::kRowsOfUnshuffledBlock;
  std::vector<uint64_t> ids;
  for (const ProvenanceRange& range : part.provenance()) {
    if (range.split() >= shape.split_rows[stream].size()) return {};
    const std::vector<int> order =
        RowOrder(shape, stream, static_cast<int>(range.split()), part.id().epoch());
    for (uint64_t i = range.from(); i < range.to(); ++i) {
      const uint64_t at = range.block() * block_rows + i;
      if (i >= block_rows || at >= order.size()) return {};
      ids.push_back(MakeSample(shape, stream, static_cast<int>(range.split()), order[at]).id);
    }
  }
  return ids;
}

void CheckProvenance(const WorldShape& shape, const SimPart& part,
                     const std::function<void(std::string)>& violated) {
  std::vector<uint64_t> ids;
  for (const SimSample& sample : part.samples) ids.push_back(sample.id);
  if (ids != IdsOfProvenance(shape, part.description)) {
    violated(absl::StrCat("a part holds other samples than its provenance says: ",
                          part.description.ShortDebugString()));
  }
}

// Candidates must come with every part that is trained, and with no other part. A candidate that is
// also a sample's own item refers to the same row.
void ReadCandidates(const WorldShape& shape, const PartInput& input,
                    const std::function<void(std::string)>& violated, SimPart* part) {
  const NextBatchAnswerHeader& header = input.header;
  const bool expected = shape.candidates > 0 && header.part().id().stream() == TRAIN_STREAM;
  if (header.has_candidates() != expected) {
    violated(absl::StrCat("a part has ", expected ? "no " : "",
                          "candidates: ", header.part().ShortDebugString()));
  }
  if (!header.has_candidates() || !expected) return;
  const CandidateRows& rows = header.candidates();
  part->candidate_keys = CandidateKeys(shape, header.part().id());
  part->candidates = Copy<uint32_t>(input.payload, rows.indices(), rows.num_candidates());
  if (part->candidates.size() != part->candidate_keys.size()) {
    violated(absl::StrCat("a part has ", rows.num_candidates(), " candidates"));
    part->candidate_keys.clear();
    part->candidates.clear();
    return;
  }
  std::map<uint64_t, uint32_t> row_of;
  const auto check = [&](uint64_t key, uint32_t row) {
    if (row_of.emplace(key, row).first->second != row) violated("an item has two rows in a part");
  };
  for (size_t s = 0; s < part->samples.size(); ++s) {
    check(SingleKey(part->samples[s].single), part->indices[kSingle][s]);
  }
  for (size_t j = 0; j < part->candidates.size(); ++j) {
    check(part->candidate_keys[j], part->candidates[j]);
  }
  std::vector<float> log_q =
      Copy<float>(input.payload, rows.positive_log_q(), part->samples.size());
  const std::vector<float> of_candidates =
      Copy<float>(input.payload, rows.log_q(), rows.num_candidates());
  log_q.insert(log_q.end(), of_candidates.begin(), of_candidates.end());
  for (const float value : log_q) {
    if (std::abs(value - LogQOfItems(shape)) > 1e-5) {
      violated(absl::StrCat("an item has log Q ", value));
    }
  }
}

}  // namespace

float SimPart::CandidateValue(size_t candidate, int d) const {
  return rows_of_table[1][candidates[candidate] * kRowValues + d];
}

std::vector<uint64_t> KeysOf(const SimSample& sample, int feature) {
  if (feature == kSingle) return {SingleKey(sample.single)};
  std::vector<uint64_t> keys;
  for (const uint64_t id : sample.several) keys.push_back(SeveralKey(id));
  return keys;
}

SimPart DecodePart(const WorldShape& shape, const PartInput& input,
                   const std::function<void(std::string)>& violated) {
  const NextBatchAnswerHeader& header = input.header;
  const uint32_t samples = header.part().samples();
  SimPart part;
  part.description = header.part();
  // The only numeric of a sample is its id, so a part shows which samples it has.
  const std::vector<float> ids =
      Copy<float>(input.payload, header.part().numeric_values(), samples);
  for (const float id : ids) {
    part.samples.push_back(SampleOfId(shape, static_cast<uint64_t>(id)));
  }
  CheckProvenance(shape, part, violated);
  // Each of the two tables has a feature with transfer ROWS, so the answer has both tables.
  CHECK(header.tables_size() == 2);
  for (const TableRows& table : header.tables()) {
    part.rows_of_table.push_back(CopyWire(input.payload, table.values(), header.dtype(),
                                          table.num_rows() * table.row_values()));
  }
  CHECK(header.features_size() == kNumFeatures);
  for (int f = 0; f < kNumFeatures; ++f) {
    const FeatureRows& feature = header.features(f);
    const int row_values = f == kCounter ? kCounterValues : kRowValues;
    std::vector<float> pooled(samples * row_values);
    std::vector<uint32_t> indices, offsets;
    if (feature.has_pooled()) {
      pooled = CopyWire(input.payload, feature.pooled(), header.dtype(), samples * row_values);
    } else {
      indices = Copy<uint32_t>(input.payload, feature.indices(), feature.num_ids());
      if (feature.has_offsets()) {
        offsets = Copy<uint32_t>(input.payload, feature.offsets(), samples + 1);
      } else {
        for (uint32_t i = 0; i <= samples; ++i) offsets.push_back(i);
      }
      const std::vector<float>& rows = part.rows_of_table[TableRowsOf(f)];
      for (uint32_t s = 0; s < samples; ++s) {
        for (uint32_t i = offsets[s]; i < offsets[s + 1]; ++i) {
          for (int d = 0; d < row_values; ++d) {
            pooled[s * row_values + d] += rows[indices[i] * row_values + d];
          }
        }
      }
    }
    part.indices.push_back(std::move(indices));
    part.offsets.push_back(std::move(offsets));
    part.pooled.push_back(std::move(pooled));
  }
  ReadCandidates(shape, input, violated, &part);
  return part;
}

PartGradients MakeGradients(const WorldShape& shape, int rank, uint64_t push,
                            const PartInput& input, const SimPart& part, const StepOfRows& step) {
  const NextBatchAnswerHeader& header = input.header;
  const size_t samples = part.samples.size();
  std::vector<std::vector<float>> row_gradients;
  for (const auto& rows : part.rows_of_table) row_gradients.emplace_back(rows.size());
  std::vector<float> pooled_gradient;
  if (samples > 0) {
    // With learning rate 1, SGD adds n for a gradient of -n. The gradient is normalised before
    // that, except if steps are clipped (MakeJob).
    const double divisor = shape.step_clip_norm > 0 ? 1 : step.normalizer;
    const auto one = static_cast<float>(divisor / step.rate);
    float* counter = &row_gradients[0][part.indices[kCounter][0] * kCounterValues];
    counter[rank] = -one;
    counter[kMaxRanks + rank] = -one * static_cast<float>(push);
  }
  for (int f = kSingle; f <= kSeveral; ++f) {
    const bool rows_feature = !header.features(f).has_pooled();
    if (!rows_feature) pooled_gradient.assign(samples * kRowValues, 0);
    for (size_t s = 0; s < samples; ++s) {
      for (int d = 0; d < kRowValues; ++d) {
        const float gradient = SampleGradient(part.samples[s], f - kSingle, d, PullOf(shape),
                                              part.pooled[f][s * kRowValues + d]);
        if (!rows_feature) {
          pooled_gradient[s * kRowValues + d] = gradient;
          continue;
        }
        for (uint32_t i = part.offsets[f][s]; i < part.offsets[f][s + 1]; ++i) {
          row_gradients[1][part.indices[f][i] * kRowValues + d] += gradient;
        }
      }
    }
  }
  for (size_t j = 0; j < part.candidates.size(); ++j) {
    for (const SimSample& sample : part.samples) {
      for (int d = 0; d < kRowValues; ++d) {
        row_gradients[1][part.candidates[j] * kRowValues + d] +=
            CandidateGradient(sample, j, d, PullOf(shape), part.CandidateValue(j, d));
      }
    }
  }
  PartGradients gradients;
  gradients.header.set_dtype(F32);
  rpc::PayloadBuilder builder;
  for (int t = 0; t < header.tables_size(); ++t) {
    TableGradients* table = gradients.header.add_tables();
    table->set_table(header.tables(t).table());
    table->set_num_rows(header.tables(t).num_rows());
    table->set_row_values(header.tables(t).row_values());
    builder.Reserve(F32, row_gradients[t].size(), table->mutable_gradients());
  }
  if (header.features(kSeveral).has_pooled()) {
    FeatureGradients* feature = gradients.header.add_features();
    feature->set_feature(kSeveral);
    builder.Reserve(F32, pooled_gradient.size(), feature->mutable_gradients());
  }
  builder.Allocate();
  for (int t = 0; t < header.tables_size(); ++t) {
    const auto to = builder.Fill<float>(gradients.header.tables(t).gradients());
    std::copy(row_gradients[t].begin(), row_gradients[t].end(), to.begin());
  }
  if (gradients.header.features_size() > 0) {
    const auto to = builder.Fill<float>(gradients.header.features(0).gradients());
    std::copy(pooled_gradient.begin(), pooled_gradient.end(), to.begin());
  }
  gradients.payload = builder.Take();
  return gradients;
}

}  // namespace satrap::simulation
