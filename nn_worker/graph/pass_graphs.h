// The training passes of a network as graphs of operations (DeviceMemory::Capture).
//
// Passes with the same key enqueue the same operations with the same arguments. The first of them is
// enqueued as it is, which also puts the lists that its operations read into the device's memory. The
// second is captured, and from then on its graph is enqueued in their place. When the lists are written
// over, it begins anew.
//
// Thread-compatible: for the thread of the operations.

#ifndef SATRAP_NN_WORKER_GRAPH_PASS_GRAPHS_H_
#define SATRAP_NN_WORKER_GRAPH_PASS_GRAPHS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "nn_worker/backend/device_memory.h"

namespace satrap {

class PassGraphs {
 public:
  // `memory` outlives this object. Where it makes no graphs, or unless `enabled`, every pass is enqueued
  // as it is.
  PassGraphs(DeviceMemory* memory, bool enabled) : memory_(memory), enabled_(enabled) {}

  // Enqueues a pass. `pass` may enqueue operations alone: neither copies between host and device nor
  // events. An error is that of `pass`, or the device's.
  absl::Status Run(const std::string& key, absl::FunctionRef<absl::Status()> pass);

  int64_t launches() const { return launches_; }  // of graphs, so far

 private:
  // More keys than a network has in one run are those of passes that differ each time, for which no graph
  // is kept.
  static constexpr size_t kMaxKeys = 8;

  struct Passes {
    int64_t epoch = -1;  // in which a pass was enqueued as it is, or captured
    std::unique_ptr<OperationGraph> graph;
  };

  DeviceMemory* const memory_;
  const bool enabled_;
  std::unordered_map<std::string, Passes> passes_;
  int64_t launches_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_PASS_GRAPHS_H_
