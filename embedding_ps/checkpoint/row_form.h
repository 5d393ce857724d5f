// The form of rows in cuts that older builds have written (RowForm::kFirst,
// common/checkpoint/manifest.h), and how such a row becomes one of today's:
//
// - sgd_l1 kept, for each segment, what each weight had paid and what all of them owed, in dim + 2
//   floats; now it keeps what each weight owes on either side of 0, in 2 dim + 1 floats.
// - Last steps were counted modulo 2^24; now they are as in embedding_ps/optimizer/row_step.h.
//
// Thread-safe: constant once made.

#ifndef SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_FORM_H_
#define SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_FORM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "embedding_ps/table/row_layout.h"
#include "proto/table.pb.h"

namespace satrap {

// The floats of a segment's state.
struct StateFloats {
  int optimizer;
  bool optimizer_has_last_step;  // the last of those
  bool has_l2_step;              // one more, if l2_mode is TOUCHED
  bool has_last_step;  // and one at the end, if rows keep their last step (semantics GLOBAL)
};
// REQUIRES: a validated segment; `layout` is its part of a table's
StateFloats StateFloatsOf(const SegmentConfig& segment, const RowLayout::Segment& layout);

class RowUpgrade {
 public:
  // Upgrades rows in the first form that were saved after `steps` steps of their table. In today's
  // form they have `layout`.
  RowUpgrade(const TableConfig& config, const RowLayout& layout, int64_t steps);

  size_t first_floats() const { return first_floats_; }  // of a row in the first form
  // `first` is [first_floats()], `row` [layout.num_floats()]; they do not overlap.
  void Upgrade(const float* first, float* row) const;

 private:
  struct Copy {
    size_t from, to, floats;
  };
  // Floats [from, from + dim) are what each weight has paid. What every weight owes follows.
  struct Debts {
    size_t from, to, dim;
  };

  const int64_t steps_;
  size_t first_floats_;
  std::vector<Copy> copies_;
  std::vector<Debts> debts_;
  std::vector<size_t> last_steps_;  // places in the upgraded row
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_FORM_H_
