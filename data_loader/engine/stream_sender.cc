#include "data_loader/engine/stream_sender.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/batch/part_placement.h"
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
  // Each loader begins at a different worker. Otherwise all of them would send to worker 0 first.
  next_worker_ = options.loader_index % num_workers_;
  epoch_ = options.first_epoch;
  open_at_worker_.assign(num_workers_, 0);
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
  if (options_.epochs > 0 && epoch_ >= options_.epochs) return;
  for (Source& source : sources_) source.ended = false;
  RequestParts(effects);
  EndEpochIfDone();  // a loader without lanes sends nothing but the ends of its epochs
}

// Requests a part from each source that has fewer open parts than its share. The requests
// themselves run as effects, after this object's lock is released, so that it is not held while a
// source locks.
void StreamSender::RequestParts(Effects* effects) {
  if (stopped_ || ending_) return;
  // Divide the limit among the sources, so that the parts of a slow lane cannot use up all of it.
  const size_t limit =
      std::max<size_t>(1, options_.max_open_parts / std::max<size_t>(1, sources_.size()));
  for (size_t s = 0; s < sources_.size(); ++s) {
    Source& source = sources_[s];
    if (source.requested || source.ended || source.open_parts >= limit) continue;
    source.requested = true;
    effects->push_back([self = weak_from_this(), executor = executor_, parts = source.parts, s] {
      // Post the answer, because a source may call back inside Next, or on a parsing thread.
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
    source.requested = false;
    if (!part.ok()) {
      Fail(part.status(), &effects);
    } else if (!part->has_value()) {
      source.ended = true;
      EndEpochIfDone();
    } else {
      ++source.open_parts;
      Entry& entry = source.entries[options_.ordered ? (*part)->header.part().id().part() : 0];
      // Only ordered parts wait for the previous part of their entry; others are sent at once.
      if (options_.ordered && entry.busy) {
        entry.waiting.push_back(std::move(**part));
      } else {
        entry.busy = true;
        Send(s, std::move(**part));
      }
      RequestParts(&effects);
    }
  }
  for (Task& effect : effects) effect();
}

size_t StreamSender::ChooseWorker(const PartId& id) {
  if (options_.ordered) {
    return static_cast<size_t>(
        WorkerOfPart(id.lane(), id.seq(), id.part(), static_cast<int>(num_workers_)));
  }
  // Choose the worker with the fewest open parts. A worker whose queue is full does not answer, so
  // its number stays high and others are chosen; any other worker answers at once and is chosen
  // again. If the workers simply took turns, all of them would run at the speed of the slowest.
  size_t chosen = next_worker_;
  for (size_t i = 1; i < num_workers_; ++i) {
    const size_t worker = (next_worker_ + i) % num_workers_;
    if (open_at_worker_[worker] < open_at_worker_[chosen]) chosen = worker;
  }
  next_worker_ = (chosen + 1) % num_workers_;
  return chosen;
}

void StreamSender::Send(size_t s, Part part) {
  const PartId& id = part.header.part().id();
  CHECK(id.epoch() == epoch_) << "a part of epoch " << id.epoch() << " in epoch " << epoch_;
  const size_t worker = ChooseWorker(id);
  ++open_at_worker_[worker];
  const OpenPut put = {false, s, id.part(), part.header.part().samples(), worker};
  Put(worker, std::move(part), put);
}

void StreamSender::Accepted(const OpenPut& put, Effects* effects) {
  ++accepted_parts_;
  accepted_samples_ += put.samples;
  Source& source = sources_[put.source];
  --source.open_parts;
  --open_at_worker_[put.worker];
  if (options_.ordered) {
    // If a part waits for this one, send it now and leave the entry busy.
    Entry& entry = source.entries[put.part];
    entry.busy = !entry.waiting.empty();
    if (entry.busy) {
      Part next = std::move(entry.waiting.front());
      entry.waiting.pop_front();
      Send(put.source, std::move(next));
    }
  }
  RequestParts(effects);
  EndEpochIfDone();
}

// Sends the end of the epoch once every part is accepted. It must not be sent earlier: a worker
// that receives it treats the epoch as complete for this loader, and a later part would be an
// error. While the ends are open, `ending_` keeps RequestParts from requesting parts of the next
// epoch.
void StreamSender::EndEpochIfDone() {
  if (ending_) return;
  for (const Source& source : sources_) {
    if (!source.ended || source.open_parts > 0) return;
  }
  ending_ = true;
  ends_open_ = num_workers_;
  for (size_t worker = 0; worker < num_workers_; ++worker) {
    Part end;
    end.header.set_stream(options_.stream);
    end.header.set_epoch(epoch_);
    Put(worker, std::move(end), OpenPut{true, 0, 0, 0, worker});
  }
}

void StreamSender::EndAccepted(Effects* effects) {
  if (--ends_open_ > 0) return;
  ending_ = false;
  ++epoch_;
  BeginEpoch(effects);
}

void StreamSender::Put(size_t worker, Part part, const OpenPut& put) {
  // Call with the lock held, so that no call begins after Stop has returned, when channels may be
  // destroyed. The callback takes the lock, too, but never runs inside Call. The call takes little
  // time: the header is small and the payload is not copied.
  workers_.Call(worker, {part.header.SerializeAsString(), std::move(part.payload)},
                [self = weak_from_this(), put](const absl::StatusOr<rpc::Message>& answer) {
                  if (auto sender = self.lock()) sender->PutAnswered(put, answer.status());
                });
}

void StreamSender::PutAnswered(const OpenPut& put, const absl::Status& status) {
  if (status.ok() && !put.is_end && options_.kill_points != nullptr) {
    options_.kill_points->Reach(KillPoint::LOADER_AFTER_PUT);
  }
  Effects effects;
  {
    MutexLock lock(&mutex_);
    if (stopped_) return;
    if (!status.ok()) {
      Fail(status, &effects);
    } else if (put.is_end) {
      EndAccepted(&effects);
    } else {
      Accepted(put, &effects);
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
