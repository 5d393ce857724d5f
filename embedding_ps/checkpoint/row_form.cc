#include "embedding_ps/checkpoint/row_form.h"

#include <algorithm>

#include "common/base/check.h"
#include "embedding_ps/optimizer/row_step.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "embedding_ps/table/segment_rule.h"

namespace satrap {
namespace {

constexpr int64_t kFirstPeriod = int64_t{1} << 24;

// Re-encodes the last step of a row that was counted modulo 2^24, after `steps` steps of its table.
// Several steps have the same count modulo 2^24; the newest possible one is assumed.
float FromFirstPeriod(float encoded, int64_t steps) {
  const int64_t newest = steps + kMostStepsLate;
  if (encoded == 0 || newest < kFirstPeriod) return encoded;
  const int64_t last = static_cast<int64_t>(encoded) - 1;
  const int64_t behind = ((newest - last) % kFirstPeriod + kFirstPeriod) % kFirstPeriod;
  return EncodedStep(newest - behind);
}

}  // namespace

StateFloats StateFloatsOf(const SegmentConfig& segment, const RowLayout::Segment& layout) {
  const auto optimizer = NewSparseOptimizer(segment.optimizer());
  CHECK_OK(optimizer.status());  // a table has been made of it
  StateFloats floats;
  floats.optimizer = (*optimizer)->StateSize(segment.dim());
  floats.optimizer_has_last_step = segment.optimizer().has_sgd_l1();
  floats.has_l2_step = SegmentRule(segment).KeepsL2Step();
  floats.has_last_step = layout.state_size > floats.optimizer + (floats.has_l2_step ? 1 : 0);
  return floats;
}

RowUpgrade::RowUpgrade(const TableConfig& config, const RowLayout& layout, int64_t steps)
    : steps_(steps) {
  const auto values = static_cast<size_t>(layout.num_values());
  copies_.push_back({0, 0, values});
  size_t from = values;
  for (int i = 0; i < config.segments_size(); ++i) {
    const SegmentConfig& segment = config.segments(i);
    const RowLayout::Segment& at = layout.segments()[i];
    const StateFloats floats = StateFloatsOf(segment, at);
    auto to = static_cast<size_t>(at.state_offset);
    const auto end = to + static_cast<size_t>(at.state_size);
    if (segment.optimizer().has_sgd_l1()) {
      const auto dim = static_cast<size_t>(segment.dim());
      debts_.push_back({from, to, dim});
      from += dim + 1;
      to += 2 * dim;
    }
    copies_.push_back({from, to, end - to});
    from += end - to;
    const size_t after_optimizer =
        static_cast<size_t>(at.state_offset) + static_cast<size_t>(floats.optimizer);
    if (floats.optimizer_has_last_step) last_steps_.push_back(after_optimizer - 1);
    if (floats.has_l2_step) last_steps_.push_back(after_optimizer);
    if (floats.has_last_step) last_steps_.push_back(end - 1);
  }
  first_floats_ = from;
}

void RowUpgrade::Upgrade(const float* first, float* row) const {
  for (const Copy& copy : copies_) std::copy_n(first + copy.from, copy.floats, row + copy.to);
  for (const Debts& debts : debts_) {
    const float owed = first[debts.from + debts.dim];
    for (size_t i = 0; i < debts.dim; ++i) {
      const float paid = first[debts.from + i];
      row[debts.to + i] = owed + paid;
      row[debts.to + debts.dim + i] = owed - paid;
    }
  }
  for (const size_t at : last_steps_) row[at] = FromFirstPeriod(row[at], steps_);
}

}  // namespace satrap
