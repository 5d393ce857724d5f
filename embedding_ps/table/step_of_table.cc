#include "embedding_ps/table/step_of_table.h"

#include "common/base/check.h"

namespace satrap {

StepOfTable::StepOfTable(EmbeddingTable* table, const StepContext& context, ExactSum* squares)
    : table_(*table),
      normalizer_(context.normalizer),
      takes_step_(squares == nullptr),
      step_(table->updater_, context, table->OwnStep(context.step), squares) {}

int64_t StepOfTable::Add(absl::Span<const uint64_t> keys, absl::Span<const float> gradients,
                         absl::Span<const uint32_t> sample_counts) {
  CHECK(gradients.size() == keys.size() * table_.layout().num_values()) << gradients.size();
  CHECK(sample_counts.size() == keys.size() ||
        (sample_counts.empty() && !table_.needs_sample_counts()))
      << sample_counts.size();
  CHECK(normalizer_ > 0) << normalizer_;
  if (table_.config().frozen()) return takes_step_ ? table_.CreateRows(keys) : 0;
  if (!takes_step_ && !table_.updater_.is_clipped()) return 0;
  return table_.VisitRows(keys, gradients, sample_counts, &step_);
}

void StepOfTable::FinishIdleRows(int shard) {
  CHECK(has_idle_rows()) << table_.config().name();
  table_.shards_[static_cast<size_t>(shard)]->VisitIdleRows(&step_);
}

}  // namespace satrap
