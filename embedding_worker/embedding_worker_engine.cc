#include "embedding_worker/embedding_worker_engine.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/batch/part_placement.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/receivers.h"
#include "embedding_worker/clipped_push.h"
#include "embedding_worker/gradient_push.h"
#include "embedding_worker/part_lookup.h"

namespace satrap {

namespace {

rpc::Message NextBatchWithoutPart(NextBatchAnswerHeader::Result result) {
  NextBatchAnswerHeader header;
  header.set_outcome(OUTCOME_DONE);
  header.set_result(result);
  return rpc::MessageOf(header);
}

// INVALID_ARGUMENT unless this part of an ordered stream belongs to worker `this_worker`.
absl::Status CheckPlacement(absl::string_view field, const PartId& id, int this_worker,
                            int num_workers) {
  const int worker = WorkerOfPart(id.lane(), id.seq(), id.part(), num_workers);
  if (worker == this_worker) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": ", Stream_Name(id.stream()), ", lane ", id.lane(), ", seq ", id.seq(), ", part ",
      id.part(), " belongs to embedding worker ", worker, ", not to ", this_worker));
}

rpc::CallReceiver::Options ReceiverOptions(const EmbeddingWorkerEngine::Options& options,
                                           int num_senders) {
  return rpc::ReceiverOptions(absl::StrCat("embedding_worker ", options.index), options.envelope,
                              num_senders, options.timeouts);
}

StreamQueue::Options QueueOptions(const JobConfig& job, bool ordered,
                                  StreamQueue::CapacityScope ordered_capacity) {
  StreamQueue::Options options;
  options.ordered = ordered;
  options.capacity_scope = ordered ? ordered_capacity : StreamQueue::CapacityScope::kStream;
  options.queue_capacity_parts = job.embedding_worker().queue_capacity_parts();
  options.num_loaders = job.data_loader().replicas();
  return options;
}

void Reach(KillPoint::Point point, KillPoints* kill_points) {
  if (kill_points != nullptr) kill_points->Reach(point);
}

StreamQueue::Options TrainQueueOptions(const JobConfig& job, bool ordered,
                                       const EmbeddingWorkerEngine::Options& engine) {
  StreamQueue::Options options = QueueOptions(job, ordered, engine.ordered_capacity);
  options.first_epoch = engine.position.epoch();
  for (const LanePosition& lane : engine.position.lanes()) {
    options.first_seqs.push_back(lane.left() ? StreamQueue::kNone : lane.next_seq());
  }
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
  ASSIGN_OR_RETURN(auto candidates,
                   CandidateSource::Create(job, std::exchange(options.candidates, {})));
  return std::unique_ptr<EmbeddingWorkerEngine>(
      new EmbeddingWorkerEngine(job, std::move(options), std::move(candidates)));
}

EmbeddingWorkerEngine::EmbeddingWorkerEngine(const JobConfig& job, Options options,
                                             std::unique_ptr<const CandidateSource> candidates)
    : layout_(EmbeddingLayout::Make(job)),
      candidates_(std::move(candidates)),
      options_(std::move(options)),
      mode_(job.mode()),
      num_workers_(job.embedding_worker().replicas()),
      num_loaders_(job.data_loader().replicas()),
      num_ranks_(job.nn_worker().replicas()),
      nn_dtype_(job.embedding_worker().wire_dtype()),
      ps_dtype_(job.embedding_ps().wire_dtype()),
      clip_norm_(job.gradient_clip_norm()),
      ps_(options_.executor, options_.ps, options_.envelope, static_cast<uint32_t>(options_.index),
          options_.timeouts),
      puts_(ReceiverOptions(options_, num_loaders_), options_.executor),
      nexts_(ReceiverOptions(options_, num_ranks_), options_.executor),
      acks_(ReceiverOptions(options_, num_ranks_), options_.executor),
      pushes_(ReceiverOptions(options_, num_ranks_), options_.executor),
      queues_{StreamQueue(TrainQueueOptions(job, IsOrdered(TRAIN_STREAM), options_)),
              StreamQueue(QueueOptions(job, false, options_.ordered_capacity)),
              StreamQueue(QueueOptions(job, false, options_.ordered_capacity))} {}

void EmbeddingWorkerEngine::Handle(const rpc::Method& method, rpc::Message request,
                                   rpc::Callback respond) {
  // Makes a callback that calls the method `run` for each call that its answer window admits.
  const auto running = [this](auto run) {
    return [this, run](const rpc::PendingAnswer& call, auto header, Buffer payload) {
      (this->*run)(call, std::move(header), std::move(payload));
    };
  };
  using Engine = EmbeddingWorkerEngine;
  if (method == rpc::kPutBatch) {
    puts_.Receive<PutBatchHeader>(std::move(request), std::move(respond),
                                  running(&Engine::RunPutBatch));
  } else if (method == rpc::kNextBatch) {
    nexts_.Receive<NextBatchHeader>(std::move(request), std::move(respond),
                                    running(&Engine::RunNextBatch));
  } else if (method == rpc::kAck) {
    acks_.Receive<AckHeader>(std::move(request), std::move(respond), running(&Engine::RunAck));
  } else if (method == rpc::kPushGradients) {
    pushes_.Receive<PushGradientsHeader>(std::move(request), std::move(respond),
                                         running(&Engine::RunPushGradients));
  } else {
    respond(
        absl::UnimplementedError(absl::StrCat("embedding_worker does not serve ", method.path)));
  }
}

// ---- PutBatch

absl::Status EmbeddingWorkerEngine::CheckPutBatch(const PutBatchHeader& header) const {
  const PartId& id = header.part().id();
  if (id.stream() != header.stream() || id.epoch() != header.epoch()) {
    return absl::InvalidArgumentError("part.id: stream or epoch differs from the header's");
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
  // A call without a part marks the end of the loader's epoch.
  if (header.has_part()) {
    if (absl::Status status = CheckPutBatch(header); !status.ok()) return call.Finish(status);
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
  if (!status.ok()) return call.Finish(status);
  call.Finish(rpc::Done<PutBatchAnswerHeader>());
  ApplyDecisions(header.stream(), std::move(decisions));
}

void EmbeddingWorkerEngine::PlanPart(const PendingAnswer& call, const PutBatchHeader& header,
                                     Buffer payload) {
  // Make the plan before the part is queued, even if the queue is full. So the plan is ready when a
  // rank requests the part, and a malformed part is refused at once.
  std::unique_ptr<PlanScratch> scratch = TakeScratch();
  absl::StatusOr<PlannedPart> part =
      PlannedPart::Make(layout_, header, std::move(payload), scratch.get(), candidates_.get());
  ReturnScratch(std::move(scratch));
  if (!part.ok()) return call.Finish(part.status());

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
  if (!status.ok()) return call.Finish(status);
  ApplyDecisions(header.stream(), std::move(decisions));
}

void EmbeddingWorkerEngine::ApplyDecisions(Stream stream, StreamQueue::Decisions decisions) {
  for (const PendingAnswer& call : decisions.accepted)
    call.Finish(rpc::Done<PutBatchAnswerHeader>());
  for (const QueuedRequest& request : decisions.ended)
    request.call.Finish(NextBatchWithoutPart(NextBatchAnswerHeader::ENDED));
  for (const QueuedRequest& request : decisions.refused) {
    request.call.Finish(absl::InvalidArgumentError(
        absl::StrCat("wanted: {", request.wanted->ShortDebugString(),
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
    return absl::InvalidArgumentError(ordered ? "wanted, step: required in an ordered stream"
                                              : "wanted, step: not allowed in an unordered stream");
  }
  if (ordered &&
      (header.wanted().stream() != header.stream() || header.wanted().epoch() != header.epoch())) {
    return absl::InvalidArgumentError("wanted: stream or epoch differs from the header's");
  }
  if (!ordered) return absl::OkStatus();
  return CheckPlacement("wanted", header.wanted(), options_.index, num_workers_);
}

void EmbeddingWorkerEngine::RunNextBatch(const PendingAnswer& call, NextBatchHeader header,
                                         Buffer) {
  if (absl::Status status = CheckNextBatch(header); !status.ok()) return call.Finish(status);
  const Stream stream = header.stream();
  QueuedRequest request;
  request.call = call;
  request.epoch = header.epoch();
  if (header.has_wanted()) request.wanted = header.wanted();
  if (header.has_step()) request.step = header.step();

  StreamQueue::Decisions decisions;
  // If the request is unordered and has wait_ms 0, queue and withdraw it under one lock. So it gets
  // a part if there is one, and is never seen waiting.
  bool not_yet = false;
  bool waits = false;
  {
    MutexLock lock(&mutex_);
    waits = queues_[stream].RequestPart(request, &decisions);
    not_yet = waits && !IsOrdered(stream) && header.wait_ms() == 0;
    if (not_yet) queues_[stream].Withdraw(call);
  }
  ApplyDecisions(stream, std::move(decisions));
  if (not_yet) return call.Finish(NextBatchWithoutPart(NextBatchAnswerHeader::NOT_YET));
  // An ordered request waits without limit: if its part could not arrive any more, the request
  // would have been refused.
  if (!waits || IsOrdered(stream)) return;
  options_.executor->PostAfter(int64_t{1000} * header.wait_ms(), [this, stream, call] {
    bool withdrawn;
    {
      MutexLock lock(&mutex_);
      withdrawn = queues_[stream].Withdraw(call);
    }
    if (withdrawn) call.Finish(NextBatchWithoutPart(NextBatchAnswerHeader::NOT_YET));
  });
}

void EmbeddingWorkerEngine::LookUp(Stream stream, const StreamQueue::Delivery& delivery) {
  uint64_t handle;
  {
    // Register the part before the request is answered: the rank may push as soon as it has the
    // answer.
    MutexLock lock(&mutex_);
    handle = next_handle_++;
    outstanding_.emplace(handle, Outstanding{delivery.part, stream, delivery.request.call.sender});
  }
  LookupHeader header;
  header.set_training(stream == TRAIN_STREAM);
  if (delivery.request.step) header.set_step(*delivery.request.step);
  std::vector<PsRequest> requests = MakeLookups(layout_, delivery.part->plan, ps_.num_ps(), header);
  if (requests.empty()) return AnswerPart(delivery, handle, {});
  ps_.Lookup(std::move(requests),
             [this, delivery, handle](absl::StatusOr<std::vector<rpc::Message>> answers) {
               if (!answers.ok()) {
                 options_.on_failure(answers.status());
                 return delivery.request.call.Finish(answers.status());
               }
               // Post the work: gathering and pooling must not run on a thread of gRPC, and the
               // current thread may be one.
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
  delivery.request.call.Finish(std::move(answer));
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
  if (!status.ok()) return call.Finish(status);
  call.Finish(rpc::Done<AckAnswerHeader>());
}

void EmbeddingWorkerEngine::RunPushGradients(const PendingAnswer& call, PushGradientsHeader header,
                                             Buffer payload) {
  options_.executor->Post([this, call, header = std::move(header), payload = std::move(payload)] {
    PushPlanned(call, header, payload);
  });
}

void EmbeddingWorkerEngine::PushPlanned(const PendingAnswer& call,
                                        const PushGradientsHeader& header, const Buffer& payload) {
  const float normalizer = header.step().normalizer();
  if (!(normalizer > 0 && std::isfinite(normalizer)) || !header.step().has_step()) {
    return call.Finish(
        absl::InvalidArgumentError("step: a push needs a step and a finite normalizer above 0"));
  }
  if (clip_norm_ > 0 && header.step().finite() && !(header.step().dense_squares() >= 0)) {
    return call.Finish(absl::InvalidArgumentError(absl::StrCat(
        "step.dense_squares: must not be negative, got ", header.step().dense_squares())));
  }
  absl::StatusOr<Outstanding> outstanding;
  {
    MutexLock lock(&mutex_);
    outstanding = Find(header.handle(), call.sender, TRAIN_STREAM);
  }
  if (!outstanding.ok()) return call.Finish(outstanding.status());
  const PlannedPart& part = *outstanding->part;
  UpdateHeader update;
  *update.mutable_step() = header.step();
  update.set_part(part.description.id().part());
  update.set_ordered(IsOrdered(TRAIN_STREAM));
  update.set_dtype(ps_dtype_);
  update.set_weight(part.Weight());
  if (const auto latest = part.LatestTime(); latest.has_value()) update.set_data_time_ms(*latest);
  absl::StatusOr<PlannedUpdates> updates =
      MakeUpdates(layout_, part, header, payload, update, ps_.num_ps());
  if (!updates.ok()) return call.Finish(updates.status());
  // Release the part only after the push was checked, so that a malformed push changes nothing. If
  // two pushes of the same part have different numbers, both may get here, and one finds the part
  // gone.
  const absl::Status released = Release(header.handle(), call.sender, TRAIN_STREAM);
  if (!released.ok()) return call.Finish(released);

  auto pushed = [this, call, values = updates->gradient_values, losses = updates->losses](
                    const absl::Status& status, PushGradientsAnswerHeader answer) {
    if (!status.ok()) {
      options_.on_failure(status);
      return call.Finish(status);
    }
    {
      MutexLock lock(&mutex_);
      ++counts_.pushes;
      counts_.gradient_values += values;
      counts_.losses.Add(losses);
    }
    Reach(KillPoint::WORKER_AFTER_UPDATE, options_.kill_points);
    answer.set_outcome(OUTCOME_DONE);
    call.Finish(rpc::MessageOf(answer));
  };
  Reach(KillPoint::WORKER_BEFORE_UPDATE, options_.kill_points);
  // In hybrid mode a part without keys needs no PS. (A part has no keys if it has no samples or its
  // step is not finite.)
  if (updates->requests.empty()) return pushed(absl::OkStatus(), {});
  // With clipping, ApplyStep is the second half of a step. A step that is not finite has none,
  // because it changes nothing.
  const bool clips = clip_norm_ > 0 && header.step().finite();
  ps_.Update(header.call(), std::move(updates->requests),
             [this, clips, pushed = std::move(pushed), id = header.call(),
              step = header.step()](const absl::StatusOr<std::vector<rpc::Message>>& answers) {
               if (!clips || !answers.ok()) return pushed(answers.status(), {});
               Reach(KillPoint::WORKER_BETWEEN_HALVES, options_.kill_points);
               ClipStep(&ps_, clip_norm_, id, step, *answers,
                        [pushed](const absl::StatusOr<double>& squares) {
                          PushGradientsAnswerHeader answer;
                          if (squares.ok()) answer.set_squares(*squares);
                          pushed(squares.status(), answer);
                        });
             });
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
    progress.waiting_requests += queue.num_waiting();
  }
  return progress;
}

}  // namespace satrap
