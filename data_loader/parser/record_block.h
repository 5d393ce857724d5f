// A RecordBlock holds parsed records as matrices with one row per record: single ids, numerics,
// labels and so on. Only lists of ids are jagged arrays of their own. The layout is by row, not by
// column, because batches take records in permuted order, and reading one record then touches few
// cache lines.
//
// A parser writes the row under construction, which has the index rows(), and then commits or
// abandons it.
//
// Not thread-safe. When a block no longer changes, many threads may read it.

#ifndef SATRAP_DATA_LOADER_PARSER_RECORD_BLOCK_H_
#define SATRAP_DATA_LOADER_PARSER_RECORD_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/config/record_schema.h"

namespace satrap {

// Stands for a missing numeric. It cannot be mistaken for a value, because no format accepts NaN.
inline constexpr float kMissingNumeric = std::numeric_limits<float>::quiet_NaN();

// Stands for a missing label. Every record has at least one known label.
inline constexpr float kMissingLabel = kMissingNumeric;

// The id of a missing value if FeatureConfig.missing is AS_ID: the XXH64 of the empty string.
inline constexpr uint64_t kMissingId = 0xef46db3751d8e999ULL;

class RecordBlock {
 public:
  explicit RecordBlock(const RecordSchema& schema);

  size_t rows() const { return rows_; }
  void Clear();

  // These functions set the values that following rows get from their message: the columns that
  // come from messages, and the time of a row whose text has no time. `column` counts only columns
  // that come from messages. Before the first call these columns are missing, and the time is 0.
  void SetMessageId(size_t column, absl::optional<uint64_t> id) { message_ids_[column] = id; }
  void SetMessageNumeric(size_t column, float value) { message_numerics_[column] = value; }
  void set_message_time(int64_t time) { message_time_ = time; }

  // --- the row under construction ---
  //
  // Makes room for the row. Initially lists are empty, the weight is 1, the group is 0, and the
  // time is that of the message. Ids, numerics and labels that come from the text have unspecified
  // values and do not count as missing.
  void BeginRow() {
    if (rows_ == capacity_) Grow();
    for (size_t i = 0; i < mask_words_; ++i) missing_[rows_ * mask_words_ + i] = 0;
    weights_[rows_] = 1;
    groups_[rows_] = 0;
    times_[rows_] = message_time_;
    if (has_message_columns_) FillMessageColumns();
  }
  uint64_t* row_ids() { return ids_.data() + rows_ * num_ids_; }
  float* row_numerics() { return numerics_.data() + rows_ * num_numerics_; }
  void SetMissing(size_t id_column) {
    row_ids()[id_column] = kMissingId;
    missing_[rows_ * mask_words_ + id_column / 64] |= uint64_t{1} << (id_column % 64);
  }
  // `value` is stored only if the column is weighted.
  void AppendToList(size_t list_column, uint64_t id, float value) {
    List& list = lists_[list_column];
    list.ids.push_back(id);
    if (list.weighted) list.values.push_back(value);
  }
  float* row_labels() { return labels_.data() + rows_ * num_labels_; }
  // Sets the label of a format that has only one label.
  void set_label(float label) { row_labels()[0] = label; }
  bool KnowsALabel() const {
    for (size_t i = 0; i < num_labels_; ++i) {
      const float label = labels_[rows_ * num_labels_ + i];
      if (label == label) return true;
    }
    return false;
  }
  void set_weight(float weight) { weights_[rows_] = weight; }
  void set_group(uint64_t group) { groups_[rows_] = group; }
  void set_time(int64_t time) { times_[rows_] = time; }
  void CommitRow() {
    for (List& list : lists_) list.ends.push_back(static_cast<uint32_t>(list.ids.size()));
    ++rows_;
  }
  void AbandonRow();
  // Removes the last committed row. REQUIRES: rows() > 0
  void DropLastRow();

  // --- committed rows. REQUIRES: row < rows() ---
  //
  // A missing id has the value kMissingId. Another id may have the same value, so use IsMissing to
  // distinguish them.
  const uint64_t* ids(size_t row) const { return ids_.data() + row * num_ids_; }
  bool IsMissing(size_t row, size_t id_column) const {
    return (missing_[row * mask_words_ + id_column / 64] >> (id_column % 64) & 1) != 0;
  }
  const float* numerics(size_t row) const { return numerics_.data() + row * num_numerics_; }
  absl::Span<const uint64_t> list_ids(size_t row, size_t column) const;
  // The values of a list; empty if the column is not weighted.
  absl::Span<const float> list_values(size_t row, size_t column) const;
  // A missing label is NaN.
  const float* labels(size_t row) const { return labels_.data() + row * num_labels_; }
  float label(size_t row) const { return labels(row)[0]; }
  float weight(size_t row) const { return weights_[row]; }
  uint64_t group(size_t row) const { return groups_[row]; }
  int64_t time(size_t row) const { return times_[row]; }

 private:
  struct List {
    bool weighted = false;
    std::vector<uint64_t> ids;
    std::vector<float> values;
    std::vector<uint32_t> ends;  // for each committed row, where its ids end
  };
  void Grow();
  void FillMessageColumns();
  void TruncateLists();

  const size_t num_ids_;
  const size_t num_numerics_;
  const size_t num_labels_;
  const size_t mask_words_;
  const bool has_message_columns_;
  size_t rows_ = 0;
  size_t capacity_ = 0;
  std::vector<uint64_t> ids_;      // [capacity, num_ids]
  std::vector<uint64_t> missing_;  // bits, [capacity, mask_words]
  std::vector<float> numerics_;    // [capacity, num_numerics]
  std::vector<float> labels_;      // [capacity, num_labels]
  std::vector<float> weights_;
  std::vector<uint64_t> groups_;
  std::vector<int64_t> times_;
  std::vector<List> lists_;
  std::vector<absl::optional<uint64_t>> message_ids_;
  std::vector<float> message_numerics_;
  int64_t message_time_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_RECORD_BLOCK_H_
