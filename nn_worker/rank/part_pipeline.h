// The parts that a rank has requested in one pass and not released yet, in the order of their
// permits.
//
// Each entry of the pipeline holds a permit, from the request until the part is released:
//
//   requested -> received -> taken -> released
//       \-> the worker has no part now, or none any more: the entry and its permit are gone
//
// Parts are taken in order: a part that has arrived waits until every earlier request is answered.
// Permits of released parts return in order too: a released entry stays until all entries before it
// are gone. So the Lookup of a new request can miss the pushes of the entries that are still in the
// pipeline, and no others.
//
// Not thread-safe: everything happens on one serial executor. REQUIRES: empty() when destroyed,
// unless the run has failed

#ifndef SATRAP_NN_WORKER_RANK_PART_PIPELINE_H_
#define SATRAP_NN_WORKER_RANK_PART_PIPELINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/types/optional.h"
#include "nn_worker/rank/part_messages.h"
#include "nn_worker/rank/request_policy.h"
#include "nn_worker/rank/staleness_permit.h"

namespace satrap {

class PartPipeline {
 public:
  // Sends a request; `answered` runs once, on the serial executor, never inside the call.
  using RequestFunction =
      std::function<void(const PartRequest&, absl::AnyInvocable<void(PartInput)> answered)>;

  struct TakenPart {
    uint64_t entry = 0;  // for Release
    int worker = 0;
    // The number of other parts that had been requested but not yet released when this part was
    // requested.
    int staleness = 0;
    PartInput input;
  };

  // After each answer, the pipeline calls `on_change` when it has done everything else. `permits`
  // is not owned.
  PartPipeline(std::unique_ptr<RequestPolicy> policy, StalenessPermits* permits,
               RequestFunction request, std::function<void()> on_change);

  PartPipeline(const PartPipeline&) = delete;
  PartPipeline& operator=(const PartPipeline&) = delete;

  // Requests parts until no permit is free. Does nothing if no_more_requests().
  void RequestParts();
  void StopRequests() { stopped_ = true; }
  void ResumeRequests() { stopped_ = false; }

  // Takes the oldest part that is not taken yet. Returns nullopt if there is none, or if a request
  // before it is not answered.
  absl::optional<TakenPart> Take();
  // Ends a taken part: its permit returns when the entries before it are gone.
  void Release(uint64_t entry);

  // True if no request will be made: requests were stopped, or no worker has a part left.
  bool no_more_requests() const { return stopped_ || policy_->exhausted(); }
  bool exhausted() const { return policy_->exhausted(); }
  // Calls RequestPolicy::FillPosition. REQUIRES: empty()
  void FillPosition(RunPosition* position) const { policy_->FillPosition(position); }
  // True if nothing is requested, received or taken, and all permits of this pipeline are back.
  bool empty() const { return entries_.empty(); }

 private:
  enum class State { kRequested, kReceived, kTaken, kReleased };
  struct Entry {
    uint64_t number;
    PartRequest request;
    StalenessPermit permit;
    int staleness;
    State state = State::kRequested;
    PartInput input = {};
  };

  void OnAnswer(uint64_t number, PartInput input);
  std::deque<Entry>::iterator Find(uint64_t number);

  const std::unique_ptr<RequestPolicy> policy_;
  StalenessPermits* const permits_;
  const RequestFunction request_;
  const std::function<void()> on_change_;
  std::deque<Entry> entries_;
  uint64_t next_number_ = 0;
  bool stopped_ = false;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_PART_PIPELINE_H_
