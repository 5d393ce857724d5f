#include "data_loader/engine/stream_sender.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/part_placement.h"
#include "common/rpc/hot_methods.h"

namespace satrap {

StreamSender::StreamSender(const Options& options, Executor* executor,
                           const std::vector<rpc::Channel*>& workers,
                           const std::vector<PartSource*>& sources,
                           std::function<void(absl::Status)> failure)
    : options_(options),
      executor_(executor),
      num_workers_(workers.size()),
      failure_(std::move(failure)),
      workers_({rpc::kPutBatch, options.envelope, options.loader_index, options.timeouts}, executor,
               rpc::PeersOf("embedding_worker", workers)) {
  CHECK(num_workers_ > 0);
  // Loaders begin at different workers, or all would send to worker 0 first.
  next_worker_ = options.loader_index % num_workers_;
  for (PartSource* parts : sources) {
    sources_.emplace_back();
    sources_.back().parts = parts;
  }
}

void StreamSender::Start() {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    BeginEpoch(&effects);
  }
  for (Task& effect : effects) effect();
}

void StreamSender::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  workers_.CancelAll();
}

uint32_t StreamSender::epochs_sent() const {
  MutexLock lock(&mutex_);
  return epoch_;
}

StreamSender::Counts StreamSender::counts() const {
  MutexLock lock(&mutex_);
  Counts counts;
  counts.parts = accepted_parts_;
  counts.samples = accepted_samples_;
  for (const Source& source : sources_) counts.open_parts += source.open_parts;
  return counts;
}

void StreamSender::BeginEpoch(Effects* effects) {
  if (options_.epochs > 0 && epoch_ == options_.epochs) return;
  for (Source& source : sources_) source.ended = false;
  Ask(effects);
  EndEpochIfDone();  // a loader without lanes has no sources and so nothing but the end to send
}

void StreamSender::Ask(Effects* effects) {
  if (stopped_ || ending_) return;
  // The limit is shared out, so that parts of a slow lane do not take the places of other lanes.
  const size_t limit =
      std::max<size_t>(1, options_.max_open_parts / std::max<size_t>(1, sources_.size()));
  for (size_t s = 0; s < sources_.size(); ++s) {
    Source& source = sources_[s];
    if (source.asking || source.ended || source.open_parts >= limit) continue;
    source.asking = true;
    effects->push_back([self = weak_from_this(), executor = executor_, parts = source.parts, s] {
      // Posted, because a source may answer inside Next, and from a parsing thread.
      parts->Next([self, executor, s](absl::StatusOr<absl::optional<Part>> part) {
        executor->Post([self, s, part = std::move(part)]() mutable {
          if (auto sender = self.lock()) sender->GotPart(s, std::move(part));
        });
      });
    });
  }
}

void StreamSender::GotPart(size_t s, absl::StatusOr<absl::optional<Part>> part) {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    if (stopped_) return;
    Source& source = sources_[s];
    source.asking = false;
    if (!part.ok()) {
      Fail(part.status(), &effects);
    } else if (!part->has_value()) {
      source.ended = true;
      EndEpochIfDone();
    } else {
      ++source.open_parts;
      // Unordered parts share one slot, which never holds any back.
      Slot& slot = source.slots[options_.ordered ? (*part)->header.part().id().part() : 0];
      if (options_.ordered && slot.busy) {
        slot.waiting.push_back(std::move(**part));
      } else {
        slot.busy = true;
        Send(s, std::move(**part));
      }
      Ask(&effects);
    }
  }
  for (Task& effect : effects) effect();
}

void StreamSender::Send(size_t s, Part part) {
  const PartId& id = part.header.part().id();
  CHECK(id.epoch() == epoch_) << "a part of epoch " << id.epoch() << " in epoch " << epoch_;
  size_t worker;
  if (options_.ordered) {
    worker = static_cast<size_t>(
        WorkerOfPart(id.lane(), id.seq(), id.part(), static_cast<int>(num_workers_)));
  } else {
    worker = next_worker_;
    next_worker_ = (next_worker_ + 1) % num_workers_;
  }
  const Cargo cargo = {false, s, id.part(), part.header.part().samples()};
  Put(worker, std::move(part), cargo);
}

void StreamSender::Accepted(const Cargo& cargo, Effects* effects) {
  ++accepted_parts_;
  accepted_samples_ += cargo.samples;
  Source& source = sources_[cargo.source];
  --source.open_parts;
  // The answer to a part frees its slot for the next part of the same (lane, part).
  if (options_.ordered) {
    Slot& slot = source.slots[cargo.part];
    slot.busy = !slot.waiting.empty();
    if (slot.busy) {
      Part next = std::move(slot.waiting.front());
      slot.waiting.pop_front();
      Send(cargo.source, std::move(next));
    }
  }
  Ask(effects);
  EndEpochIfDone();
}

void StreamSender::EndEpochIfDone() {
  if (ending_) return;
  // Accepted, not only sent: the end marker must not overtake a part.
  for (const Source& source : sources_) {
    if (!source.ended || source.open_parts > 0) return;
  }
  ending_ = true;
  ends_open_ = num_workers_;
  for (size_t worker = 0; worker < num_workers_; ++worker) {
    Part end;
    end.header.set_stream(options_.stream);
    end.header.set_epoch(epoch_);
    Put(worker, std::move(end), Cargo{true, 0, 0, 0});
  }
}

void StreamSender::EndAccepted(Effects* effects) {
  if (--ends_open_ > 0) return;
  ending_ = false;
  ++epoch_;
  BeginEpoch(effects);
}

void StreamSender::Put(size_t worker, Part part, const Cargo& cargo) {
  // Under the lock, so that no call begins after Stop has returned, when channels may go. The
  // callback takes the lock too, but never runs inside Call. The header is small and the payload is
  // not copied.
  workers_.Call(worker, {part.header.SerializeAsString(), std::move(part.payload)},
                [self = weak_from_this(), cargo](const absl::StatusOr<rpc::Message>& answer) {
                  if (auto sender = self.lock()) sender->PutAnswered(cargo, answer.status());
                });
}

void StreamSender::PutAnswered(const Cargo& cargo, const absl::Status& status) {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    if (stopped_) return;
    if (!status.ok()) {
      Fail(status, &effects);
    } else if (cargo.is_end) {
      EndAccepted(&effects);
    } else {
      Accepted(cargo, &effects);
    }
  }
  for (Task& effect : effects) effect();
}

void StreamSender::Fail(absl::Status status, Effects* effects) {
  stopped_ = true;
  workers_.CancelAll();
  effects->push_back([failure = failure_, status = std::move(status)] { failure(status); });
}

}  // namespace satrap
