#include "nn_worker/rank/part_line.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace satrap {

PartLine::PartLine(std::unique_ptr<AskPolicy> policy, StalenessPermits* permits, AskFunction ask,
                   std::function<void()> on_change)
    : policy_(std::move(policy)),
      permits_(permits),
      ask_(std::move(ask)),
      on_change_(std::move(on_change)) {}

void PartLine::AskWithFreePermits() {
  while (!may_not_ask()) {
    absl::optional<StalenessPermit> permit = permits_->TryTake();
    if (!permit.has_value()) return;
    const Ask ask = *policy_->NextAsk();
    const uint64_t number = next_number_++;
    places_.push_back(Place{number, ask, *std::move(permit), permits_->in_use() - 1});
    ask_(ask, [this, number](PartInput input) { OnAnswer(number, std::move(input)); });
  }
}

void PartLine::OnAnswer(uint64_t number, PartInput input) {
  const auto place = Find(number);
  CHECK(place->state == State::kAsked);
  const NextBatchAnswerHeader::Result result = input.header.result();
  policy_->OnAnswer(place->ask, result, input.header.part().last_of_lane());
  if (result == NextBatchAnswerHeader::PART) {
    place->state = State::kHeld;
    place->input = std::move(input);
  } else {
    // No Lookup was made for it, so its permit may return out of order.
    places_.erase(place);
  }
  on_change_();
}

absl::optional<PartLine::TakenPart> PartLine::Take() {
  const auto place = std::find_if(places_.begin(), places_.end(), [](const Place& p) {
    return p.state == State::kAsked || p.state == State::kHeld;
  });
  if (place == places_.end() || place->state == State::kAsked) return absl::nullopt;
  place->state = State::kTaken;
  return TakenPart{place->number, place->ask.worker, place->staleness, std::move(place->input)};
}

void PartLine::Release(uint64_t number) {
  const auto place = Find(number);
  CHECK(place->state == State::kTaken);
  place->state = State::kReleased;
  while (!places_.empty() && places_.front().state == State::kReleased) places_.pop_front();
}

std::deque<PartLine::Place>::iterator PartLine::Find(uint64_t number) {
  const auto place = std::find_if(places_.begin(), places_.end(),
                                  [number](const Place& p) { return p.number == number; });
  CHECK(place != places_.end()) << "place " << number << " is not in the line";
  return place;
}

}  // namespace satrap
