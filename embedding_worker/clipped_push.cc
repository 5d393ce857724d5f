#include "embedding_worker/clipped_push.h"

#include <utility>

#include "common/numeric/clip_factor.h"
#include "common/numeric/exact_sum.h"
#include "common/rpc/squares.h"

namespace satrap {

void ClipStep(PsFanOut* ps, float clip_norm, const CallId& push, const StepHeader& step,
              const std::vector<rpc::Message>& answers,
              absl::AnyInvocable<void(absl::StatusOr<double>)> done) {
  ExactSum sum;
  sum.Add(step.dense_squares());
  for (const rpc::Message& answer : answers) {
    const absl::Status added = rpc::AddSquares(answer, &sum);
    if (!added.ok()) return done(added);
  }
  const double squares = sum.Rounded();
  ApplyStepHeader header;
  header.set_step(step.step());
  header.set_clip_factor(ClipFactor(clip_norm, squares));
  ps->ApplyStep(push, header,
                [squares, done = std::move(done)](
                    const absl::StatusOr<std::vector<rpc::Message>>& applied) mutable {
                  if (!applied.ok()) return done(applied.status());
                  done(squares);
                });
}

}  // namespace satrap
