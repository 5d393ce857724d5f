// The line of parts that a rank has asked for in one pass, in the order of their permits.
//
// Each place in the line holds a permit, from the ask until the part is released:
//
//   asked -> held -> taken -> released
//     \-> the worker has nothing yet, or no more: the place and its permit are gone
//
// Parts are taken in order: one whose answer has come waits for every earlier ask to be answered.
// Permits of released parts return in order too: a released place stays until all before it are
// gone. So the Lookup of a new ask can miss the pushes of the places still in the line and no
// others.
//
// Not thread-safe: everything happens on one serial executor. REQUIRES: empty() when destroyed,
// unless the run has failed.

#ifndef SATRAP_NN_WORKER_RANK_PART_LINE_H_
#define SATRAP_NN_WORKER_RANK_PART_LINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/types/optional.h"
#include "nn_worker/rank/ask_policy.h"
#include "nn_worker/rank/staleness_permit.h"
#include "nn_worker/rank/step_trainer.h"

namespace satrap {

class PartLine {
 public:
  // Asks a worker; `answered` runs once, on the serial executor, never inside the call.
  using AskFunction = std::function<void(const Ask&, absl::AnyInvocable<void(PartInput)> answered)>;

  struct TakenPart {
    uint64_t place = 0;  // for Release
    int worker = 0;
    // Parts between their ask and their release, other than this one, when it was asked for.
    int staleness = 0;
    PartInput input;
  };

  // `on_change` runs after each answer, as the last thing that happens. `permits` is not owned.
  PartLine(std::unique_ptr<AskPolicy> policy, StalenessPermits* permits, AskFunction ask,
           std::function<void()> on_change);

  PartLine(const PartLine&) = delete;
  PartLine& operator=(const PartLine&) = delete;

  // Asks with every permit that is free, unless StopAsking was called or nothing is left to ask.
  void AskWithFreePermits();
  void StopAsking() { stopped_ = true; }
  void ResumeAsking() { stopped_ = false; }

  // The oldest part not yet taken, if every ask before it is answered.
  absl::optional<TakenPart> Take();
  // Ends a taken part.
  void Release(uint64_t place);

  // No new ask will be made: stopped, or nothing is left to ask.
  bool may_not_ask() const { return stopped_ || policy_->exhausted(); }
  bool exhausted() const { return policy_->exhausted(); }
  // Nothing is asked, held or taken, and all permits of this line are back.
  bool empty() const { return places_.empty(); }

 private:
  enum class State { kAsked, kHeld, kTaken, kReleased };
  struct Place {
    uint64_t number;
    Ask ask;
    StalenessPermit permit;
    int staleness;
    State state = State::kAsked;
    PartInput input = {};
  };

  void OnAnswer(uint64_t number, PartInput input);
  std::deque<Place>::iterator Find(uint64_t number);

  const std::unique_ptr<AskPolicy> policy_;
  StalenessPermits* const permits_;
  const AskFunction ask_;
  const std::function<void()> on_change_;
  std::deque<Place> places_;
  uint64_t next_number_ = 0;
  bool stopped_ = false;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_PART_LINE_H_
