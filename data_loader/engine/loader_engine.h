// The LoaderEngine sends the parts of all streams of one loader to the embedding workers. It is a
// state machine over an executor, channels and part sources: it knows no gRPC, starts no thread and
// never blocks, so tests/simulation runs it as it is.
//
// Which sources a stream has is decided by whoever makes the engine:
//   train, sync     one per lane of this loader (lane l belongs to loader l mod loaders), ordered
//   train, hybrid   one, its splits leased from the coordinator
//   valid, test     one, with splits j for which j mod loaders is this loader; passes without end
//
// Thread-safe.

#ifndef SATRAP_DATA_LOADER_ENGINE_LOADER_ENGINE_H_
#define SATRAP_DATA_LOADER_ENGINE_LOADER_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/executor.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "data_loader/engine/part_source.h"
#include "proto/hot.pb.h"

namespace satrap {

class StreamSender;

class LoaderEngine {
 public:
  struct StreamSources {
    Stream stream = TRAIN_STREAM;
    bool ordered = false;
    uint32_t epochs = 0;  // 0: passes without end
    std::vector<PartSource*> sources;
  };
  struct Options {
    uint32_t loader_index = 0;
    Envelope envelope;
    rpc::RpcTimeouts timeouts;
    // Parts of a stream taken from its sources and not yet accepted by a worker.
    size_t max_open_parts = 8;
  };

  // Nothing begins before Start. What it points to is not owned: executor and channels must outlive
  // the engine and its open calls, sources the engine. `failure` is told the first error of each
  // stream: a source that failed, a worker that refused a part or fell silent. It must not block.
  LoaderEngine(const Options& options, const std::vector<StreamSources>& streams,
               const std::vector<rpc::Channel*>& workers, Executor* executor,
               const std::function<void(absl::Status)>& failure);
  // Stops.
  ~LoaderEngine();
  LoaderEngine(const LoaderEngine&) = delete;
  LoaderEngine& operator=(const LoaderEngine&) = delete;

  // REQUIRES: once
  void Start();

  struct Counts {
    uint64_t parts = 0;     // accepted by embedding workers, since the start
    uint64_t samples = 0;   // of these parts
    size_t open_parts = 0;  // taken from the sources and not yet accepted
  };
  // Of all streams.
  Counts counts() const;

  // Nothing new is sent from now on, and calls that are open are given up without a report: their
  // workers may or may not have the part. Idempotent.
  void Stop();

 private:
  std::vector<std::shared_ptr<StreamSender>> senders_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_ENGINE_LOADER_ENGINE_H_
