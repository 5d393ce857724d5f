// A StreamSender takes the parts of one stream from its sources and sends each to an embedding
// worker, epoch after epoch. It follows the loader's half of the rules in docs/consistency.md:
//
//   - A part's worker is chosen before the first attempt and kept: by WorkerOfPart if ordered, in
//     turn otherwise.
//   - Ordered: the next part of a (lane, part) leaves only after the one before it was accepted.
//   - When all parts of an epoch were accepted, every worker is told so by a PutBatch without a
//   part.
//     When all workers have answered that, the next epoch begins.
//
// Thread-safe. Callbacks of sources and channels may run on any thread, even after the sender was
// destroyed; then they do nothing.

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
#include "common/executor.h"
#include "common/mutex.h"
#include "common/rpc/numbered_client.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "data_loader/engine/part_source.h"
#include "proto/hot.pb.h"

namespace satrap {

class StreamSender : public std::enable_shared_from_this<StreamSender> {
 public:
  struct Options {
    Stream stream = TRAIN_STREAM;
    bool ordered = false;
    uint32_t epochs = 0;  // 0: passes without end
    // Parts taken from the sources and not yet accepted, shared among them, but at least one each.
    size_t max_open_parts = 8;
    uint32_t loader_index = 0;
    Envelope envelope;
    rpc::RpcTimeouts timeouts;
  };
  // Pointers are not owned. The executor and the workers must outlive the sender and its open
  // calls; the sources must outlive the sender. `failure` gets the first error, after which nothing
  // more is sent.
  StreamSender(const Options& options, Executor* executor,
               const std::vector<rpc::Channel*>& workers, const std::vector<PartSource*>& sources,
               std::function<void(absl::Status)> failure);

  // REQUIRES: once
  void Start();
  // Sends nothing any more and cancels open calls. Idempotent.
  void Stop();

  // The number of epochs whose end every worker has acknowledged.
  uint32_t epochs_sent() const;

  struct Counts {
    uint64_t parts = 0;     // accepted by their workers, since the start
    uint64_t samples = 0;   // of these parts
    size_t open_parts = 0;  // taken from the sources and not yet accepted
  };
  Counts counts() const;

 private:
  // Parts of one (lane, part) that wait until the one in flight is accepted.
  struct Slot {
    bool busy = false;
    std::deque<Part> waiting;
  };
  struct Source {
    PartSource* parts = nullptr;
    bool asking = false;
    bool ended = false;  // in this epoch
    size_t open_parts = 0;
    std::map<uint32_t, Slot> slots;  // by PartId.part; ordered only
  };

  // What an open PutBatch carries: the end of the epoch, or a part of a source.
  struct Cargo {
    bool is_end = false;
    size_t source = 0;
    uint32_t part = 0;  // PartId.part
    uint32_t samples = 0;
  };

  // Calls to be made after the lock was released: to sources, and to `failure`. Either may call
  // back into the sender at once.
  using Effects = std::vector<Task>;

  void BeginEpoch(Effects* effects) REQUIRES(mutex_);
  void Ask(Effects* effects) REQUIRES(mutex_);
  void GotPart(size_t source, absl::StatusOr<absl::optional<Part>> part);
  void Send(size_t source, Part part) REQUIRES(mutex_);
  void Accepted(const Cargo& cargo, Effects* effects) REQUIRES(mutex_);
  void EndEpochIfDone() REQUIRES(mutex_);
  void EndAccepted(Effects* effects) REQUIRES(mutex_);

  void Put(size_t worker, Part part, const Cargo& cargo) REQUIRES(mutex_);
  void PutAnswered(const Cargo& cargo, const absl::Status& status);
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
  uint32_t epoch_ GUARDED_BY(mutex_) = 0;
  size_t next_worker_ GUARDED_BY(mutex_) = 0;
  size_t ends_open_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;  // the end of epoch_ is being sent
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_ENGINE_STREAM_SENDER_H_
