#include "data_loader/parser/record_block.h"

#include <algorithm>

#include "common/base/check.h"

namespace satrap {

RecordBlock::RecordBlock(const RecordSchema& schema)
    : num_ids_(schema.ids.size()),
      num_numerics_(schema.numerics.size()),
      num_labels_(schema.labels.size()),
      mask_words_((schema.ids.size() + 63) / 64),
      has_message_columns_(schema.message_ids + schema.message_numerics > 0),
      lists_(schema.id_lists.size()),
      message_ids_(schema.message_ids),
      message_numerics_(schema.message_numerics, kMissingNumeric) {
  for (size_t i = 0; i < lists_.size(); ++i) lists_[i].weighted = schema.weighted[i];
}

// Keeps the memory, because the next block of a split needs about as much.
void RecordBlock::Clear() {
  rows_ = 0;
  for (List& list : lists_) list.ends.clear();
  TruncateLists();
}

void RecordBlock::Grow() {
  capacity_ = capacity_ == 0 ? 1024 : capacity_ * 2;
  ids_.resize(capacity_ * num_ids_);
  missing_.resize(capacity_ * mask_words_);
  numerics_.resize(capacity_ * num_numerics_);
  labels_.resize(capacity_ * num_labels_);
  weights_.resize(capacity_);
  groups_.resize(capacity_);
  times_.resize(capacity_);
}

void RecordBlock::FillMessageColumns() {
  const size_t first_id = num_ids_ - message_ids_.size();
  for (size_t i = 0; i < message_ids_.size(); ++i) {
    if (message_ids_[i].has_value()) {
      row_ids()[first_id + i] = *message_ids_[i];
    } else {
      SetMissing(first_id + i);
    }
  }
  std::copy(message_numerics_.begin(), message_numerics_.end(),
            row_numerics() + (num_numerics_ - message_numerics_.size()));
}

// Only lists need cleaning: BeginRow resets the other values that have a default, and parsers write
// all others.
void RecordBlock::AbandonRow() { TruncateLists(); }

void RecordBlock::DropLastRow() {
  CHECK(rows_ > 0);
  --rows_;
  for (List& list : lists_) list.ends.pop_back();
  TruncateLists();
}

// Removes what was appended to the lists since the last committed row.
void RecordBlock::TruncateLists() {
  for (List& list : lists_) {
    const size_t size = list.ends.empty() ? 0 : list.ends.back();
    list.ids.resize(size);
    if (list.weighted) list.values.resize(size);
  }
}

absl::Span<const uint64_t> RecordBlock::list_ids(size_t row, size_t column) const {
  const List& list = lists_[column];
  const size_t from = row == 0 ? 0 : list.ends[row - 1];
  return absl::MakeConstSpan(list.ids).subspan(from, list.ends[row] - from);
}

absl::Span<const float> RecordBlock::list_values(size_t row, size_t column) const {
  const List& list = lists_[column];
  if (!list.weighted) return {};
  const size_t from = row == 0 ? 0 : list.ends[row - 1];
  return absl::MakeConstSpan(list.values).subspan(from, list.ends[row] - from);
}

}  // namespace satrap
