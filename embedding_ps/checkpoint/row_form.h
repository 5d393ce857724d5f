// The form of rows in cuts of older builds (RowForm::kFirst, common/checkpoint/manifest.h), and the
// conversion of such a row to the form that this build uses:
//
// - For each segment, sgd_l1 kept dim + 2 floats: what each weight had paid, the total that every
//   weight owed, and the last step. Now it keeps 2 dim + 1 floats: for each weight a debt that
//   applies above 0 and a debt that applies below 0 (sgd_l1.h), and the last step.
// - A last step was counted modulo 2^24. Now it is encoded as in embedding_ps/optimizer/row_step.h.
//
// Thread-safe: constant after construction.

#ifndef SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_FORM_H_
#define SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_FORM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "embedding_ps/table/row_layout.h"
#include "proto/table.pb.h"

namespace satrap {

// The parts of a segment's state, in their order. `optimizer` is the number of the optimizer's
// floats.
struct StateFloats {
  int optimizer;
  bool optimizer_has_last_step;  // whether the last of `optimizer` is the row's last step
  bool has_l2_step;              // whether one more follows: l2_mode is TOUCHED
  bool has_last_step;            // whether the last float is the last step (semantics GLOBAL)
};
// REQUIRES: `segment` is validated; `layout` is its place in a table's layout
StateFloats StateFloatsOf(const SegmentConfig& segment, const RowLayout::Segment& layout);

class RowUpgrade {
 public:
  // Converts rows in the first form that were saved after `steps` steps of their table. `layout` is
  // their layout after the conversion.
  RowUpgrade(const TableConfig& config, const RowLayout& layout, int64_t steps);

  size_t first_floats() const { return first_floats_; }  // of a row in the first form
  // `first` is [first_floats()], `row` is [layout.num_floats()]; they must not overlap.
  void Upgrade(const float* first, float* row) const;

 private:
  struct Copy {
    size_t from, to, floats;
  };
  // Floats [from, from + dim) of a row in the first form are what each weight has paid. The float
  // after them is the total that every weight owes.
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
