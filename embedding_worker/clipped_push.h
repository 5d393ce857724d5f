// The second half of a push if JobConfig.gradient_clip_norm is set: adds up the sums of squares
// that the PSs have returned for its Updates, and makes the PSs apply the step with the resulting
// factor.
//
// Every embedding worker with a part of the step adds up the same numbers, exactly, so all of them
// send the same factor, whatever the number of PSs.

#ifndef SATRAP_EMBEDDING_WORKER_CLIPPED_PUSH_H_
#define SATRAP_EMBEDDING_WORKER_CLIPPED_PUSH_H_

#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/rpc/rpc.h"
#include "embedding_worker/ps_fan_out.h"
#include "proto/hot.pb.h"

namespace satrap {

// `answers` are the answers of all PSs to the Updates of the push `push` in the finite step `step`.
// When every PS has applied the step, `done` receives the sum of squares of all gradients of the
// step. `done` receives INVALID_ARGUMENT if an answer has no squares, or an error of PsFanOut. `ps`
// is not owned. REQUIRES: clip_norm > 0
void ClipStep(PsFanOut* ps, float clip_norm, const CallId& push, const StepHeader& step,
              const std::vector<rpc::Message>& answers,
              absl::AnyInvocable<void(absl::StatusOr<double>)> done);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_CLIPPED_PUSH_H_
