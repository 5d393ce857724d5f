#include "embedding_worker/gradient_push.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/batch/pooling.h"
#include "common/rpc/payload.h"

namespace satrap {

namespace {

// The checked gradients of a push, by index in the layout. Absent for a table or feature without
// gradients.
struct PushedGradients {
  std::vector<absl::optional<rpc::WireValues>> tables;
  std::vector<absl::optional<rpc::WireValues>> features;
};

absl::Status ReadTables(const EmbeddingLayout& layout, const LookupPlan& plan,
                        const PushGradientsHeader& push, const Buffer& payload,
                        PushedGradients* gradients) {
  for (int i = 0; i < push.tables_size(); ++i) {
    const TableGradients& pushed = push.tables(i);
    const std::string field = absl::StrCat("tables[", i, "]");
    size_t t = 0;
    while (t < layout.tables.size() && layout.tables[t].id != pushed.table()) ++t;
    if (t == layout.tables.size() || !layout.tables[t].has_rows || gradients->tables[t]) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, ": table ", pushed.table(), " is unknown, sends no rows, or occurs twice"));
    }
    const size_t num_rows = plan.tables[t].num_sent;
    if (pushed.num_rows() != num_rows || pushed.row_values() != layout.tables[t].row_values) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, ": the gradients have shape [", pushed.num_rows(), ", ", pushed.row_values(),
          "], but the rows have shape [", num_rows, ", ", layout.tables[t].row_values, "]"));
    }
    ASSIGN_OR_RETURN(gradients->tables[t], rpc::WireView(payload, pushed.gradients(), push.dtype(),
                                                         num_rows * layout.tables[t].row_values,
                                                         absl::StrCat(field, ".gradients")));
  }
  for (size_t t = 0; t < layout.tables.size(); ++t) {
    if (plan.tables[t].num_sent > 0 && !gradients->tables[t]) {
      return absl::InvalidArgumentError(
          absl::StrCat("tables: no gradients of table ", layout.tables[t].id));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadFeatures(const EmbeddingLayout& layout, const LookupPlan& plan,
                          const PushGradientsHeader& push, const Buffer& payload,
                          PushedGradients* gradients) {
  for (int i = 0; i < push.features_size(); ++i) {
    const FeatureGradients& pushed = push.features(i);
    const std::string field = absl::StrCat("features[", i, "]");
    const size_t f = pushed.feature();
    if (f >= layout.features.size() || !layout.features[f].pooled || gradients->features[f]) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": feature ", f, " is unknown, not POOLED, or occurs twice"));
    }
    ASSIGN_OR_RETURN(
        gradients->features[f],
        rpc::WireView(payload, pushed.gradients(), push.dtype(),
                      plan.samples * layout.tables[layout.features[f].table].row_values,
                      absl::StrCat(field, ".gradients")));
  }
  for (size_t f = 0; f < layout.features.size(); ++f) {
    if (layout.features[f].pooled && plan.samples > 0 && !gradients->features[f]) {
      return absl::InvalidArgumentError(absl::StrCat("features: no gradients of feature ", f, " (",
                                                     layout.features[f].name, ")"));
    }
  }
  return absl::OkStatus();
}

// The summed gradients of each key, [num_keys, row_values], of a table that POOLED features read.
// The gradients of sent rows are added first, then those of POOLED features in the order of the
// features. Reproducible runs need this fixed order of summation.
std::vector<float> SumByKey(const EmbeddingLayout& layout, const PlannedPart& part, int index,
                            const PushedGradients& gradients) {
  const size_t row_values = layout.tables[index].row_values;
  const LookupPlan::Table& table = part.plan.tables[index];
  std::vector<float> sums(table.keys.size() * row_values);
  const absl::optional<rpc::WireValues>& rows = gradients.tables[index];
  if (rows && table.sent.empty()) {
    if (rows->count > 0) rpc::DecodeWire(*rows, absl::MakeSpan(sums));
  } else if (rows) {
    for (size_t i = 0; i < table.sent.size(); ++i) {
      rpc::DecodeWire(rows->Subrange(i * row_values, row_values),
                      absl::MakeSpan(sums).subspan(table.sent[i] * row_values, row_values));
    }
  }
  std::vector<float> decoded;
  for (size_t f = 0; f < layout.features.size(); ++f) {
    const EmbeddingLayout::Feature& feature = layout.features[f];
    if (feature.table != index || !feature.pooled || part.plan.samples == 0) continue;
    decoded.resize(gradients.features[f]->count);
    rpc::DecodeWire(*gradients.features[f], absl::MakeSpan(decoded));
    PoolBackward(feature.pooling, part.IndicesOf(static_cast<int>(f)), decoded.data(), row_values,
                 {row_values, 0, row_values}, sums.data());
  }
  return sums;
}

// The summed gradients of a table's keys. If the table has no POOLED features, the push already has
// one gradient for each key, and these are used in place, in the dtype of the push.
class KeySums {
 public:
  KeySums(const EmbeddingLayout& layout, const PlannedPart& part, int index,
          const PushedGradients& gradients)
      : row_values_(layout.tables[index].row_values) {
    if (layout.tables[index].has_pooled) {
      sums_ = SumByKey(layout, part, index, gradients);
      values_ = {F32, sums_.size(), reinterpret_cast<const uint8_t*>(sums_.data())};
    } else if (gradients.tables[index]) {
      values_ = *gradients.tables[index];
    }
  }
  KeySums(KeySums&&) = default;  // a moved vector keeps its memory

  rpc::WireValues Of(LookupPlan::KeyRange run) const {
    return values_.Subrange(run.begin * row_values_, run.size() * row_values_);
  }

 private:
  size_t row_values_;
  std::vector<float> sums_;
  rpc::WireValues values_;
};

// Adds the Update for PS `ps`. `sums` is empty if no gradients are to be sent.
void AddUpdate(const EmbeddingLayout& layout, const LookupPlan& plan,
               const std::vector<KeySums>& sums, UpdateHeader update, int ps, int num_ps,
               PlannedUpdates* updates) {
  rpc::PayloadBuilder builder;
  std::vector<int> tables;
  for (size_t t = 0; t < sums.size(); ++t) {
    const LookupPlan::KeyRange run = plan.KeyRangeOf(static_cast<int>(t), ps, num_ps);
    if (run.size() == 0) continue;
    TableUpdate* table = update.add_tables();
    table->set_table(layout.tables[t].id);
    table->set_num_keys(run.size());
    table->set_row_values(layout.tables[t].row_values);
    builder.Reserve<uint64_t>(run.size(), table->mutable_keys());
    builder.Reserve(update.dtype(), run.size() * layout.tables[t].row_values,
                    table->mutable_gradients());
    builder.Reserve<uint32_t>(run.size(), table->mutable_counts());
    tables.push_back(static_cast<int>(t));
  }
  builder.Allocate();
  for (int i = 0; i < update.tables_size(); ++i) {
    TableUpdate& to = *update.mutable_tables(i);
    const LookupPlan::Table& from = plan.tables[tables[i]];
    const LookupPlan::KeyRange run = plan.KeyRangeOf(tables[i], ps, num_ps);
    std::memcpy(builder.Fill<uint8_t>(to.keys()).data(), from.keys.data() + run.begin,
                to.keys().size_bytes());
    std::memcpy(builder.Fill<uint8_t>(to.counts()).data(), from.counts.data() + run.begin,
                to.counts().size_bytes());
    // The NN worker has already checked that all gradients are finite.
    const rpc::WireValues gradients = sums[tables[i]].Of(run);
    const int scale = rpc::ScaleExponentFor(gradients, update.dtype());
    rpc::SetScale(update.dtype(), scale, to.mutable_gradients());
    updates->gradient_values += gradients.count;
    updates->losses.Add(rpc::ConvertGradients(gradients, update.dtype(), scale,
                                              builder.Fill<uint8_t>(to.gradients()).data()));
  }
  updates->requests.push_back({ps, {update.SerializeAsString(), builder.Take()}});
}

}  // namespace

absl::StatusOr<PlannedUpdates> MakeUpdates(const EmbeddingLayout& layout, const PlannedPart& part,
                                           const PushGradientsHeader& push, const Buffer& payload,
                                           const UpdateHeader& update, int num_ps) {
  std::vector<KeySums> sums;
  if (push.step().finite()) {
    PushedGradients gradients;
    gradients.tables.resize(layout.tables.size());
    gradients.features.resize(layout.features.size());
    RETURN_IF_ERROR(ReadTables(layout, part.plan, push, payload, &gradients));
    RETURN_IF_ERROR(ReadFeatures(layout, part.plan, push, payload, &gradients));
    for (size_t t = 0; t < layout.tables.size(); ++t) {
      sums.emplace_back(layout, part, static_cast<int>(t), gradients);
    }
  }
  PlannedUpdates updates;
  for (int ps = 0; ps < num_ps; ++ps) {
    bool has_keys = false;
    for (size_t t = 0; t < sums.size() && !has_keys; ++t) {
      has_keys = part.plan.KeyRangeOf(static_cast<int>(t), ps, num_ps).size() > 0;
    }
    if (!has_keys && !update.ordered()) continue;
    AddUpdate(layout, part.plan, sums, update, ps, num_ps, &updates);
  }
  return updates;
}

}  // namespace satrap
