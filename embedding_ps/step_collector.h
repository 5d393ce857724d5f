// A StepCollector gathers the parts of ordered steps. A step is complete when all its parts have
// arrived. Its gradients are then summed in part order, so the sums have the same bits for any
// order of arrival and any number of embedding PSs.
//
// Not thread-safe.

#ifndef SATRAP_EMBEDDING_PS_STEP_COLLECTOR_H_
#define SATRAP_EMBEDDING_PS_STEP_COLLECTOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/rpc/call_receiver.h"
#include "embedding_ps/request/decoded_update.h"
#include "embedding_ps/request/table_ownership.h"
#include "proto/hot.pb.h"

namespace satrap {

class StepCollector {
 public:
  // A part's Update, and the call to answer.
  struct Part {
    DecodedUpdate update;
    rpc::PendingAnswer call;
  };

  // The first step to collect is `first_step`. REQUIRES: num_parts >= 1
  explicit StepCollector(int num_parts, uint64_t first_step = 0)
      : parts_(num_parts), step_(first_step) {}

  // The step that is being collected. TakeIfComplete has returned all earlier steps.
  uint64_t step() const { return step_; }
  // The number of parts of step() that have arrived.
  int num_parts() const { return arrived_; }

  // Adds a part of step(). INVALID_ARGUMENT, with nothing changed, if the header names another
  // step, if the part does not exist or has already arrived, or if the normalizer, finite flag,
  // learning-rate factor or dense squares differ from those of the other parts.
  absl::Status Add(const StepHeader& header, uint32_t part_index, Part part);

  // If all parts have arrived, returns them in part order and moves on to the next step. Otherwise
  // returns nullopt.
  struct Complete {
    StepHeader header;
    std::vector<Part> parts;
  };
  absl::optional<Complete> TakeIfComplete();

 private:
  std::vector<absl::optional<Part>> parts_;
  int arrived_ = 0;
  StepHeader header_;  // of the first part that arrived
  uint64_t step_;
};

// The sum of one table's gradients over `parts`, added in the order of the parts. Keys are in the
// order of their first occurrence.
struct SummedTable {
  int table = 0;
  std::vector<uint64_t> keys;
  std::vector<float> gradients;         // [keys.size(), row_values]
  std::vector<uint32_t> sample_counts;  // empty unless every part with keys of the table has them
};
std::vector<SummedTable> SumParts(const std::vector<StepCollector::Part>& parts,
                                  const TableOwnership& ownership);

// A complete step with its gradients. The spans in `tables` point into `parts` or `sums`, and stay
// valid when the StepSum is moved.
struct StepSum {
  StepHeader header;
  std::vector<StepCollector::Part> parts;
  std::vector<SummedTable> sums;
  std::vector<TableGradient> tables;  // none if the step is not finite
};
// Sums the parts of a step. A single part needs no sums, so its gradients stay where they arrived.
// A part may count 0 samples for a key, because only one of the parts that share candidates counts
// them. INVALID_ARGUMENT if a table needs sample counts but the counts of a key add up to 0 over
// all parts.
absl::StatusOr<StepSum> SumStep(StepCollector::Complete step, const TableOwnership& ownership);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_STEP_COLLECTOR_H_
