// A ClippedStep holds an ordered step that has been summed but not yet applied, because its clip
// factor is not yet known (JobConfig.gradient_clip_norm). All Updates of the step have been
// answered with the squares of its gradients; ApplyStep brings the factor. Each embedding worker
// that sent an Update of the step also sends ApplyStep. The first ApplyStep applies the step; the
// others are answered once it is applied.
//
//   waiting --first ApplyStep--> being applied --End--> applied --Begin--> waiting for the next
//
// Not thread-safe.

#ifndef SATRAP_EMBEDDING_PS_CLIPPED_STEP_H_
#define SATRAP_EMBEDDING_PS_CLIPPED_STEP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/rpc/call_receiver.h"
#include "embedding_ps/step_collector.h"

namespace satrap {

class ClippedStep {
 public:
  // Makes `sum` wait for its factor. REQUIRES: no step waits or is being applied
  void Begin(StepSum sum);

  // What the caller must do after an ApplyStep.
  struct Action {
    absl::optional<StepSum> apply;  // apply this now, then call End
    bool answer = false;            // the step is applied: answer this call now
  };
  // Handles an ApplyStep. INVALID_ARGUMENT, with nothing changed, if `step` is not the newest step
  // that was given to Begin, if the factor is not in [0, 1], or if it differs from the factor of
  // the step's first ApplyStep.
  absl::StatusOr<Action> Add(uint64_t step, float factor, const rpc::PendingAnswer& call);

  // Notes that the step is applied. Returns the ApplyStep calls that have waited for this.
  std::vector<rpc::PendingAnswer> End();

 private:
  absl::optional<StepSum> waiting_;
  bool applying_ = false;
  absl::optional<uint64_t> step_;  // the step that waits, or the last one that did
  float factor_ = 0;               // of `step_`, once it no longer waits
  std::vector<rpc::PendingAnswer> calls_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_CLIPPED_STEP_H_
