// The StreamQueue of one stream (train, valid, test) is the order of things at an embedding worker:
// which parts are accepted, which wait for room or for their epoch, which ask gets which part, and
// when an epoch has ended. It does nothing itself; each call adds to a Decisions what its owner
// must do.
//
//   accepted   parts of the current epoch that no ask has got. Room bounds them: `room_parts` for
//              the stream when unordered, for each (lane, part) when ordered.
//   held       parts of the current epoch for which there is no room, in order of arrival, and
//              parts of later epochs. Their PutBatch is not answered; what a loader keeps open
//              bounds them.
//   parked     asks for which there is no part yet, in order of arrival.
//   refused    ordered asks for a part that was handed out or passed over: those of a (lane, part)
//              come in ascending order of seq, and none comes after all end markers.
//   ended      an epoch ends when each loader has sent its end marker and no part of it is left.
//              Asks for it are told so, and the parts held for the next one are let in.
//
// Not thread-safe.

#ifndef SATRAP_EMBEDDING_WORKER_STREAM_QUEUE_H_
#define SATRAP_EMBEDDING_WORKER_STREAM_QUEUE_H_

#include <cstdint>
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

// What a NextBatch asks for.
struct PartAsk {
  PendingAnswer call;
  uint32_t epoch = 0;
  absl::optional<PartId> wanted;  // ordered only, and always then
  absl::optional<uint64_t> step;  // for the part's Lookup
};

class StreamQueue {
 public:
  // What parts compete for room with. Room of an ordered stream that is not per lane deadlocks:
  // ranks wait for a part of one lane while parts of another fill the room.
  enum class RoomScope { kStream, kLanePart };
  struct Options {
    bool ordered = false;
    RoomScope room_scope = RoomScope::kStream;
    int room_parts = 8;
    int num_loaders = 1;
  };
  struct Delivery {
    PartAsk ask;
    std::shared_ptr<const PlannedPart> part;
  };
  struct Decisions {
    std::vector<PendingAnswer> accepted;  // PutBatches to be answered DONE
    std::vector<Delivery> deliveries;     // parts that leave the queue
    std::vector<PartAsk> ended;           // to be answered ENDED
    std::vector<PartAsk> refused;         // what they want cannot come: INVALID_ARGUMENT
  };

  explicit StreamQueue(const Options& options) : options_(options) {}

  // A part has arrived by PutBatch `call`. INVALID_ARGUMENT, and nothing happens, if its epoch has
  // ended, its loader has ended that epoch, or (ordered) it or a later one of its (lane, part) has
  // come before.
  absl::Status Put(const PendingAnswer& call, std::shared_ptr<const PlannedPart> part,
                   Decisions* decisions);

  // The loader will send no further part of the epoch. INVALID_ARGUMENT if it has said so before,
  // or the epoch is over.
  absl::Status End(uint32_t loader, uint32_t epoch, Decisions* decisions);

  // Delivers, ends, refuses or parks the ask. True if it was parked.
  bool AskFor(const PartAsk& ask, Decisions* decisions);

  // Removes a parked ask. False if it is not parked any more.
  bool Withdraw(const PendingAnswer& call);

  uint32_t epoch() const { return epoch_; }
  size_t num_accepted() const { return accepted_.size(); }
  size_t num_held() const { return held_.size(); }
  size_t num_parked() const { return parked_.size(); }

 private:
  struct Held {
    PendingAnswer call;
    std::shared_ptr<const PlannedPart> part;
  };

  bool HasRoomFor(const PlannedPart& part) const;
  bool IsHere(const PartId& id) const;
  bool CanCome(const PartId& id) const;
  bool AllEnded() const;
  bool LetIn(Decisions* decisions);
  bool Deliver(Decisions* decisions);
  bool Refuse(Decisions* decisions);
  bool EndEpoch(Decisions* decisions);
  // Lets in, delivers, refuses and ends until nothing more happens.
  void Settle(Decisions* decisions);

  const Options options_;
  uint32_t epoch_ = 0;
  std::list<std::shared_ptr<const PlannedPart>> accepted_;  // in order of arrival
  std::list<Held> held_;
  // Ordered: one more than the last seq accepted in this epoch, by (lane, part).
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> accepted_seqs_;
  std::list<PartAsk> parked_;
  std::map<uint32_t, std::set<uint32_t>> ended_loaders_;  // by epoch, from the current one on
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_STREAM_QUEUE_H_
