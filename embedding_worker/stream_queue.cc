#include "embedding_worker/stream_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace satrap {

namespace {

bool SamePart(const PartId& a, const PartId& b) {
  return a.epoch() == b.epoch() && a.lane() == b.lane() && a.seq() == b.seq() &&
         a.part() == b.part();
}

bool SameCall(const PendingAnswer& a, const PendingAnswer& b) {
  return a.window == b.window && a.number == b.number;
}

std::string NameOf(const PartId& id) {
  return absl::StrCat("part {epoch ", id.epoch(), ", lane ", id.lane(), ", seq ", id.seq(),
                      ", part ", id.part(), "}");
}

}  // namespace

absl::Status StreamQueue::Put(const PendingAnswer& call, std::shared_ptr<const PlannedPart> part,
                              Decisions* decisions) {
  const PartId& id = part->description.id();
  if (id.epoch() < epoch_) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(id), ": epoch ", epoch_, " has begun here"));
  }
  const auto ended = ended_loaders_.find(id.epoch());
  if (ended != ended_loaders_.end() && ended->second.count(call.sender) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(id), ": loader ", call.sender, " has ended the epoch"));
  }
  if (options_.ordered && (IsHere(id) || (id.epoch() == epoch_ && !CanCome(id)))) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(id), ": sent twice or out of order"));
  }
  // Hold the part first. If its epoch is current and the queue has capacity, Settle accepts it at
  // once.
  held_.push_back({call, std::move(part)});
  Settle(decisions);
  return absl::OkStatus();
}

absl::Status StreamQueue::End(uint32_t loader, uint32_t epoch, Decisions* decisions) {
  if (epoch < epoch_ || !ended_loaders_[epoch].insert(loader).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("loader ", loader, " ends epoch ", epoch, " twice"));
  }
  Settle(decisions);
  return absl::OkStatus();
}

bool StreamQueue::RequestPart(const QueuedRequest& request, Decisions* decisions) {
  // An ordered rank requests only parts that it knows to exist, so a request for a part of a past
  // epoch is an error. An unordered rank learns from the answer that the epoch has ended.
  if (request.epoch < epoch_) {
    (options_.ordered ? decisions->refused : decisions->ended).push_back(request);
    return false;
  }
  waiting_.push_back(request);
  Settle(decisions);
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const QueuedRequest& other) {
    return SameCall(other.call, request.call);
  });
}

bool StreamQueue::Withdraw(const PendingAnswer& call) {
  return std::erase_if(waiting_, [&](const QueuedRequest& request) {
           return SameCall(request.call, call);
         }) > 0;
}

bool StreamQueue::HasCapacityFor(const PlannedPart& part) const {
  const auto competes = [&](const std::shared_ptr<const PlannedPart>& other) {
    const PartId& a = other->description.id();
    const PartId& b = part.description.id();
    return options_.capacity_scope == CapacityScope::kStream ||
           (a.lane() == b.lane() && a.part() == b.part());
  };
  return std::count_if(accepted_.begin(), accepted_.end(), competes) <
         options_.queue_capacity_parts;
}

bool StreamQueue::IsHere(const PartId& id) const {
  return std::any_of(accepted_.begin(), accepted_.end(),
                     [&](const auto& part) { return SamePart(part->description.id(), id); }) ||
         std::any_of(held_.begin(), held_.end(),
                     [&](const Held& held) { return SamePart(held.part->description.id(), id); });
}

// Whether a part of the current epoch that has not arrived can still arrive.
bool StreamQueue::CanCome(const PartId& id) const { return !AllEnded() && id.seq() >= NextSeq(id); }

uint64_t StreamQueue::NextSeq(const PartId& id) const {
  const auto accepted = accepted_seqs_.find({id.lane(), id.part()});
  if (accepted != accepted_seqs_.end()) return accepted->second;
  const bool begins_later =
      epoch_ == options_.first_epoch && id.lane() < options_.first_seqs.size();
  return begins_later ? options_.first_seqs[id.lane()] : 0;
}

bool StreamQueue::AllEnded() const {
  const auto ended = ended_loaders_.find(epoch_);
  return ended != ended_loaders_.end() &&
         ended->second.size() == static_cast<size_t>(options_.num_loaders);
}

bool StreamQueue::AcceptHeld(Decisions* decisions) {
  bool changed = false;
  for (auto held = held_.begin(); held != held_.end();) {
    if (held->part->description.id().epoch() != epoch_ || !HasCapacityFor(*held->part)) {
      ++held;
      continue;
    }
    if (options_.ordered) {
      const PartId& id = held->part->description.id();
      accepted_seqs_[{id.lane(), id.part()}] = id.seq() + 1;
    }
    accepted_.push_back(std::move(held->part));
    decisions->accepted.push_back(held->call);
    held = held_.erase(held);
    changed = true;
  }
  return changed;
}

bool StreamQueue::Deliver(Decisions* decisions) {
  bool changed = false;
  for (auto request = waiting_.begin(); request != waiting_.end() && !accepted_.empty();) {
    const auto part = std::find_if(accepted_.begin(), accepted_.end(), [&](const auto& candidate) {
      return request->epoch == epoch_ &&
             (!request->wanted || SamePart(*request->wanted, candidate->description.id()));
    });
    if (part == accepted_.end()) {
      ++request;
      continue;
    }
    decisions->deliveries.push_back({*request, std::move(*part)});
    accepted_.erase(part);
    request = waiting_.erase(request);
    changed = true;
  }
  return changed;
}

bool StreamQueue::Refuse(Decisions* decisions) {
  bool changed = false;
  for (auto request = waiting_.begin(); request != waiting_.end();) {
    if (!request->wanted || request->epoch != epoch_ || IsHere(*request->wanted) ||
        CanCome(*request->wanted)) {
      ++request;
      continue;
    }
    decisions->refused.push_back(*request);
    request = waiting_.erase(request);
    changed = true;
  }
  return changed;
}

// Ends the epoch if all end markers have come and no accepted part is left. Then no held part
// belongs to the epoch: the queue is not full, so AcceptHeld has left only parts of later epochs.
bool StreamQueue::EndEpoch(Decisions* decisions) {
  if (!AllEnded() || !accepted_.empty()) return false;
  ended_loaders_.erase(epoch_++);
  accepted_seqs_.clear();
  for (auto request = waiting_.begin(); request != waiting_.end();) {
    if (request->epoch >= epoch_) {
      ++request;
      continue;
    }
    decisions->ended.push_back(*request);
    request = waiting_.erase(request);
  }
  return true;
}

// Repeats the steps, because one may make another possible: a delivery frees capacity, and after an
// epoch's end parts of the next one can be accepted. Delivery comes before the end, so that an
// epoch ends only when all its parts have been handed out.
void StreamQueue::Settle(Decisions* decisions) {
  while (AcceptHeld(decisions) || Deliver(decisions) || Refuse(decisions) || EndEpoch(decisions)) {
  }
}

}  // namespace satrap
