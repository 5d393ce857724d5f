#include "nn_worker/trainer/testing/fake_tables.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "common/base/check.h"
#include "common/batch/pooling.h"
#include "common/numeric/random.h"
#include "common/rpc/payload.h"

namespace satrap {
namespace {

constexpr float kLearningRate = .05f;

// Sections are reserved first and filled after the payload is made.
class Sections {
 public:
  template <typename T>
  void Add(std::vector<T> values, Section* section) {
    builder_.Reserve<T>(values.size(), section);
    fills_.push_back([this, values = std::move(values), section] {
      std::copy(values.begin(), values.end(), builder_.Fill<T>(*section).begin());
    });
  }
  void AddWire(std::vector<float> values, WireDtype dtype, Section* section) {
    builder_.Reserve(dtype, values.size(), section);
    fills_.push_back([this, values = std::move(values), dtype, section] {
      builder_.Encode(values, dtype, section);
    });
  }
  Buffer Take() {
    // The offsets are known only now. The headers that hold the sections are still where they were,
    // because protobuf does not move the elements of repeated message fields.
    builder_.Allocate();
    for (auto& fill : fills_) fill();
    return builder_.Take();
  }

 private:
  rpc::PayloadBuilder builder_;
  std::vector<std::function<void()>> fills_;
};

// The ids of a feature in a jagged array.
struct Jagged {
  std::vector<uint64_t> ids;
  std::vector<uint32_t> offsets{0};
  bool one_each = true;
};

Jagged JaggedOf(const std::vector<FakeSample>& samples, size_t feature) {
  Jagged jagged;
  for (const FakeSample& sample : samples) {
    const auto& ids = sample.ids[feature];
    jagged.ids.insert(jagged.ids.end(), ids.begin(), ids.end());
    jagged.offsets.push_back(static_cast<uint32_t>(jagged.ids.size()));
    if (ids.size() != 1) jagged.one_each = false;
  }
  return jagged;
}

// Fills in everything of a part except its rows.
void DescribePart(const std::vector<FakeSample>& samples, uint64_t first_sample,
                  const PartLayout& layout, PartDescription* part, Sections* sections) {
  part->set_samples(samples.size());
  part->set_first_sample(first_sample);
  part->set_numerics(layout.numerics);
  part->set_tasks(layout.labels);
  std::vector<float> numeric, labels, weights;
  std::vector<uint8_t> mask;
  std::vector<int64_t> times;
  std::vector<uint64_t> groups;
  for (const FakeSample& sample : samples) {
    numeric.insert(numeric.end(), sample.numeric.begin(), sample.numeric.end());
    const std::vector<float> one = {sample.label};
    for (const float label : layout.labels == 1 ? one : sample.labels) {
      const bool missing = layout.labels > 1 && std::isnan(label);
      labels.push_back(missing ? 0 : label);
      mask.push_back(sample.masked || missing ? 0 : 1);
    }
    groups.push_back(sample.group);
    weights.push_back(sample.weight);
    times.push_back(sample.time);
  }
  sections->Add(numeric, part->mutable_numeric_values());
  sections->Add(labels, part->mutable_labels());
  sections->Add(weights, part->mutable_weights());
  sections->Add(mask, part->mutable_label_mask());
  if (layout.groups) sections->Add(groups, part->mutable_groups());
  sections->Add(times, part->mutable_times());
}

// The positions of a table's rows in a part, by key.
using Positions = std::map<uint64_t, uint32_t>;

// Adds `candidates` to a part, and adds rows for those candidates that have none in the part yet.
void AddCandidates(const PartLayout& layout, const std::vector<uint64_t>& candidates,
                   const std::vector<FakeSample>& samples, Positions* positions,
                   std::vector<uint64_t>* keys, CandidateRows* rows, Sections* sections) {
  const auto feature = static_cast<size_t>(layout.candidate_feature);
  std::vector<uint32_t> indices;
  std::vector<float> log_q, positive_log_q;
  for (const uint64_t item : candidates) {
    const auto [at, is_new] = positions->emplace(item, positions->size());
    if (is_new) keys->push_back(item);
    indices.push_back(at->second);
    if (layout.log_q) log_q.push_back(FakeTables::LogQOf(item));
  }
  for (const FakeSample& sample : samples) {
    if (layout.log_q) positive_log_q.push_back(FakeTables::LogQOf(sample.ids[feature][0]));
  }
  rows->set_num_candidates(indices.size());
  sections->Add(indices, rows->mutable_indices());
  sections->Add(log_q, rows->mutable_log_q());
  sections->Add(positive_log_q, rows->mutable_positive_log_q());
}

// Adds the rows with these keys, by table, to a part.
void AddRows(const PartLayout& layout, const std::vector<std::vector<uint64_t>>& keys,
             WireDtype dtype, FakeTables* tables, NextBatchAnswerHeader* header,
             Sections* sections) {
  for (size_t t = 0; t < layout.tables.size(); ++t) {
    // Tables whose features are all pooled are neither in the answer nor in the push.
    if (!layout.tables[t].sends_rows) continue;
    TableRows* rows = header->add_tables();
    rows->set_table(layout.tables[t].id);
    rows->set_num_rows(keys[t].size());
    rows->set_row_values(layout.tables[t].row_values);
    std::vector<float> values;
    for (const uint64_t key : keys[t]) {
      const std::vector<float> row = tables->ValuesOf(t, key);
      values.insert(values.end(), row.begin(), row.end());
    }
    sections->AddWire(values, dtype, rows->mutable_values());
  }
}

}  // namespace

FakeTables::Row& FakeTables::RowOf(size_t table, uint64_t key) {
  Row& row = tables_[table][key];
  if (row.values.empty()) {
    const size_t n = layout_.tables[table].row_values;
    for (size_t i = 0; i < n; ++i) {
      // The values are a function of the key alone, as in an embedding PS: any number of ranks
      // begins with the same rows, whatever the order in which they touch them.
      row.values.push_back(.2f * (UniformFloat(RandomBits(table, key, i)) - .5f));
    }
    row.accumulators.assign(n, kInitialAccumulator);
    row.gradient.assign(n, 0);
  }
  return row;
}

PartInput FakeTables::MakePart(const std::vector<FakeSample>& samples, uint64_t first_sample,
                               WireDtype dtype) {
  PartInput input;
  input.header.set_result(NextBatchAnswerHeader::PART);
  input.header.set_handle(next_handle_);
  input.header.set_dtype(dtype);
  // The plan is kept until the step ends, because a push names rows by their positions in the part.
  Plan& plan = plans_[next_handle_++];
  plan.samples = samples;
  plan.keys.resize(tables_.size());
  Sections sections;

  DescribePart(samples, first_sample, layout_, input.header.mutable_part(), &sections);

  // Keys in the order of their first occurrence over all features of a table.
  std::vector<Positions> row_of(tables_.size());
  for (size_t f = 0; f < layout_.features.size(); ++f) {
    const FeatureLayout& feature = layout_.features[f];
    const Jagged jagged = JaggedOf(samples, f);
    FeatureRows* rows = input.header.add_features();
    const size_t row_values = layout_.tables[feature.table].row_values;
    if (feature.pooled_at_worker) {
      // There is a row for each id, even for an id that comes twice, because the rows of a pooled
      // feature are not sent.
      std::vector<float> values;
      std::vector<uint32_t> identity;
      for (uint64_t id : jagged.ids) {
        const Row& row = RowOf(feature.table, id);
        identity.push_back(static_cast<uint32_t>(identity.size()));
        values.insert(values.end(), row.values.begin(), row.values.end());
      }
      std::vector<float> pooled(samples.size() * row_values);
      PoolForward(feature.pooling, RowIndices{samples.size(), identity, jagged.offsets, {}},
                  values.data(), RowColumns{row_values, 0, row_values}, pooled.data(), row_values);
      sections.AddWire(pooled, dtype, rows->mutable_pooled());
      continue;
    }
    std::vector<uint32_t> indices;
    auto& positions = row_of[feature.table];
    for (uint64_t id : jagged.ids) {
      const auto [at, is_new] = positions.emplace(id, positions.size());
      if (is_new) plan.keys[feature.table].push_back(id);
      indices.push_back(at->second);
    }
    rows->set_num_ids(indices.size());
    sections.Add(indices, rows->mutable_indices());
    // Offsets are left out where an embedding worker leaves them out; the trainer must accept both
    // forms.
    if (!jagged.one_each) sections.Add(jagged.offsets, rows->mutable_offsets());
  }
  if (layout_.candidate_feature >= 0) {
    const int table = layout_.features[static_cast<size_t>(layout_.candidate_feature)].table;
    AddCandidates(layout_, candidates, samples, &row_of[table], &plan.keys[table],
                  input.header.mutable_candidates(), &sections);
  }
  AddRows(layout_, plan.keys, dtype, this, &input.header, &sections);
  input.payload = sections.Take();
  return input;
}

void FakeTables::Push(const PartInput& part, const PartGradients& gradients) {
  const Plan& plan = plans_.at(part.header.handle());
  const WireDtype dtype = gradients.header.dtype();
  const auto decode = [&](const Section& section, size_t count) {
    const auto wire = rpc::WireView(gradients.payload, section, dtype, count, "gradients");
    CHECK(wire.ok());
    std::vector<float> values(count);
    rpc::DecodeWire(*wire, absl::MakeSpan(values));
    return values;
  };
  const auto add = [&](size_t table, uint64_t key, const float* gradient) {
    Row& row = RowOf(table, key);
    row.touched = true;
    for (size_t i = 0; i < row.gradient.size(); ++i) row.gradient[i] += gradient[i];
  };
  int sent = 0;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!layout_.tables[t].sends_rows) continue;
    // Gradients come in the order in which MakePart sent the tables.
    const TableGradients& table = gradients.header.tables(sent++);
    const size_t row_values = layout_.tables[t].row_values;
    const auto values = decode(table.gradients(), plan.keys[t].size() * row_values);
    for (size_t i = 0; i < plan.keys[t].size(); ++i) {
      add(t, plan.keys[t][i], &values[i * row_values]);
    }
  }
  for (const FeatureGradients& pooled : gradients.header.features()) {
    const FeatureLayout& feature = layout_.features[pooled.feature()];
    const size_t row_values = layout_.tables[feature.table].row_values;
    const auto values = decode(pooled.gradients(), plan.samples.size() * row_values);
    // The gradient of a pooled vector goes to each of the ids that were pooled, so these are listed
    // again in the order of MakePart.
    const Jagged jagged = JaggedOf(plan.samples, pooled.feature());
    std::vector<uint32_t> identity(jagged.ids.size());
    for (size_t j = 0; j < identity.size(); ++j) identity[j] = static_cast<uint32_t>(j);
    std::vector<float> rows(jagged.ids.size() * row_values);
    PoolBackward(feature.pooling, RowIndices{plan.samples.size(), identity, jagged.offsets, {}},
                 values.data(), row_values, RowColumns{row_values, 0, row_values}, rows.data());
    for (size_t j = 0; j < identity.size(); ++j) {
      add(feature.table, jagged.ids[j], &rows[j * row_values]);
    }
  }
}

double FakeTables::Squares(float normalizer) const {
  double squares = 0;
  for (const Table& table : tables_) {
    for (const auto& [key, row] : table) {
      for (const double sum : row.gradient) squares += sum / normalizer * sum / normalizer;
    }
  }
  return squares;
}

void FakeTables::Apply(float normalizer, float clip_factor) {
  for (Table& table : tables_) {
    for (auto& [key, row] : table) {
      // Makes one step for a key, however many parts pushed it, and none for a row without a push.
      if (!row.touched) continue;
      row.touched = false;
      for (size_t i = 0; i < row.values.size(); ++i) {
        // The sum is a double, so that the order in which ranks push does not change the f32
        // result.
        const float g =
            clip_factor * static_cast<float>(std::exchange(row.gradient[i], 0) / normalizer);
        row.accumulators[i] += g * g;
        row.values[i] -= kLearningRate * g / std::sqrt(row.accumulators[i]);
      }
    }
  }
  // A handle is valid for one step. A later push finds no plan and ends the test.
  plans_.clear();
}

std::vector<float> FakeTables::Values() const {
  std::vector<float> values;
  for (const Table& table : tables_) {
    for (const auto& [key, row] : table) {
      values.insert(values.end(), row.values.begin(), row.values.end());
    }
  }
  return values;
}

std::vector<float> FakeTables::Accumulators() const {
  std::vector<float> accumulators;
  for (const Table& table : tables_) {
    for (const auto& [key, row] : table) {
      accumulators.insert(accumulators.end(), row.accumulators.begin(), row.accumulators.end());
    }
  }
  return accumulators;
}

}  // namespace satrap
