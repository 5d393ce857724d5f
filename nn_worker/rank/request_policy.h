// A RequestPolicy decides which part a rank requests next, and from which embedding worker. It
// covers one pass over one stream: an epoch of TRAIN_STREAM, or a pass over a validation or test
// set.
//
// MakeAnyWorkerRequests requests any part of any worker. Workers that have not ended are tried in
// turn, at first each worker once without waiting. Then, until a part comes, a request waits at
// each worker for `park_ms`, and for up to four times as long if no part has come for a while.
// MakeOrderedRequests requests this rank's part of the next batch, in the order that all ranks
// compute (ordered_schedule.h), from the worker to which the part was sent
// (common/batch/part_placement.h). REQUIRES: one request at a time
//
// Not thread-safe.

#ifndef SATRAP_NN_WORKER_RANK_REQUEST_POLICY_H_
#define SATRAP_NN_WORKER_RANK_REQUEST_POLICY_H_

#include <cstdint>
#include <memory>

#include "absl/types/optional.h"
#include "nn_worker/rank/schedule/ordered_schedule.h"
#include "proto/hot.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// What a NextBatch call requests, and from which worker.
struct PartRequest {
  int worker = 0;
  Stream stream = TRAIN_STREAM;
  uint32_t epoch = 0;
  uint32_t wait_ms = 0;
  absl::optional<PartId> wanted;  // in an ordered stream
};

class RequestPolicy {
 public:
  virtual ~RequestPolicy() = default;

  // Returns the next request; nothing once the policy is exhausted.
  virtual absl::optional<PartRequest> NextRequest() = 0;

  // Records the answer to a request. If the result is PART, `last_of_lane` is the value that came
  // with the part.
  virtual void OnAnswer(const PartRequest& request, NextBatchAnswerHeader::Result result,
                        bool last_of_lane) = 0;

  // True if no request can bring a part any more: every worker has ended, or the order is at its
  // end.
  virtual bool exhausted() const = 0;

  // For ordered requests: sets the lanes of `position`. REQUIRES: every request is answered
  virtual void FillPosition(RunPosition* position) const = 0;
};

// REQUIRES: num_workers >= 1, park_ms >= 1
std::unique_ptr<RequestPolicy> MakeAnyWorkerRequests(Stream stream, uint32_t epoch, int num_workers,
                                                     uint32_t park_ms);

// Continues from `schedule`. REQUIRES: num_workers >= 1
std::unique_ptr<RequestPolicy> MakeOrderedRequests(uint32_t epoch, int num_workers,
                                                   OrderedSchedule schedule, int rank);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_REQUEST_POLICY_H_
