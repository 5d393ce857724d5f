// A PartView is an answer to NextBatch, checked and ready for use: every count, offset and row
// index in it is within bounds.
//
// It refers to the payload of the PartInput that it was made from, which must outlive it.

#ifndef SATRAP_NN_WORKER_TRAINER_PART_VIEW_H_
#define SATRAP_NN_WORKER_TRAINER_PART_VIEW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/batch/pooling.h"
#include "common/rpc/payload.h"
#include "nn_worker/rank/part_messages.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"

namespace satrap {

struct PartView {
  struct Table {
    size_t num_rows = 0;
    rpc::WireValues values;  // [num_rows, row_values]
  };
  struct Feature {
    RowIndices indices;      // pooled here: rows of the feature's table
    rpc::WireValues pooled;  // pooled at the worker: [samples, row_values]
  };

  // Set in parts of the train stream if the job has ModelConfig.candidates.
  struct Candidates {
    RowIndices indices;                      // one row of the candidate feature's table each
    absl::Span<const uint32_t> positives;    // [samples]: the row of each sample's own item
    absl::Span<const float> log_q;           // [candidates]
    absl::Span<const float> positive_log_q;  // [samples]
  };

  absl::Span<const uint8_t> payload;  // which the others refer to
  size_t samples = 0;
  uint64_t first_sample = 0;  // index in the global batch
  WireDtype dtype = F32;
  absl::Span<const float> numeric;    // [samples, numerics]
  absl::Span<const float> labels;     // [samples, LABEL columns]
  absl::Span<const uint8_t> mask;     // [samples, LABEL columns]; empty: all labels are known
  absl::Span<const float> weights;    // [samples]; empty: all 1
  absl::Span<const uint64_t> groups;  // [samples]; empty: not known
  absl::Span<const int64_t> times;    // [samples], ms since 1970; empty: not known
  std::vector<Table> tables;          // by index in PartLayout.tables; empty where none are sent
  std::vector<Feature> features;      // by index in PartLayout.features
  Candidates candidates;              // empty if the part has none
};

// INVALID_ARGUMENT, naming the field, if the answer is not one for this job, has more than
// `max_samples` samples, or sections that do not fit their counts.
absl::StatusOr<PartView> ReadPart(const PartLayout& layout, size_t max_samples,
                                  const PartInput& input);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_PART_VIEW_H_
