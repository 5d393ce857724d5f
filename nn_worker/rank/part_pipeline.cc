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
    // This part's Lookup may miss the pushes of the parts that hold the other permits in use.
    entries_.push_back(Entry{number, request, *std::move(permit), permits_->in_use() - 1});
    request_(request, [this, number](PartInput input) { OnAnswer(number, std::move(input)); });
  }
}

void PartPipeline::OnAnswer(uint64_t number, PartInput input) {
  const auto entry = Find(number);
  CHECK(entry->state == State::kRequested);
  const NextBatchAnswerHeader::Result result = input.header.result();
  policy_->OnAnswer(entry->request, result, input.header.part().last_of_lane());
  if (result == NextBatchAnswerHeader::PART) {
    entry->state = State::kReceived;
    entry->input = std::move(input);
  } else {
    // No Lookup was made for this request, so the request's permit can return out of order.
    entries_.erase(entry);
  }
  on_change_();
}

absl::optional<PartPipeline::TakenPart> PartPipeline::Take() {
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [](const Entry& s) {
    return s.state == State::kRequested || s.state == State::kReceived;
  });
  // An unanswered request holds back the parts after it. If a later part were trained first, the
  // Lookup of the earlier part could also miss the push of the later part, and so miss more pushes
  // than the limit allows.
  if (entry == entries_.end() || entry->state == State::kRequested) return absl::nullopt;
  entry->state = State::kTaken;
  return TakenPart{entry->number, entry->request.worker, entry->staleness, std::move(entry->input)};
}

// Pushes are answered in any order, by different workers. If a permit returned before an older
// permit, the next Lookup could miss more than the last capacity - 1 pushes.
void PartPipeline::Release(uint64_t number) {
  const auto entry = Find(number);
  CHECK(entry->state == State::kTaken);
  entry->state = State::kReleased;
  while (!entries_.empty() && entries_.front().state == State::kReleased) entries_.pop_front();
}

std::deque<PartPipeline::Entry>::iterator PartPipeline::Find(uint64_t number) {
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [number](const Entry& s) { return s.number == number; });
  CHECK(entry != entries_.end()) << "entry " << number << " is not in the pipeline";
  return entry;
}

}  // namespace satrap
