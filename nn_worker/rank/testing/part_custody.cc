#include "nn_worker/rank/testing/part_custody.h"

#include "common/base/check.h"

namespace satrap {

void PartCustody::HandOut(int rank, const FakePart& part, absl::optional<uint64_t> step) {
  CHECK(handed_out_.insert(NameOf(part.id)).second || orders_->allow_twice) << NameOf(part.id);
  if (part.id.stream() != TRAIN_STREAM) return CheckNoneIsHeld();
  CHECK(outstanding_[rank] < MayHold()) << "rank " << rank << " is too stale";
  ++outstanding_[rank];
  if (!step.has_value()) return;
  for (const auto& [pushed, count] : pushes_of_step_) {
    CHECK(pushed < *step && count == options_.num_ranks) << pushed;
  }
  CHECK(options_.position.step() + pushes_of_step_.size() == *step);
}

void PartCustody::End(int rank, const FakePart& part) {
  if (part.id.stream() != TRAIN_STREAM) return;
  --outstanding_[rank];
  ended_names_.insert(NameOf(part.id));
  if (part.samples > 0 && !orders_->allow_twice) {
    CHECK_OK(ended_.Add(part.id.epoch(), ProvenanceOf(part)));
  }
}

void PartCustody::CheckNoneIsHeld() const {
  for (const int outstanding : outstanding_) CHECK(outstanding == 0);
}

int PartCustody::MayHold() const {
  const uint64_t counted = options_.position.step() + record_->CountedSteps().size();
  return counted >= options_.staleness_warmup_steps ? options_.max_staleness : 1;
}

}  // namespace satrap
