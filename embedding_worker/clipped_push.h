// The second half of a push with JobConfig.gradient_clip_norm: adds up the squares with which the
// PSs have answered its Updates, and has them apply the step with the resulting factor.
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

// `answers` are those of every PS to the Updates of the push `push` in the finite step `step`.
// `done` gets the squares of all gradients of the step when every PS has applied it, or
// INVALID_ARGUMENT if an answer has no squares, or an error of PsFanOut. `ps` is not owned.
// REQUIRES: clip_norm > 0
void ClipStep(PsFanOut* ps, float clip_norm, const CallId& push, const StepHeader& step,
              const std::vector<rpc::Message>& answers,
              absl::AnyInvocable<void(absl::StatusOr<double>)> done);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_CLIPPED_PUSH_H_
