#include "embedding_worker/part_lookup.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/numeric/half.h"
#include "common/rpc/payload.h"

namespace satrap {

namespace {

// A run of a table's rows, as one PS sent them: keys [begin, begin + values.count / row_values).
struct RowRun {
  size_t begin = 0;
  rpc::WireValues values;
};

// For each table, the runs that together have all its keys, in order.
using RowRuns = std::vector<std::vector<RowRun>>;

bool HasKeys(const LookupPlan& plan, int ps, int num_ps) {
  for (size_t t = 0; t < plan.tables.size(); ++t) {
    if (plan.KeyRangeOf(static_cast<int>(t), ps, num_ps).size() > 0) return true;
  }
  return false;
}

absl::Status ReadLookupAnswer(const EmbeddingLayout& layout, const LookupPlan& plan, int ps,
                              int num_ps, const rpc::Message& answer, RowRuns* runs) {
  LookupAnswerHeader header;
  if (!header.ParseFromString(answer.header))
    return absl::InvalidArgumentError("the header does not parse");
  int next = 0;
  for (size_t t = 0; t < layout.tables.size(); ++t) {
    const LookupPlan::KeyRange run = plan.KeyRangeOf(static_cast<int>(t), ps, num_ps);
    if (run.size() == 0) continue;
    if (next == header.tables_size()) return absl::InvalidArgumentError("tables: too few");
    const TableValues& table = header.tables(next);
    const std::string field = absl::StrCat("tables[", next++, "]");
    const size_t row_values = layout.tables[t].row_values;
    if (table.table() != layout.tables[t].id || table.num_keys() != run.size() ||
        table.row_values() != row_values) {
      return absl::InvalidArgumentError(absl::StrCat(field, ": {", table.ShortDebugString(),
                                                     "} to ", run.size(), " keys of table ",
                                                     layout.tables[t].id));
    }
    ASSIGN_OR_RETURN(rpc::WireValues values,
                     rpc::WireView(answer.payload, table.values(), header.dtype(),
                                   run.size() * row_values, absl::StrCat(field, ".values")));
    (*runs)[t].push_back({run.begin, values});
  }
  return absl::OkStatus();
}

// All rows of a table, [num_keys, row_values], as f32. Does not copy them if one PS sent all of
// them as f32.
class RowMatrix {
 public:
  RowMatrix(const std::vector<RowRun>& runs, size_t num_values, size_t row_values) {
    if (runs.size() == 1 && runs[0].values.dtype == F32) {
      data_ = reinterpret_cast<const float*>(runs[0].values.bytes);
      return;
    }
    decoded_ = std::make_unique_for_overwrite<float[]>(num_values);  // the runs cover all of it
    for (const RowRun& run : runs) {
      rpc::DecodeWire(run.values,
                      absl::MakeSpan(decoded_.get() + run.begin * row_values, run.values.count));
    }
    data_ = decoded_.get();
  }
  const float* data() const { return data_; }

 private:
  std::unique_ptr<float[]> decoded_;
  const float* data_;
};

// Builds the answer. The payload is allocated once with its final size, so all sections are
// reserved before the first is filled.
class AnswerBuilder {
 public:
  AnswerBuilder(const EmbeddingLayout& layout, const PlannedPart& part, WireDtype dtype)
      : layout_(layout), part_(part), dtype_(dtype), value_bytes_(rpc::WireValueBytes(dtype)) {}

  rpc::Message Build(const RowRuns& runs, uint64_t handle) {
    header_.set_outcome(OUTCOME_DONE);
    header_.set_result(NextBatchAnswerHeader::PART);
    header_.set_handle(handle);
    header_.set_dtype(dtype_);
    ReserveDescription();
    for (const EmbeddingLayout::Table& table : layout_.tables) ReserveTable(table);
    for (size_t f = 0; f < layout_.features.size(); ++f) ReserveFeature(static_cast<int>(f));
    if (part_.candidates.has_value()) ReserveCandidates(*part_.candidates);
    builder_.Allocate();
    for (const auto& [from, to] : copies_) {
      if (to.size_bytes() == 0) continue;
      std::memcpy(builder_.Fill<uint8_t>(to).data(), part_.payload.data() + from.offset_bytes(),
                  to.size_bytes());
    }
    int sent_table = 0;
    for (size_t t = 0; t < layout_.tables.size(); ++t) {
      TableRows* rows = layout_.tables[t].has_rows ? header_.mutable_tables(sent_table++) : nullptr;
      FillTable(static_cast<int>(t), runs[t], rows);
    }
    FillIndices();
    if (part_.candidates.has_value()) FillCandidates(*part_.candidates);
    return {header_.SerializeAsString(), builder_.Take()};
  }

 private:
  // Copies a section of the part that is passed on to the NN worker unchanged.
  void Copy(const Section& from, Section* to) {
    Section section = from;
    builder_.Reserve<uint8_t>(from.size_bytes(), to);
    copies_.emplace_back(std::move(section), *to);
  }

  void ReserveDescription() {
    const PartDescription& from = part_.description;
    PartDescription* to = header_.mutable_part();
    *to = from;
    Copy(from.numeric_values(), to->mutable_numeric_values());
    Copy(from.labels(), to->mutable_labels());
    if (from.has_label_mask()) Copy(from.label_mask(), to->mutable_label_mask());
    if (from.has_weights()) Copy(from.weights(), to->mutable_weights());
    if (from.has_groups()) Copy(from.groups(), to->mutable_groups());
    if (from.has_times()) Copy(from.times(), to->mutable_times());
  }

  void ReserveTable(const EmbeddingLayout::Table& table) {
    if (!table.has_rows) return;
    const size_t num_rows = part_.plan.tables[&table - layout_.tables.data()].num_sent;
    TableRows* rows = header_.add_tables();
    rows->set_table(table.id);
    rows->set_num_rows(num_rows);
    rows->set_row_values(table.row_values);
    builder_.Reserve(dtype_, num_rows * table.row_values, rows->mutable_values());
  }

  void ReserveFeature(int feature) {
    const FeatureIds& from = part_.features[feature];
    FeatureRows* to = header_.add_features();
    to->set_num_ids(from.num_ids());
    if (layout_.features[feature].pooled) {
      const size_t row_values = layout_.tables[layout_.features[feature].table].row_values;
      builder_.Reserve(dtype_, part_.plan.samples * row_values, to->mutable_pooled());
      return;
    }
    builder_.Reserve<uint32_t>(from.num_ids(), to->mutable_indices());
    if (from.has_offsets()) Copy(from.offsets(), to->mutable_offsets());
    if (from.has_weights()) Copy(from.weights(), to->mutable_weights());
  }

  void ReserveCandidates(const PartCandidates& from) {
    CandidateRows* const to = header_.mutable_candidates();
    to->set_num_candidates(from.ids.size());
    builder_.Reserve<uint32_t>(from.ids.size(), to->mutable_indices());
    builder_.Reserve<float>(from.log_q.size(), to->mutable_log_q());
    builder_.Reserve<float>(from.positive_log_q.size(), to->mutable_positive_log_q());
  }

  template <typename T>
  void Fill(absl::Span<const T> from, const Section& section) {
    if (from.empty()) return;
    const absl::Span<T> to = builder_.Fill<T>(section);
    std::copy(from.begin(), from.end(), to.begin());
  }

  void FillCandidates(const PartCandidates& from) {
    const CandidateRows& to = header_.candidates();
    Fill<uint32_t>(part_.plan.RowsOfCandidates(), to.indices());
    Fill<float>(from.log_q, to.log_q());
    Fill<float>(from.positive_log_q, to.positive_log_q());
  }

  // Fills in the sent rows of a table, if there are any, and the pooled values of its POOLED
  // features.
  void FillTable(int index, const std::vector<RowRun>& runs, TableRows* rows) {
    const EmbeddingLayout::Table& layout = layout_.tables[index];
    const LookupPlan::Table& table = part_.plan.tables[index];
    // If all rows are sent, convert each run directly from a PS's answer into its place. Each F16
    // run has its own scale; use the largest of these for all.
    if (rows != nullptr && table.sent.empty() && table.num_sent > 0) {
      uint8_t* const to = builder_.Fill<uint8_t>(rows->values()).data();
      int scale = rpc::ScaleExponentFor(runs[0].values, dtype_);
      for (const RowRun& run : runs) {
        scale = std::max(scale, rpc::ScaleExponentFor(run.values, dtype_));
      }
      rpc::SetScale(dtype_, scale, rows->mutable_values());
      for (const RowRun& run : runs) {
        uint8_t* const place = to + run.begin * layout.row_values * value_bytes_;
        rpc::ConvertWire(run.values, dtype_, scale, place);
      }
    }
    if (!layout.has_pooled || part_.plan.samples == 0) return;
    const RowMatrix matrix(runs, table.keys.size() * layout.row_values, layout.row_values);
    // Send only some of the rows; the others were looked up only for pooling.
    if (rows != nullptr) {
      const auto values_of = [&](uint32_t row) {
        return absl::MakeConstSpan(matrix.data() + row * layout.row_values, layout.row_values);
      };
      float largest = 0;
      for (const uint32_t row : table.sent) {
        if (dtype_ != F16) break;  // only F16 is scaled
        largest = std::max(largest, LargestFiniteMagnitude(values_of(row)));
      }
      const int scale = dtype_ == F16 ? rpc::ScaleExponentOf(largest) : 0;
      rpc::SetScale(dtype_, scale, rows->mutable_values());
      uint8_t* to = builder_.Fill<uint8_t>(rows->values()).data();
      for (const uint32_t row : table.sent) {
        rpc::EncodeWire(values_of(row), dtype_, scale, to);
        to += layout.row_values * value_bytes_;
      }
    }
    for (const std::vector<int>& group : layout.id_spaces) {
      for (int feature : group) {
        if (layout_.features[feature].pooled) FillPooled(feature, matrix.data(), layout.row_values);
      }
    }
  }

  void FillPooled(int feature, const float* rows, size_t row_values) {
    Section* const section = header_.mutable_features(feature)->mutable_pooled();
    const RowColumns columns = {row_values, 0, row_values};
    const FeatureConfig::Pooling pooling = layout_.features[feature].pooling;
    if (dtype_ == F32) {
      PoolForward(pooling, part_.IndicesOf(feature), rows, columns,
                  builder_.Fill<float>(*section).data(), row_values);
      return;
    }
    pooled_.resize(part_.plan.samples * row_values);
    PoolForward(pooling, part_.IndicesOf(feature), rows, columns, pooled_.data(), row_values);
    builder_.Encode(pooled_, dtype_, section);
  }

  void FillIndices() {
    for (int f = 0; f < header_.features_size(); ++f) {
      if (layout_.features[f].pooled) continue;
      Fill<uint32_t>(part_.plan.RowsOf(f), header_.features(f).indices());
    }
  }

  const EmbeddingLayout& layout_;
  const PlannedPart& part_;
  const WireDtype dtype_;
  const size_t value_bytes_;
  NextBatchAnswerHeader header_;
  rpc::PayloadBuilder builder_;
  std::vector<std::pair<Section, Section>> copies_;  // from the part's payload to the answer's
  std::vector<float> pooled_;
};

}  // namespace

std::vector<PsRequest> MakeLookups(const EmbeddingLayout& layout, const LookupPlan& plan,
                                   int num_ps, const LookupHeader& header) {
  std::vector<PsRequest> requests;
  for (int ps = 0; ps < num_ps; ++ps) {
    if (!HasKeys(plan, ps, num_ps)) continue;
    LookupHeader lookup = header;
    rpc::PayloadBuilder builder;
    std::vector<const uint64_t*> begins;
    for (size_t t = 0; t < layout.tables.size(); ++t) {
      const LookupPlan::KeyRange run = plan.KeyRangeOf(static_cast<int>(t), ps, num_ps);
      if (run.size() == 0) continue;
      TableKeys* table = lookup.add_tables();
      table->set_table(layout.tables[t].id);
      table->set_num_keys(run.size());
      builder.Reserve<uint64_t>(run.size(), table->mutable_keys());
      begins.push_back(plan.tables[t].keys.data() + run.begin);
    }
    builder.Allocate();
    for (size_t i = 0; i < begins.size(); ++i) {
      const Section& section = lookup.tables(static_cast<int>(i)).keys();
      std::memcpy(builder.Fill<uint8_t>(section).data(), begins[i], section.size_bytes());
    }
    requests.push_back({ps, {lookup.SerializeAsString(), builder.Take()}});
  }
  return requests;
}

absl::StatusOr<rpc::Message> MakeNextBatchAnswer(const EmbeddingLayout& layout,
                                                 const PlannedPart& part, int num_ps,
                                                 absl::Span<const rpc::Message> answers,
                                                 uint64_t handle, WireDtype dtype) {
  RowRuns runs(layout.tables.size());
  size_t next = 0;
  for (int ps = 0; ps < num_ps; ++ps) {
    if (!HasKeys(part.plan, ps, num_ps)) continue;
    CHECK(next < answers.size());
    const absl::Status status =
        ReadLookupAnswer(layout, part.plan, ps, num_ps, answers[next++], &runs);
    if (!status.ok()) {
      return absl::InternalError(
          absl::StrCat("answer of embedding_ps ", ps, " to Lookup: ", status.message()));
    }
  }
  return AnswerBuilder(layout, part, dtype).Build(runs, handle);
}

}  // namespace satrap
