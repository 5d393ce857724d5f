#include "nn_worker/rank/part_pipeline.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace satrap {

PartPipeline::PartPipeline(std::unique_ptr<RequestPolicy> policy, StalenessPermits* permits,
                           RequestFunction request, std::function<void()> on_change)
    : policy_(std::move(policy)),
      permits_(permits),
      request_(std::move(request)),
      on_change_(std::move(on_change)) {}

void PartPipeline::RequestParts() {
  while (!no_more_requests()) {
    absl::optional<StalenessPermit> permit = permits_->TryTake();
    if (!permit.has_value()) return;
    const PartRequest request = *policy_->NextRequest();
    const uint64_t number = next_number_++;
    // Every other permit in use belongs to a part whose push this Lookup may miss.
    slots_.push_back(Slot{number, request, *std::move(permit), permits_->in_use() - 1});
    request_(request, [this, number](PartInput input) { OnAnswer(number, std::move(input)); });
  }
}

void PartPipeline::OnAnswer(uint64_t number, PartInput input) {
  const auto slot = Find(number);
  CHECK(slot->state == State::kRequested);
  const NextBatchAnswerHeader::Result result = input.header.result();
  policy_->OnAnswer(slot->request, result, input.header.part().last_of_lane());
  if (result == NextBatchAnswerHeader::PART) {
    slot->state = State::kHeld;
    slot->input = std::move(input);
  } else {
    // No Lookup was made for this request, so its permit may return out of order.
    slots_.erase(slot);
  }
  on_change_();
}

absl::optional<PartPipeline::TakenPart> PartPipeline::Take() {
  const auto slot = std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) {
    return s.state == State::kRequested || s.state == State::kHeld;
  });
  // An unanswered request holds back the parts after it. If one of these parts were trained first,
  // the Lookup of the earlier part would miss the push of that part, too, which is beyond the
  // bound.
  if (slot == slots_.end() || slot->state == State::kRequested) return absl::nullopt;
  slot->state = State::kTaken;
  return TakenPart{slot->number, slot->request.worker, slot->staleness, std::move(slot->input)};
}

// Pushes are answered in any order, by different workers. A permit that returned before an older
// one would let the next Lookup miss more than the last capacity - 1 pushes.
void PartPipeline::Release(uint64_t number) {
  const auto slot = Find(number);
  CHECK(slot->state == State::kTaken);
  slot->state = State::kReleased;
  while (!slots_.empty() && slots_.front().state == State::kReleased) slots_.pop_front();
}

std::deque<PartPipeline::Slot>::iterator PartPipeline::Find(uint64_t number) {
  const auto slot = std::find_if(slots_.begin(), slots_.end(),
                                 [number](const Slot& s) { return s.number == number; });
  CHECK(slot != slots_.end()) << "slot " << number << " is not in the pipeline";
  return slot;
}

}  // namespace satrap
