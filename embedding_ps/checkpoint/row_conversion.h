// How the rows of a table that another run has saved become rows of this run's: values are taken,
// and so is the state of each segment that has the same kind of optimizer; the other states begin
// anew. So do the step numbers of l2_mode TOUCHED, because the steps of this run are counted from
// 0. The last steps of states that age (semantics GLOBAL, sgd_l1) become as far behind this run's
//    steps as they were
// after the end of the other run. A state that this run's rows keep no last step of is aged, by
// this run's constants, to what it was at that end. And how the rows that an older build has
// saved become rows of today (row_form.h), for any reader.
//
// Thread-safe: constant once made.

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
  // Whether rows that were saved by a table with this fingerprint are not yet those of `table`.
  static bool IsNeeded(const EmbeddingTable& table, uint64_t fingerprint);
  // Of rows that were saved by a table with this id and fingerprint, after `steps` steps of its own
  // (those in which it was not frozen). A manifest
  // does not list the segments of a table, so all combinations of optimizers are tried, with both
  // semantics, until one has the fingerprint; with more than 3 segments, those in which all
  // segments have the same. nullopt if none has: names or dims of the segments are others.
  static absl::optional<RowConversion> Find(const EmbeddingTable& table, uint32_t saved_id,
                                            uint64_t fingerprint, uint64_t steps);

  // Of rows of this run, or of one that is scored, saved in the first form of `table`'s own rows
  // after `steps` of its steps. nullopt: they are others.
  static absl::optional<RowConversion> OfFirstForm(const EmbeddingTable& table,
                                                   uint64_t fingerprint, uint64_t steps);

  // Of the saved rows.
  const RowFormat& format() const { return format_; }
  // `saved` is [rows, format().num_floats]; the answer [rows, table.layout().num_floats()].
  std::vector<float> Convert(absl::Span<const float> saved) const;

 private:
  struct Copy {
    size_t from, to, floats;  // within a row
  };
  struct Ageing {
    std::shared_ptr<const SparseOptimizer> optimizer;
    size_t last_step;      // in the saved row
    size_t state, floats;  // in the answer's
  };

  // `layout`: of rows of `saved` in the form of today.
  void SetFormat(const TableConfig& saved, const RowLayout& layout, uint64_t fingerprint,
                 uint64_t steps);
  // Of a segment whose states are alike.
  void CopyState(const SegmentConfig& segment, const RowLayout::Segment& from,
                 bool from_has_last_step, const RowLayout::Segment& to);

  RowFormat format_;
  absl::optional<RowUpgrade> upgrade_;  // of the saved rows, before all else
  size_t from_floats_ = 0;              // of a saved row, once upgraded
  std::vector<float> initial_;          // a row: its states are those of a new row
  std::vector<Copy> copies_;
  std::vector<Ageing> ageing_;
  std::vector<size_t> last_steps_;  // places in the answer's rows of steps that are counted anew
  int64_t steps_ = 0;               // that the other run had made
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_CONVERSION_H_
