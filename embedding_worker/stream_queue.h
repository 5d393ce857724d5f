// The StreamQueue of one stream (train, valid, test) at an embedding worker decides which parts are
// accepted, which parts wait for queue capacity or for their epoch, which request gets which part,
// and when an epoch has ended. It only makes decisions: each call adds to a Decisions what the
// owner of the queue must do.
//
//   accepted   parts of the current epoch that have not been handed to a request yet, at most
//              `queue_capacity_parts` of them: in the stream when unordered, in each (lane, part)
//              when ordered.
//   held       parts of the current epoch for which the queue is full, in order of arrival, and
//              parts of later epochs. Their PutBatch is not answered yet, so the number of calls
//              that a loader keeps open bounds them.
//   waiting    requests for which there is no part yet, in order of arrival.
//   refused    ordered requests for a part that was handed out or passed over: the parts of a
//              (lane, part) arrive in ascending order of seq, and none arrives after all end
//              markers.
//   ended      an epoch ends when each loader has sent its end marker and no part of the epoch is
//              left. Requests for this epoch are answered ENDED, and the parts held for the next
//              epoch are accepted.
//
// Not thread-safe.

#ifndef SATRAP_EMBEDDING_WORKER_STREAM_QUEUE_H_
#define SATRAP_EMBEDDING_WORKER_STREAM_QUEUE_H_

#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/rpc/call_receiver.h"
#include "embedding_worker/planned_part.h"

namespace satrap {

using rpc::PendingAnswer;

// The request of a NextBatch for a part.
struct QueuedRequest {
  PendingAnswer call;
  uint32_t epoch = 0;
  absl::optional<PartId> wanted;  // given if and only if the stream is ordered
  absl::optional<uint64_t> step;  // for the part's Lookup
};

class StreamQueue {
 public:
  // Which parts share one queue_capacity_parts. If the lanes of an ordered stream shared it, there
  // would be a deadlock: ranks wait for a part of one lane while parts of another lane fill the
  // queue.
  enum class CapacityScope { kStream, kLanePart };
  struct Options {
    bool ordered = false;
    CapacityScope capacity_scope = CapacityScope::kStream;
    int queue_capacity_parts = 8;
    int num_loaders = 1;
    // Where the stream begins. `first_seqs`, only for ordered streams, has for each lane the seq of
    // the first part that can arrive in the first epoch; kNone means that no part of the lane
    // arrives. Lanes that `first_seqs` does not list begin at 0.
    uint32_t first_epoch = 0;
    std::vector<uint64_t> first_seqs;
  };
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  struct Delivery {
    QueuedRequest request;
    std::shared_ptr<const PlannedPart> part;
  };
  struct Decisions {
    std::vector<PendingAnswer> accepted;  // PutBatches to be answered DONE
    std::vector<Delivery> deliveries;     // parts that leave the queue
    std::vector<QueuedRequest> ended;     // to be answered ENDED
    std::vector<QueuedRequest> refused;   // their part cannot come any more: INVALID_ARGUMENT
  };

  explicit StreamQueue(const Options& options) : options_(options), epoch_(options.first_epoch) {}

  // Call when a part has arrived with PutBatch `call`. INVALID_ARGUMENT, with nothing changed, if
  // the part's epoch has ended or its loader has ended that epoch. If ordered, also if the queue
  // already has this part, accepted or held, or if the part comes too late in the current epoch: if
  // it lies before the first part of its lane, or if its (lane, part) has already had this part or
  // a later one.
  absl::Status Put(const PendingAnswer& call, std::shared_ptr<const PlannedPart> part,
                   Decisions* decisions);

  // Call when the loader will send no further part of the epoch. INVALID_ARGUMENT if this was
  // called before, or the epoch is over.
  absl::Status End(uint32_t loader, uint32_t epoch, Decisions* decisions);

  // Delivers, ends or refuses the request, or makes it wait. Returns whether it waits.
  bool RequestPart(const QueuedRequest& request, Decisions* decisions);

  // Removes a waiting request. False if it does not wait (any more).
  bool Withdraw(const PendingAnswer& call);

  uint32_t epoch() const { return epoch_; }
  size_t num_accepted() const { return accepted_.size(); }
  size_t num_held() const { return held_.size(); }
  size_t num_waiting() const { return waiting_.size(); }

 private:
  struct Held {
    PendingAnswer call;
    std::shared_ptr<const PlannedPart> part;
  };

  bool HasCapacityFor(const PlannedPart& part) const;
  bool IsHere(const PartId& id) const;
  // If ordered: the lowest seq of the part's (lane, part) that can still arrive in this epoch.
  uint64_t NextSeq(const PartId& id) const;
  bool CanCome(const PartId& id) const;
  bool AllEnded() const;
  bool AcceptHeld(Decisions* decisions);
  bool Deliver(Decisions* decisions);
  bool Refuse(Decisions* decisions);
  bool EndEpoch(Decisions* decisions);
  // Accepts, delivers, refuses and ends until nothing more can be done.
  void Settle(Decisions* decisions);

  const Options options_;
  uint32_t epoch_;
  std::list<std::shared_ptr<const PlannedPart>> accepted_;  // in order of arrival
  std::list<Held> held_;
  // If ordered: the last seq accepted in this epoch plus one, by (lane, part).
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> accepted_seqs_;
  std::list<QueuedRequest> waiting_;
  std::map<uint32_t, std::set<uint32_t>> ended_loaders_;  // by epoch, from the current one on
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_STREAM_QUEUE_H_
