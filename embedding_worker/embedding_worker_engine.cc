#include "embedding_worker/embedding_worker_engine.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/part_placement.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"
#include "common/status_macros.h"
#include "embedding_worker/gradient_push.h"
#include "embedding_worker/part_lookup.h"

namespace satrap {

namespace {

// A call without a stream belongs to training.
template <typename Header>
Stream StreamOf(const Header& header) {
  return header.stream();
}
Stream StreamOf(const PushGradientsHeader&) { return TRAIN_STREAM; }

rpc::Message NextBatchWithoutPart(NextBatchAnswerHeader::Result result) {
  NextBatchAnswerHeader header;
  header.set_outcome(DONE);
  header.set_result(result);
  return rpc::MessageOf(header);
}

template <typename AnswerHeader>
rpc::Message Done() {
  AnswerHeader header;
  header.set_outcome(DONE);
  return rpc::MessageOf(header);
}

void Finish(const PendingAnswer& call, absl::StatusOr<rpc::Message> answer) {
  call.window->Finish(call.number, std::move(answer));
}

// Whether the part of an ordered stream belongs to this worker.
absl::Status CheckPlacement(absl::string_view field, const PartId& id, int this_worker,
                            int num_workers) {
  const int worker = WorkerOfPart(id.lane(), id.seq(), id.part(), num_workers);
  if (worker == this_worker) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": ", Stream_Name(id.stream()), ", lane ", id.lane(), ", seq ", id.seq(), ", part ",
      id.part(), " belongs to embedding worker ", worker, ", not to ", this_worker));
}

StreamQueue::Options QueueOptions(const JobConfig& job, bool ordered,
                                  StreamQueue::RoomScope ordered_room) {
  StreamQueue::Options options;
  options.ordered = ordered;
  options.room_scope = ordered ? ordered_room : StreamQueue::RoomScope::kStream;
  options.room_parts = job.embedding_worker().room_parts();
  options.num_loaders = job.data_loader().replicas();
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EmbeddingWorkerEngine>> EmbeddingWorkerEngine::Create(
    const JobConfig& job, Options options) {
  if (options.ps.empty() ||
      options.ps.size() != static_cast<size_t>(job.embedding_ps().replicas())) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.ps.size(), " channels to ", job.embedding_ps().replicas(), " embedding PSs"));
  }
  return std::unique_ptr<EmbeddingWorkerEngine>(new EmbeddingWorkerEngine(job, std::move(options)));
}

EmbeddingWorkerEngine::EmbeddingWorkerEngine(const JobConfig& job, Options options)
    : layout_(EmbeddingLayout::Make(job)),
      options_(std::move(options)),
      mode_(job.mode()),
      num_workers_(job.embedding_worker().replicas()),
      num_loaders_(job.data_loader().replicas()),
      num_ranks_(job.nn_worker().replicas()),
      nn_dtype_(job.embedding_worker().wire_dtype()),
      ps_dtype_(job.embedding_ps().wire_dtype()),
      ps_(options_.executor, options_.ps, options_.timeouts),
      put_windows_(options_.executor, options_.timeouts.hold_ms * 1000),
      next_windows_(options_.executor, options_.timeouts.hold_ms * 1000),
      ack_windows_(options_.executor, options_.timeouts.hold_ms * 1000),
      push_windows_(options_.executor, options_.timeouts.hold_ms * 1000),
      queues_{StreamQueue(QueueOptions(job, IsOrdered(TRAIN_STREAM), options_.ordered_room)),
              StreamQueue(QueueOptions(job, false, options_.ordered_room)),
              StreamQueue(QueueOptions(job, false, options_.ordered_room))} {}

void EmbeddingWorkerEngine::Handle(const rpc::Method& method, rpc::Message request,
                                   rpc::Callback respond) {
  using Engine = EmbeddingWorkerEngine;
  if (method == rpc::kPutBatch) {
    Receive(&put_windows_, num_loaders_, std::move(request), std::move(respond),
            &Engine::RunPutBatch);
  } else if (method == rpc::kNextBatch) {
    Receive(&next_windows_, num_ranks_, std::move(request), std::move(respond),
            &Engine::RunNextBatch);
  } else if (method == rpc::kAck) {
    Receive(&ack_windows_, num_ranks_, std::move(request), std::move(respond), &Engine::RunAck);
  } else if (method == rpc::kPushGradients) {
    Receive(&push_windows_, num_ranks_, std::move(request), std::move(respond),
            &Engine::RunPushGradients);
  } else {
    respond(
        absl::UnimplementedError(absl::StrCat("embedding_worker does not serve ", method.path)));
  }
}

template <typename Header>
void EmbeddingWorkerEngine::Receive(rpc::AnswerWindows* windows, int num_senders,
                                    rpc::Message request, rpc::Callback respond,
                                    void (EmbeddingWorkerEngine::*run)(const PendingAnswer&, Header,
                                                                       Buffer)) {
  absl::StatusOr<Header> header = rpc::ParseHeader<Header>(request.header);
  if (!header.ok()) {
    respond(header.status());
    return;
  }
  const absl::Status status =
      rpc::CheckEnvelope(header->envelope(), options_.envelope, "the embedding worker");
  if (!status.ok()) {
    respond(status);
    return;
  }
  const CallId id = header->call();
  if (id.sender() >= static_cast<uint32_t>(num_senders)) {
    respond(absl::InvalidArgumentError(
        absl::StrCat("call.sender: ", id.sender(), " of ", num_senders)));
    return;
  }
  rpc::AnswerWindow* window = windows->Get(id.sender(), StreamOf(*header));
  if (window->Admit(id.number(), id.oldest_open(), std::move(respond)) == rpc::Admission::kHandled)
    return;
  (this->*run)({window, id.number(), id.sender()}, *std::move(header), std::move(request.payload));
}

// ---- PutBatch

absl::Status EmbeddingWorkerEngine::CheckPutBatch(const PutBatchHeader& header) const {
  const PartId& id = header.part().id();
  if (id.stream() != header.stream() || id.epoch() != header.epoch()) {
    return absl::InvalidArgumentError("part.id: another stream or epoch than the header's");
  }
  if (id.part() >= static_cast<uint32_t>(num_ranks_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("part.id.part: ", id.part(), " of ", num_ranks_));
  }
  if (!IsOrdered(id.stream())) return absl::OkStatus();
  return CheckPlacement("part.id", id, options_.index, num_workers_);
}

void EmbeddingWorkerEngine::RunPutBatch(const PendingAnswer& call, PutBatchHeader header,
                                        Buffer payload) {
  if (header.has_part()) {
    if (absl::Status status = CheckPutBatch(header); !status.ok()) return Finish(call, status);
    options_.executor->Post(
        [this, call, header = std::move(header), payload = std::move(payload)]() mutable {
          PlanPart(call, header, std::move(payload));
        });
    return;
  }
  StreamQueue::Decisions decisions;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    status = queues_[header.stream()].End(call.sender, header.epoch(), &decisions);
  }
  if (!status.ok()) return Finish(call, status);
  Finish(call, Done<PutBatchAnswerHeader>());
  Act(header.stream(), std::move(decisions));
}

void EmbeddingWorkerEngine::PlanPart(const PendingAnswer& call, const PutBatchHeader& header,
                                     Buffer payload) {
  std::unique_ptr<PlanScratch> scratch = TakeScratch();
  absl::StatusOr<PlannedPart> part =
      PlannedPart::Make(layout_, header, std::move(payload), scratch.get());
  ReturnScratch(std::move(scratch));
  if (!part.ok()) return Finish(call, part.status());

  StreamQueue::Decisions decisions;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    ++counts_.parts;
    counts_.ids += part->plan.NumIds();
    counts_.keys += part->plan.NumKeys();
    status = queues_[header.stream()].Put(
        call, std::make_shared<const PlannedPart>(*std::move(part)), &decisions);
  }
  if (!status.ok()) return Finish(call, status);
  Act(header.stream(), std::move(decisions));
}

void EmbeddingWorkerEngine::Act(Stream stream, StreamQueue::Decisions decisions) {
  for (const PendingAnswer& call : decisions.accepted) Finish(call, Done<PutBatchAnswerHeader>());
  for (const PartAsk& ask : decisions.ended)
    Finish(ask.call, NextBatchWithoutPart(NextBatchAnswerHeader::ENDED));
  for (const PartAsk& ask : decisions.refused) {
    Finish(ask.call, absl::InvalidArgumentError(absl::StrCat(
                         "wanted: {", ask.wanted->ShortDebugString(),
                         "} was handed out before, or its loader never sent it here")));
  }
  for (StreamQueue::Delivery& delivery : decisions.deliveries) {
    options_.executor->Post(
        [this, stream, delivery = std::move(delivery)] { LookUp(stream, delivery); });
  }
}

// ---- NextBatch

absl::Status EmbeddingWorkerEngine::CheckNextBatch(const NextBatchHeader& header) const {
  const bool ordered = IsOrdered(header.stream());
  if (header.has_wanted() != ordered || header.has_step() != ordered) {
    return absl::InvalidArgumentError(ordered ? "wanted, step: needed in an ordered stream"
                                              : "wanted, step: not in an unordered stream");
  }
  if (ordered &&
      (header.wanted().stream() != header.stream() || header.wanted().epoch() != header.epoch())) {
    return absl::InvalidArgumentError("wanted: another stream or epoch than the header's");
  }
  if (!ordered) return absl::OkStatus();
  return CheckPlacement("wanted", header.wanted(), options_.index, num_workers_);
}

void EmbeddingWorkerEngine::RunNextBatch(const PendingAnswer& call, NextBatchHeader header,
                                         Buffer) {
  if (absl::Status status = CheckNextBatch(header); !status.ok()) return Finish(call, status);
  const Stream stream = header.stream();
  PartAsk ask;
  ask.call = call;
  ask.epoch = header.epoch();
  if (header.has_wanted()) ask.wanted = header.wanted();
  if (header.has_step()) ask.step = header.step();

  StreamQueue::Decisions decisions;
  bool not_yet = false;
  bool parked = false;
  {
    MutexLock lock(&mutex_);
    parked = queues_[stream].AskFor(ask, &decisions);
    not_yet = parked && !IsOrdered(stream) && header.wait_ms() == 0;
    if (not_yet) queues_[stream].Withdraw(call);
  }
  Act(stream, std::move(decisions));
  if (not_yet) return Finish(call, NextBatchWithoutPart(NextBatchAnswerHeader::NOT_YET));
  // What is wanted by name can still come, else it would be refused: that ask waits as long as it
  // takes.
  if (!parked || IsOrdered(stream)) return;
  options_.executor->PostAfter(int64_t{1000} * header.wait_ms(), [this, stream, call] {
    bool withdrawn;
    {
      MutexLock lock(&mutex_);
      withdrawn = queues_[stream].Withdraw(call);
    }
    if (withdrawn) Finish(call, NextBatchWithoutPart(NextBatchAnswerHeader::NOT_YET));
  });
}

void EmbeddingWorkerEngine::LookUp(Stream stream, const StreamQueue::Delivery& delivery) {
  uint64_t handle;
  {
    MutexLock lock(&mutex_);
    handle = next_handle_++;
    outstanding_.emplace(handle, Outstanding{delivery.part, stream, delivery.ask.call.sender});
  }
  LookupHeader header;
  *header.mutable_envelope() = options_.envelope;
  header.set_training(stream == TRAIN_STREAM);
  if (delivery.ask.step) header.set_step(*delivery.ask.step);
  std::vector<PsRequest> requests = MakeLookups(layout_, delivery.part->plan, ps_.num_ps(), header);
  if (requests.empty()) return AnswerPart(delivery, handle, {});
  ps_.Call(rpc::kLookup, std::move(requests),
           [this, delivery, handle](absl::StatusOr<std::vector<rpc::Message>> answers) {
             if (!answers.ok()) {
               options_.on_failure(answers.status());
               return Finish(delivery.ask.call, answers.status());
             }
             options_.executor->Post([this, delivery, handle, answers = *std::move(answers)] {
               AnswerPart(delivery, handle, answers);
             });
           });
}

void EmbeddingWorkerEngine::AnswerPart(const StreamQueue::Delivery& delivery, uint64_t handle,
                                       const std::vector<rpc::Message>& answers) {
  absl::StatusOr<rpc::Message> answer =
      MakeNextBatchAnswer(layout_, *delivery.part, ps_.num_ps(), answers, handle, nn_dtype_);
  if (!answer.ok()) options_.on_failure(answer.status());
  Finish(delivery.ask.call, std::move(answer));
}

// ---- Ack and PushGradients

absl::StatusOr<EmbeddingWorkerEngine::Outstanding> EmbeddingWorkerEngine::Find(
    uint64_t handle, uint32_t rank, Stream stream) const {
  const auto found = outstanding_.find(handle);
  if (found == outstanding_.end() || found->second.rank != rank) {
    return absl::NotFoundError(absl::StrCat("handle: ", handle, " is not open at rank ", rank));
  }
  if (found->second.stream != stream) {
    return absl::InvalidArgumentError(
        absl::StrCat("handle: ", handle, " is of ", Stream_Name(found->second.stream)));
  }
  return found->second;
}

absl::Status EmbeddingWorkerEngine::Release(uint64_t handle, uint32_t rank, Stream stream) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(Find(handle, rank, stream).status());
  outstanding_.erase(handle);
  return absl::OkStatus();
}

void EmbeddingWorkerEngine::RunAck(const PendingAnswer& call, AckHeader header, Buffer) {
  const absl::Status status = Release(header.handle(), call.sender, header.stream());
  if (!status.ok()) return Finish(call, status);
  Finish(call, Done<AckAnswerHeader>());
}

void EmbeddingWorkerEngine::RunPushGradients(const PendingAnswer& call, PushGradientsHeader header,
                                             Buffer payload) {
  options_.executor->Post([this, call, header = std::move(header), payload = std::move(payload)] {
    PushPlanned(call, header, payload);
  });
}

void EmbeddingWorkerEngine::PushPlanned(const PendingAnswer& call,
                                        const PushGradientsHeader& header, const Buffer& payload) {
  if (!(header.step().normalizer() > 0) || !header.step().has_step()) {
    return Finish(call,
                  absl::InvalidArgumentError("step: a push needs a step and a normalizer over 0"));
  }
  absl::StatusOr<Outstanding> outstanding;
  {
    MutexLock lock(&mutex_);
    outstanding = Find(header.handle(), call.sender, TRAIN_STREAM);
  }
  if (!outstanding.ok()) return Finish(call, outstanding.status());
  const PlannedPart& part = *outstanding->part;
  UpdateHeader update;
  *update.mutable_envelope() = options_.envelope;
  *update.mutable_call() = header.call();
  *update.mutable_step() = header.step();
  update.set_part(part.description.id().part());
  update.set_ordered(IsOrdered(TRAIN_STREAM));
  update.set_dtype(ps_dtype_);
  absl::StatusOr<PlannedUpdates> updates =
      MakeUpdates(layout_, part, header, payload, update, ps_.num_ps());
  if (!updates.ok()) return Finish(call, updates.status());
  // Only now, so that a malformed push changes nothing; of two pushes of one part, one gets here.
  const absl::Status released = Release(header.handle(), call.sender, TRAIN_STREAM);
  if (!released.ok()) return Finish(call, released);

  auto applied = [this, call, saturated = updates->saturated_values](
                     absl::StatusOr<std::vector<rpc::Message>> answers) {
    if (!answers.ok()) {
      options_.on_failure(answers.status());
      return Finish(call, answers.status());
    }
    {
      MutexLock lock(&mutex_);
      ++counts_.pushes;
      counts_.saturated_values += saturated;
    }
    Finish(call, Done<PushGradientsAnswerHeader>());
  };
  if (updates->requests.empty()) return applied(std::vector<rpc::Message>());
  ps_.Call(rpc::kUpdate, std::move(updates->requests), std::move(applied));
}

// ---- Bookkeeping

std::unique_ptr<PlanScratch> EmbeddingWorkerEngine::TakeScratch() {
  MutexLock lock(&mutex_);
  if (scratch_.empty()) return std::make_unique<PlanScratch>();
  std::unique_ptr<PlanScratch> scratch = std::move(scratch_.back());
  scratch_.pop_back();
  return scratch;
}

void EmbeddingWorkerEngine::ReturnScratch(std::unique_ptr<PlanScratch> scratch) {
  MutexLock lock(&mutex_);
  scratch_.push_back(std::move(scratch));
}

EmbeddingWorkerEngine::Progress EmbeddingWorkerEngine::progress() const {
  MutexLock lock(&mutex_);
  Progress progress = counts_;
  progress.outstanding_parts = outstanding_.size();
  for (const StreamQueue& queue : queues_) {
    progress.accepted_parts += queue.num_accepted();
    progress.held_puts += queue.num_held();
    progress.parked_asks += queue.num_parked();
  }
  return progress;
}

}  // namespace satrap
