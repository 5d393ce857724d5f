// Intervals: a set of numbers as ascending, disjoint pairs [first, last], none of them next to
// another, so that equal sets have equal pairs, in whatever order numbers were inserted.
//
// Thread-compatible.

#ifndef SATRAP_COMMON_CHECKPOINT_LEDGER_INTERVALS_H_
#define SATRAP_COMMON_CHECKPOINT_LEDGER_INTERVALS_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include "absl/status/status.h"

namespace satrap {

class Intervals {
 public:
  bool Holds(uint64_t value) const { return Overlaps(value, value); }
  // Whether any number of [first, last] is in the set.
  bool Overlaps(uint64_t first, uint64_t last) const {
    const auto after = pairs_.upper_bound(last);
    return after != pairs_.begin() && std::prev(after)->second >= first;
  }
  // REQUIRES: !Overlaps(first, last), first <= last
  void Insert(uint64_t first, uint64_t last) {
    const auto next = pairs_.upper_bound(last);
    if (next != pairs_.end() && next->first == last + 1) {
      last = next->second;
      pairs_.erase(next);
    }
    const auto after = pairs_.lower_bound(first);
    if (after != pairs_.begin() && std::prev(after)->second + 1 == first) {
      std::prev(after)->second = last;
    } else {
      pairs_.emplace_hint(after, first, last);
    }
  }
  // The least number from `value` on that is not in the set.
  uint64_t EndFrom(uint64_t value) const {
    const auto after = pairs_.upper_bound(value);
    if (after == pairs_.begin() || std::prev(after)->second < value) return value;
    return std::prev(after)->second + 1;
  }
  // Whether the set is [first, last] and nothing else.
  bool Are(uint64_t first, uint64_t last) const {
    return pairs_.size() == 1 && pairs_.begin()->first == first && pairs_.begin()->second == last;
  }

  bool empty() const { return pairs_.empty(); }
  size_t size() const { return pairs_.size(); }
  void clear() { pairs_.clear(); }
  // Pairs (first, last).
  auto begin() const { return pairs_.begin(); }
  auto end() const { return pairs_.end(); }
  // REQUIRES: !empty()
  uint64_t first() const { return pairs_.begin()->first; }
  uint64_t last() const { return pairs_.rbegin()->second; }

  // Appends the pairs to a repeated field.
  template <typename Field>
  void Write(Field* field) const {
    for (const auto& [first, last] : pairs_) {
      field->Add(first);
      field->Add(last);
    }
  }
  // DATA_LOSS if the field is not as Write makes it. The message is the end of a sentence about the
  // field's owner, such as "has half a pair". REQUIRES: empty()
  template <typename Field>
  absl::Status Read(const Field& field) {
    if (field.size() % 2 != 0) return absl::DataLossError("has half a pair");
    for (int i = 0; i < field.size(); i += 2) {
      const uint64_t first = field.Get(i);
      const uint64_t last = field.Get(i + 1);
      // Adjacent pairs would have been written as one pair.
      const bool ascends = pairs_.empty() || (first > this->last() && first - this->last() > 1);
      if (last < first || !ascends) return absl::DataLossError("has pairs that do not ascend");
      pairs_.emplace_hint(pairs_.end(), first, last);
    }
    return absl::OkStatus();
  }

 private:
  std::map<uint64_t, uint64_t> pairs_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_LEDGER_INTERVALS_H_
