#include "data_loader/check/record_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/config/job_facts.h"

namespace satrap {
namespace {

// False for NaN, which stands for a missing number.
bool IsBeyond(float number) { return std::fabs(number) > kLargestNumber; }

std::string BeyondText(absl::string_view what, float number) {
  return absl::StrCat(what, ": ", number, " is beyond 1e15, the largest number that a model takes");
}

}  // namespace

RecordCheck::RecordCheck(const JobConfig& job)
    // The check always applies to topics: their ledger counts offsets and lines, whether or not
    // these hold good records.
    : applies_(job.data().record_rules() > 0 || job.data().has_kafka()),
      labels_(job.action() == JobConfig::PREDICT ? std::vector<LabelTargets>()
                                                 : LabelTargetsOf(job)) {
  const RecordSchema schema = SchemaOf(job.data());
  has_weight_ = schema.has_weight;
  for (const NumericConfig& config : job.data().numerics()) AddNumeric(config, schema);
  for (size_t i = 0; i < schema.id_lists.size(); ++i) {
    if (!schema.weighted[i]) continue;
    const auto& features = job.data().features();
    const bool read = std::any_of(features.begin(), features.end(), [&](const auto& feature) {
      return ColumnOf(feature) == schema.id_lists[i];
    });
    if (read) lists_.push_back({i, schema.id_lists[i]});
  }
}

void RecordCheck::AddNumeric(const NumericConfig& config, const RecordSchema& schema) {
  const int column = schema.IndexOfNumeric(ColumnOf(config));
  CHECK(column >= 0) << "numeric " << config.name() << " reads no column";
  // Every transform is ascending, so the numbers whose transform is within the limit form an
  // interval. The interval is made slightly smaller, because the transform rounds.
  double middle = 0;
  double reach = 0.999 * static_cast<double>(kLargestNumber);
  switch (config.transform()) {
    case NumericConfig::IDENTITY:
      break;
    case NumericConfig::LOG1P:
      reach = std::numeric_limits<double>::infinity();
      break;
    case NumericConfig::MIN_MAX:
      middle = static_cast<double>(config.min());
      reach *= static_cast<double>(config.max()) - middle;
      break;
    case NumericConfig::STANDARDISE:
      middle = static_cast<double>(config.mean());
      reach *= static_cast<double>(config.stddev());
      break;
  }
  constexpr double kMost = std::numeric_limits<float>::max();
  numerics_.push_back({static_cast<size_t>(column), ColumnOf(config), NumericTransform(config),
                       static_cast<float>(std::max(middle - reach, -kMost)),
                       static_cast<float>(std::min(middle + reach, kMost))});
}

RecordCheck::Fault RecordCheck::Check(const RecordBlock& records, std::string* reason) const {
  if (!applies_) return Fault::kNone;
  const size_t row = records.rows() - 1;
  const float* const labels = records.labels(row);
  for (size_t i = 0; i < labels_.size(); ++i) {
    if (std::isnan(labels[i]) || labels_[i].Takes(labels[i])) continue;
    *reason =
        absl::StrCat("label ", labels_[i].column, ": ", labels[i], " is not ", labels_[i].Text());
    return Fault::kLabel;
  }
  const float* const numbers = records.numerics(row);
  for (const Numeric& numeric : numerics_) {
    const float x = numbers[numeric.column];
    if (!(x < numeric.low) && !(x > numeric.high)) continue;
    const float value = numeric.transform.Transformed(x);
    if (!IsBeyond(value)) continue;
    *reason = BeyondText(absl::StrCat("column '", numeric.name, "'",
                                      value == x ? "" : absl::StrCat(" (", x, " in the data)")),
                         value);
    return Fault::kNumber;
  }
  if (has_weight_ && IsBeyond(records.weight(row))) {
    *reason = BeyondText("the weight", records.weight(row));
    return Fault::kNumber;
  }
  for (const List& list : lists_) {
    for (const float value : records.list_values(row, list.column)) {
      if (!IsBeyond(value)) continue;
      *reason = BeyondText(absl::StrCat("column '", list.name, "'"), value);
      return Fault::kNumber;
    }
  }
  return Fault::kNone;
}

}  // namespace satrap
