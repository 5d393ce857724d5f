// The LoaderEngine sends the parts of all streams of one loader to the embedding workers. It is a
// state machine that uses an executor, channels and part sources. It knows nothing of gRPC, starts
// no threads and never blocks, so tests/simulation can run it unchanged.
//
// The caller provides the sources of each stream (LoaderStreams in data_loader/loader_streams.h):
//   train, sync     one for each lane of this loader (lane mod loaders), ordered
//   train, hybrid   one, which leases its splits from the coordinator
//   valid, test     one, with the splits j for which j mod loaders is this loader; endless passes
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
#include "common/rpc/rpc.h"
#include "common/thread/executor.h"
#include "data_loader/engine/part_source.h"
#include "data_loader/engine/sender_options.h"

namespace satrap {

class StreamSender;

class LoaderEngine {
 public:
  struct StreamSources : StreamOptions {
    std::vector<PartSource*> sources;
  };
  using Options = LoaderOptions;

  // Does nothing before Start is called. Nothing passed by pointer is owned: the executor and the
  // channels must outlive the engine and its open calls, and the sources must outlive the engine.
  // `failure` is called with the first error of each stream: a source failed, or a worker refused a
  // part or did not answer in time. It must not block.
  LoaderEngine(const Options& options, const std::vector<StreamSources>& streams,
               const std::vector<rpc::Channel*>& workers, Executor* executor,
               const std::function<void(absl::Status)>& failure);
  // Calls Stop.
  ~LoaderEngine();
  LoaderEngine(const LoaderEngine&) = delete;
  LoaderEngine& operator=(const LoaderEngine&) = delete;

  // REQUIRES: called once
  void Start();

  struct Counts {
    uint64_t parts = 0;     // accepted by embedding workers, since the start
    uint64_t samples = 0;   // of these parts
    size_t open_parts = 0;  // taken from the sources and not yet accepted
  };
  // The counts, summed over all streams.
  Counts counts() const;

  // Sends nothing more, and cancels the open calls without reporting a failure: their workers may
  // or may not have received the part. Idempotent.
  void Stop();

 private:
  std::vector<std::shared_ptr<StreamSender>> senders_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_ENGINE_LOADER_ENGINE_H_
