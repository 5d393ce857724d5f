// Converts rows that another run has saved to rows of this run's table. The values are kept. The
// state of a segment is kept if the kind of optimizer is the same; otherwise the state starts anew.
//
// Step numbers change, because this run counts its steps from 0. The step numbers of l2_mode
// TOUCHED start anew. A state that ages (semantics GLOBAL, sgd_l1) has a last step. This is
// renumbered so that it lies as many steps before this run's first step as it lay before the end of
// the other run. If this run's rows keep no last step for such a state, the state is aged to the
// end of the other run with this run's constants.
//
// If an older build has saved the rows, they are also converted to the form that this build uses
// (row_form.h). This holds for rows of the run itself, too.
//
// Thread-safe: constant after construction.

#ifndef SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_CONVERSION_H_
#define SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_CONVERSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "embedding_ps/checkpoint/row_file.h"
#include "embedding_ps/checkpoint/row_form.h"
#include "embedding_ps/table/embedding_table.h"

namespace satrap {

class RowConversion {
 public:
  // Whether rows saved by a table with this fingerprint must be converted before `table` can hold
  // them.
  static bool IsNeeded(const EmbeddingTable& table, uint64_t fingerprint);
  // The conversion of rows that were saved by a table with this id and fingerprint, after `steps`
  // steps of the table itself (those in which it was not frozen). nullopt if there is none: the
  // names or dims of the segments differ. A manifest does not list the segments of a table, so
  // combinations of optimizers are tried, with both semantics, until a combination gives the
  // fingerprint. With more than 3 segments, only combinations with the same optimizer in all
  // segments are tried.
  static absl::optional<RowConversion> Find(const EmbeddingTable& table, uint32_t saved_id,
                                            uint64_t fingerprint, uint64_t steps);

  // The conversion of `table`'s own rows in the first form (row_form.h), which were saved after
  // `steps` steps of the table, either by this run or by the run that is being evaluated. nullopt
  // if the fingerprint is not that of the first form.
  static absl::optional<RowConversion> OfFirstForm(const EmbeddingTable& table,
                                                   uint64_t fingerprint, uint64_t steps);

  // The format of the saved rows.
  const RowFormat& format() const { return format_; }
  // `saved` is [rows, format().num_floats]; the result is [rows, table.layout().num_floats()].
  std::vector<float> Convert(absl::Span<const float> saved) const;

 private:
  struct Copy {
    size_t from, to, floats;  // within a row
  };
  struct Ageing {
    std::shared_ptr<const SparseOptimizer> optimizer;
    size_t last_step;      // in the saved row
    size_t state, floats;  // in the converted row
  };

  // `layout` is the layout that this build gives to the rows of the table `saved`.
  void SetFormat(const TableConfig& saved, const RowLayout& layout, uint64_t fingerprint,
                 uint64_t steps);
  // Copies the state of a segment. Both tables keep the same kind of state for it.
  void CopyState(const SegmentConfig& segment, const RowLayout::Segment& from,
                 bool from_has_last_step, const RowLayout::Segment& to);

  RowFormat format_;
  absl::optional<RowUpgrade> upgrade_;  // applied to the saved rows first
  size_t from_floats_ = 0;              // of a saved row, once upgraded
  std::vector<float> initial_;          // a row with new states, before anything is copied
  std::vector<Copy> copies_;
  std::vector<Ageing> ageing_;
  std::vector<size_t> last_steps_;  // places, in a converted row, of steps that are renumbered
  int64_t steps_ = 0;               // steps that the other run had made
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_CONVERSION_H_
