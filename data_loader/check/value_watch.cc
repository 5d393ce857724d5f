#include "data_loader/check/value_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/config/job_facts.h"
#include "common/config/label_targets.h"

namespace satrap {
namespace {

constexpr size_t kMostSampled = 8192;
constexpr uint64_t kFirstJudged = 65536;
// A column with fewer numbers is not judged, because its 99.9th percentile would be its largest
// number.
constexpr size_t kLeastJudged = 1000;
constexpr double kFar = 1000;

const char* StreamText(Stream stream) {
  if (stream == TRAIN_STREAM) return "training data";
  return stream == VALID_STREAM ? "validation data" : "test data";
}

}  // namespace

ValueWatch::ValueWatch(const JobConfig& job, Stream stream) : stream_(stream) {
  // The synthetic log needs no watch: its labels and numbers come from a model.
  if (job.data().has_synthetic()) return;
  const RecordSchema schema = SchemaOf(job.data());
  MutexLock lock(&mutex_);
  for (const NumericConfig& config : job.data().numerics()) {
    const int column = schema.IndexOfNumeric(ColumnOf(config));
    CHECK(column >= 0) << "numeric " << config.name() << " reads no column";
    columns_.push_back(
        {Column::kNumeric, static_cast<size_t>(column), config.name(), NumericTransform(config)});
  }
  const NumericTransform as_it_is{NumericConfig()};
  const std::vector<LabelTargets> labels = LabelTargetsOf(job);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].loss != TaskConfig::MSE) continue;
    columns_.push_back({Column::kLabel, i, labels[i].column, as_it_is});
  }
  if (schema.has_weight) columns_.push_back({Column::kWeight, 0, "the weight", as_it_is});
  if (stream == TRAIN_STREAM) labels_.resize(labels.size());
}

float ValueWatch::ValueOf(const Column& column, const RecordBlock& records, size_t row) {
  switch (column.of) {
    case Column::kNumeric:
      return records.numerics(row)[column.index];
    case Column::kLabel:
      return records.labels(row)[column.index];
    case Column::kWeight:
      return records.weight(row);
  }
  return 0;
}

void ValueWatch::Add(const RecordBlock& records, absl::string_view place) {
  MutexLock lock(&mutex_);
  for (Column& column : columns_) AddColumn(records, place, &column);
  for (size_t i = 0; i < labels_.size(); ++i) {
    Extremes& labels = labels_[i];
    labels.Add(records.rows(), [&](size_t row) { return records.labels(row)[i]; });
  }
  TakeSample(records);
  rows_ += records.rows();
  if (rows_ >= std::max(kFirstJudged, 2 * judged_rows_)) JudgeAll();
}

// Adds values without their transform. Transforms are ascending, so it is enough to transform the
// values that are kept.
void ValueWatch::AddColumn(const RecordBlock& records, absl::string_view place, Column* column) {
  const Extremes before = column->extremes;
  const size_t rows = records.rows();
  const size_t index = column->index;
  switch (column->of) {
    case Column::kNumeric:
      column->extremes.Add(rows, [&](size_t row) { return records.numerics(row)[index]; });
      break;
    case Column::kLabel:
      column->extremes.Add(rows, [&](size_t row) { return records.labels(row)[index]; });
      break;
    case Column::kWeight:
      column->extremes.Add(rows, [&](size_t row) { return records.weight(row); });
      break;
  }
  if (column->extremes.least < before.least) column->least_at = std::string(place);
  if (column->extremes.largest > before.largest) column->largest_at = std::string(place);
  if (!column->transform.has_clamp()) return;
  for (size_t row = 0; row < rows; ++row) {
    const float value = ValueOf(*column, records, row);
    if (!std::isnan(value) && column->transform.Clamps(value)) ++clamped_;
  }
}

void ValueWatch::TakeSample(const RecordBlock& records) {
  if (columns_.empty()) return;
  for (uint64_t row = (stride_ - rows_ % stride_) % stride_; row < records.rows();) {
    for (Column& column : columns_) column.sample.push_back(ValueOf(column, records, row));
    row += stride_;
    if (columns_[0].sample.size() < kMostSampled) continue;
    // Drop every second value, and from now on sample only half as many records.
    for (Column& column : columns_) {
      for (size_t i = 0; i < kMostSampled / 2; ++i) column.sample[i] = column.sample[2 * i];
      column.sample.resize(kMostSampled / 2);
    }
    stride_ *= 2;
    const uint64_t at = rows_ + row;
    row += (stride_ - at % stride_) % stride_;
  }
}

void ValueWatch::NoteRefused(RecordCheck::Fault fault, absl::string_view place,
                             absl::string_view reason) {
  MutexLock lock(&mutex_);
  if (!told_.insert(fault).second) return;
  Warn(absl::StrCat("records of the ", StreamText(stream_),
                    " are left out as bad records; the first of this kind is in ", place, ": ",
                    reason));
}

void ValueWatch::AddReader() {
  MutexLock lock(&mutex_);
  ++readers_;
}

void ValueWatch::EndReader() {
  MutexLock lock(&mutex_);
  CHECK(readers_ > 0);
  if (--readers_ == 0) JudgeAll();
}

void ValueWatch::JudgeAll() {
  judged_rows_ = rows_;
  for (Column& column : columns_) {
    if (!column.told) WarnOfOutliers(&column);
  }
}

void ValueWatch::WarnOfOutliers(Column* column) {
  std::vector<double> values;
  for (const float x : column->sample) {
    if (!std::isnan(x)) values.push_back(static_cast<double>(column->transform.Apply(x)));
  }
  if (values.size() < kLeastJudged) return;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double median = *middle;
  for (double& value : values) value = std::fabs(value - median);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() * 999 / 1000) - 1;
  std::nth_element(values.begin(), at, values.end());
  const double usual = *at;
  const auto applied = [column](float x) {
    return static_cast<double>(column->transform.Apply(x));
  };
  const double above = applied(column->extremes.largest) - median;
  const double below = median - applied(column->extremes.least);
  // `usual` is 0 if nearly all numbers are equal, as for a rare flag. In that case use 1.
  if (std::max(above, below) <= kFar * (usual > 0 ? usual : 1)) return;
  column->told = true;
  const bool is_above = above >= below;
  Warn(absl::StrCat(column->of == Column::kLabel     ? "label "
                    : column->of == Column::kNumeric ? "numeric "
                                                     : "",
                    column->name, " of the ", StreamText(stream_), " is ",
                    applied(is_above ? column->extremes.largest : column->extremes.least),
                    " in a record of ", is_above ? column->largest_at : column->least_at,
                    ", and 99.9 % of its values are within ", usual, " of their median, ", median,
                    ": such a record dominates the updates of its weights. Correct it",
                    column->of == Column::kNumeric
                        ? ", limit the column with data.numerics.clamp, or transform it"
                        : ""));
}

// Call at most once for each column, and at most once for each kind of fault.
void ValueWatch::Warn(std::string warning) { warnings_.push_back(std::move(warning)); }

void ValueWatch::Report(LoaderProgress* progress) const {
  MutexLock lock(&mutex_);
  for (const std::string& warning : warnings_) progress->add_warnings(warning);
  if (clamped_ > 0) progress->set_clamped(progress->clamped() + clamped_);
  for (const Extremes& labels : labels_) {
    LabelRange* const range = progress->add_labels();
    range->set_count(labels.count);
    if (labels.count == 0) continue;
    range->set_least(labels.least);
    range->set_largest(labels.largest);
  }
}

}  // namespace satrap
