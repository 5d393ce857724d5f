// An AskPolicy says which embedding worker a rank asks next, and for what, in one pass of one
// stream (an epoch of TRAIN_STREAM, or a pass over a validation or test set).
//
// AnyWorkerAsks: any part, of any worker. The workers that have not ended are tried in turn: first
// each of them once without waiting, then, as long as no part comes, `park_ms` at one after
// another.
// OrderedAsks: the part of this rank in the order that all ranks compute (ordered_schedule.h), of
// the worker it was sent to (common/part_placement.h). REQUIRES: one ask at a time.
//
// Not thread-safe.

#ifndef SATRAP_NN_WORKER_RANK_ASK_POLICY_H_
#define SATRAP_NN_WORKER_RANK_ASK_POLICY_H_

#include <cstdint>
#include <memory>

#include "absl/types/optional.h"
#include "nn_worker/rank/ordered_schedule.h"
#include "proto/hot.pb.h"

namespace satrap {

struct Ask {
  int worker = 0;
  Stream stream = TRAIN_STREAM;
  uint32_t epoch = 0;
  uint32_t wait_ms = 0;
  absl::optional<PartId> wanted;  // ordered
};

class AskPolicy {
 public:
  virtual ~AskPolicy() = default;

  // The next ask; nothing once exhausted.
  virtual absl::optional<Ask> NextAsk() = 0;

  // What became of an ask. `last_of_lane` is the part's, if the result is PART.
  virtual void OnAnswer(const Ask& ask, NextBatchAnswerHeader::Result result,
                        bool last_of_lane) = 0;

  // No ask can bring a part any more: every worker has ended, or the order is at its end.
  virtual bool exhausted() const = 0;
};

// REQUIRES: num_workers >= 1, park_ms >= 1
std::unique_ptr<AskPolicy> MakeAnyWorkerAsks(Stream stream, uint32_t epoch, int num_workers,
                                             uint32_t park_ms);

// REQUIRES: num_workers >= 1, lanes >= 1
std::unique_ptr<AskPolicy> MakeOrderedAsks(uint32_t epoch, int num_workers, int lanes, int rank);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_ASK_POLICY_H_
