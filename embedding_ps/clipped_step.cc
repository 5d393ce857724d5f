#include "embedding_ps/clipped_step.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace satrap {

void ClippedStep::Begin(StepSum sum) {
  CHECK(!waiting_.has_value() && !applying_) << "step " << *step_ << " is not applied";
  step_ = sum.header.step();
  waiting_ = std::move(sum);
}

absl::StatusOr<ClippedStep::Action> ClippedStep::Add(uint64_t step, float factor,
                                                     const rpc::PendingAnswer& call) {
  if (step_ != step) {
    return absl::InvalidArgumentError(
        absl::StrCat("step: step ", step, " does not wait for its clip_factor"));
  }
  if (!(factor >= 0 && factor <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("clip_factor: must be in [0, 1], got ", factor));
  }
  if (!waiting_.has_value() && factor != factor_) {
    return absl::InvalidArgumentError(absl::StrCat("clip_factor: got ", factor, " for step ", step,
                                                   ", which was already applied with ", factor_));
  }
  Action action;
  if (waiting_.has_value()) {
    factor_ = factor;
    applying_ = true;
    action.apply = std::exchange(waiting_, absl::nullopt);
  }
  action.answer = !applying_;
  if (applying_) calls_.push_back(call);
  return action;
}

std::vector<rpc::PendingAnswer> ClippedStep::End() {
  CHECK(applying_);
  applying_ = false;
  return std::exchange(calls_, {});
}

}  // namespace satrap
