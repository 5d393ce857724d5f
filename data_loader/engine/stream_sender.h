// A StreamSender takes the parts of one stream from its sources and sends each to an embedding
// worker, epoch after epoch. It implements the loader's half of the rules in docs/consistency.md:
//
//   - The worker of a part is chosen before the first attempt and kept. In an ordered stream it is
//     WorkerOfPart. In an unordered one it is the worker with the fewest open parts, that is, parts
//     sent to it that it has not accepted yet. A worker whose queue is full does not answer, so it
//     has at most its share of the open parts, max_open_parts / workers rounded up, and the other
//     workers receive all other parts. The stream stops only while full workers have all open
//     parts.
//   - In an ordered stream the parts of one pair (lane, part) are sent one at a time, each after
//     the previous one has been accepted.
//   - When every part of an epoch has been accepted, each worker gets a PutBatch without a part,
//     which ends the epoch. When all workers have answered it, the next epoch begins.
//
// Thread-safe. Sources and channels may call back on any thread, even after the sender is
// destroyed.

#ifndef SATRAP_DATA_LOADER_ENGINE_STREAM_SENDER_H_
#define SATRAP_DATA_LOADER_ENGINE_STREAM_SENDER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/numbered_client.h"
#include "common/rpc/rpc.h"
#include "common/thread/executor.h"
#include "common/thread/mutex.h"
#include "data_loader/engine/part_source.h"
#include "data_loader/engine/sender_options.h"
#include "proto/hot.pb.h"

namespace satrap {

class StreamSender : public std::enable_shared_from_this<StreamSender> {
 public:
  struct Options : LoaderOptions, StreamOptions {};

  // Nothing passed by pointer is owned: the executor and the workers must outlive the sender and
  // its open calls, and the sources must outlive the sender. `failure` is called with the first
  // error, after which nothing more is sent.
  StreamSender(const Options& options, Executor* executor,
               const std::vector<rpc::Channel*>& workers, const std::vector<PartSource*>& sources,
               std::function<void(absl::Status)> failure);

  // REQUIRES: called once
  void Start();
  // Cancels the open calls, and sends nothing more. Idempotent.
  void Stop();

  // The number of epochs whose end every worker has confirmed, including those before the first one
  // that this sender sends.
  uint32_t epochs_sent() const;

  struct Counts {
    uint64_t parts = 0;     // accepted by their workers, since the start
    uint64_t samples = 0;   // of these parts
    size_t open_parts = 0;  // taken from the sources and not yet accepted
  };
  Counts counts() const;

 private:
  // The queue of one (lane, part): its parts wait until the one being sent is accepted.
  struct Entry {
    bool busy = false;
    std::deque<Part> waiting;
  };
  struct Source {
    PartSource* parts = nullptr;
    bool requested = false;  // its next part is requested and has not come yet
    bool ended = false;      // in this epoch
    size_t open_parts = 0;
    std::map<uint32_t, Entry> entries;  // by PartId.part; ordered only
  };

  // What an open PutBatch carries: the end of the epoch, or a part of a source.
  struct OpenPut {
    bool is_end = false;
    size_t source = 0;
    uint32_t part = 0;  // PartId.part
    uint32_t samples = 0;
    size_t worker = 0;
  };

  // What to run after the lock is released: requests to sources, and the report of a failure.
  using Effects = std::vector<Task>;

  void BeginEpoch(Effects* effects) REQUIRES(mutex_);
  void RequestParts(Effects* effects) REQUIRES(mutex_);
  void GotPart(size_t source, absl::StatusOr<absl::optional<Part>> part);
  size_t ChooseWorker(const PartId& id) REQUIRES(mutex_);
  void Send(size_t source, Part part) REQUIRES(mutex_);
  void Accepted(const OpenPut& put, Effects* effects) REQUIRES(mutex_);
  void EndEpochIfDone() REQUIRES(mutex_);
  void EndAccepted(Effects* effects) REQUIRES(mutex_);

  void Put(size_t worker, Part part, const OpenPut& put) REQUIRES(mutex_);
  void PutAnswered(const OpenPut& put, const absl::Status& status);
  void Fail(absl::Status status, Effects* effects) REQUIRES(mutex_);

  const Options options_;
  Executor* const executor_;
  const size_t num_workers_;
  const std::function<void(absl::Status)> failure_;
  rpc::NumberedClient workers_;

  mutable Mutex mutex_;
  std::vector<Source> sources_ GUARDED_BY(mutex_);
  uint64_t accepted_parts_ GUARDED_BY(mutex_) = 0;
  uint64_t accepted_samples_ GUARDED_BY(mutex_) = 0;
  uint32_t epoch_ GUARDED_BY(mutex_);
  std::vector<size_t> open_at_worker_ GUARDED_BY(mutex_);  // parts sent and not yet accepted
  size_t next_worker_ GUARDED_BY(mutex_) = 0;  // the first to try, so that ties are broken in turn
  size_t ends_open_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;  // the end of epoch_ is being sent
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_ENGINE_STREAM_SENDER_H_
