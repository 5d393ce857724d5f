// The EmbeddingWorkerEngine serves loaders and NN workers. It accepts parts (PutBatch), plans them,
// gives each part with the rows of its ids to the rank that requests it (NextBatch), and then turns
// the part's gradients into updates (PushGradients) or releases it (Ack). docs/consistency.md has
// the rules, stream_queue.h the order of parts.
//
//   PutBatch       answer window -> plan * -> StreamQueue: accepted, or held while it is full
//   NextBatch      answer window -> StreamQueue: a part, or waiting -> Lookup to PSs * -> answer *
//   PushGradients  answer window -> sums by key along the part's plan * -> Update to PSs -> answer
//   Ack            answer window -> answer
//
// Steps with a star are tasks of the executor; the others run on the thread that delivers the call.
// Everything that the engine holds is bounded: accepted parts by queue_capacity_parts, held parts
// by the calls that loaders keep open, outstanding parts (neither pushed nor released) by the
// ranks' permits, and kept answers by the ranks' open calls.
//
// A caller that breaks the contract gets INVALID_ARGUMENT or NOT_FOUND, and a caller of another job
// or generation gets FAILED_PRECONDITION. Neither changes anything. If a PS cannot be reached or
// breaks the contract, that is reported to the FailureSink, and the call that needed the PS gets
// the error.
//
// Thread-safe. Never blocks; callbacks run outside the lock.

#ifndef SATRAP_EMBEDDING_WORKER_EMBEDDING_WORKER_ENGINE_H_
#define SATRAP_EMBEDDING_WORKER_EMBEDDING_WORKER_ENGINE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/candidates/candidate_list.h"
#include "common/role/kill_points.h"
#include "common/rpc/call_receiver.h"
#include "common/rpc/payload.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "common/thread/executor.h"
#include "common/thread/mutex.h"
#include "embedding_worker/candidates/part_candidates.h"
#include "embedding_worker/embedding_layout.h"
#include "embedding_worker/planned_part.h"
#include "embedding_worker/ps_fan_out.h"
#include "embedding_worker/stream_queue.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class EmbeddingWorkerEngine final : public rpc::Handler {
 public:
  struct Options {
    Envelope envelope;              // of this run
    int index = 0;                  // of this embedding worker
    std::vector<rpc::Channel*> ps;  // by index of the embedding PS
    Executor* executor = nullptr;
    rpc::RpcTimeouts timeouts;
    CandidateList candidates;  // if the job needs it (NeedsCandidateList)
    RunPosition position;      // the train stream continues from here; empty: from the beginning
    KillPoints* kill_points = nullptr;             // null: none
    std::function<void(absl::Status)> on_failure;  // the FailureSink: ends the job
    // Only the simulation changes this, in order to show that the other scope causes a deadlock.
    StreamQueue::CapacityScope ordered_capacity = StreamQueue::CapacityScope::kLanePart;
  };

  struct Progress {
    size_t accepted_parts = 0, held_puts = 0;  // of all streams, as are the next two
    size_t waiting_requests = 0, outstanding_parts = 0;
    uint64_t parts = 0;  // planned so far, and their ids and unique keys
    uint64_t ids = 0, keys = 0;
    uint64_t pushes = 0;           // applied so far
    uint64_t gradient_values = 0;  // sent to PSs for those pushes; `losses` are among them
    rpc::WireLosses losses;
  };

  // INVALID_ARGUMENT if the number of channels is not the number of PSs, or if CandidateSource
  // refuses the candidates. Owns nothing in `options`: all of it must outlive the engine, and the
  // engine must outlive its tasks and calls. REQUIRES: a validated job
  static absl::StatusOr<std::unique_ptr<EmbeddingWorkerEngine>> Create(const JobConfig& job,
                                                                       Options options);

  // Serves the methods of rpc::kEmbeddingWorkerMethods.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

  Progress progress() const;

 private:
  // A part that was handed out and waits for its push or Ack.
  struct Outstanding {
    std::shared_ptr<const PlannedPart> part;
    Stream stream;
    uint32_t rank;
  };

  EmbeddingWorkerEngine(const JobConfig& job, Options options,
                        std::unique_ptr<const CandidateSource> candidates);

  void RunPutBatch(const PendingAnswer& call, PutBatchHeader header, Buffer payload);
  void RunNextBatch(const PendingAnswer& call, NextBatchHeader header, Buffer payload);
  void RunAck(const PendingAnswer& call, AckHeader header, Buffer payload);
  void RunPushGradients(const PendingAnswer& call, PushGradientsHeader header, Buffer payload);

  absl::Status CheckPutBatch(const PutBatchHeader& header) const;
  absl::Status CheckNextBatch(const NextBatchHeader& header) const;
  void PlanPart(const PendingAnswer& call, const PutBatchHeader& header, Buffer payload);
  void PushPlanned(const PendingAnswer& call, const PushGradientsHeader& header,
                   const Buffer& payload);

  // Carries out the decisions of a StreamQueue. Must not be called under the lock, because it
  // answers calls.
  void ApplyDecisions(Stream stream, StreamQueue::Decisions decisions);
  void LookUp(Stream stream, const StreamQueue::Delivery& delivery);
  void AnswerPart(const StreamQueue::Delivery& delivery, uint64_t handle,
                  const std::vector<rpc::Message>& answers);

  // Finds the outstanding part with this handle. NOT_FOUND unless `rank` has it, INVALID_ARGUMENT
  // unless it is of `stream`.
  absl::StatusOr<Outstanding> Find(uint64_t handle, uint32_t rank, Stream stream) const
      REQUIRES(mutex_);
  // Removes the outstanding part. Errors are those of Find.
  absl::Status Release(uint64_t handle, uint32_t rank, Stream stream) EXCLUDES(mutex_);

  std::unique_ptr<PlanScratch> TakeScratch();
  void ReturnScratch(std::unique_ptr<PlanScratch> scratch);
  bool IsOrdered(Stream stream) const { return stream == TRAIN_STREAM && mode_ == JobConfig::SYNC; }

  const EmbeddingLayout layout_;
  const std::unique_ptr<const CandidateSource> candidates_;  // null: none are drawn
  const Options options_;
  const JobConfig::Mode mode_;
  const int num_workers_;
  const int num_loaders_;
  const int num_ranks_;
  const WireDtype nn_dtype_;  // dtype of values to and from NN workers
  const WireDtype ps_dtype_;  // dtype of gradients to PSs
  const float clip_norm_;     // of all gradients of a step (clipped_push.h); 0: none
  PsFanOut ps_;
  rpc::CallReceiver puts_;  // receives calls from loaders; the next three, from ranks
  rpc::CallReceiver nexts_;
  rpc::CallReceiver acks_;
  rpc::CallReceiver pushes_;

  mutable Mutex mutex_;
  std::array<StreamQueue, 3> queues_ GUARDED_BY(mutex_);                       // by Stream
  absl::flat_hash_map<uint64_t, Outstanding> outstanding_ GUARDED_BY(mutex_);  // by handle
  uint64_t next_handle_ GUARDED_BY(mutex_) = 1;
  std::vector<std::unique_ptr<PlanScratch>> scratch_ GUARDED_BY(mutex_);  // at most one per thread
  Progress counts_ GUARDED_BY(mutex_);  // the running counts; progress() fills in the others
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_EMBEDDING_WORKER_ENGINE_H_
