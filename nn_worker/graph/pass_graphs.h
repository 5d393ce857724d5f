// The training passes of a network as graphs of operations (DeviceMemory::Capture).
//
// The first pass with a key is enqueued without a graph, which also puts the lists that its
// operations read into the device's memory. The second pass is captured, and from then on its graph
// is enqueued instead. If lists are overwritten, the graphs of a key are made again in this way.
//
// A pass that waits for the host in the middle, as for a sum over the ranks, consists of parts.
// Parts that enqueue nothing but operations have a graph each; the parts in between have none.
//
// If the device refuses a graph, all later passes are enqueued without graphs.
//
// Thread-compatible: only the thread that enqueues the operations may use this.

#ifndef SATRAP_NN_WORKER_GRAPH_PASS_GRAPHS_H_
#define SATRAP_NN_WORKER_GRAPH_PASS_GRAPHS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn_worker/backend/device_memory.h"
#include "nn_worker/graph/model/pass_key.h"

namespace satrap {

// The parts of a pass are enqueued in order.
struct PassPart {
  bool captured = true;  // it enqueues nothing but operations: no copies of the host, no events
  std::function<absl::Status()> enqueue;
};

class PassGraphs {
 public:
  // Called once, with a message for the user.
  using OnRefusal = std::function<void(const absl::Status&)>;

  // `memory` outlives this object. `on_refusal` may be null.
  PassGraphs(DeviceMemory* memory, bool enabled, OnRefusal on_refusal = nullptr)
      : memory_(memory), enabled_(enabled), on_refusal_(std::move(on_refusal)) {}

  // Whether passes may run from graphs: graphs are enabled, `memory` can make them, and it has
  // refused none.
  bool active() const { return enabled_ && memory_->GraphEpoch() >= 0; }

  // Enqueues a pass. Passes with the same key must have the same parts. Returns the error of a
  // part, or of a device that has failed; later parts are then not enqueued.
  absl::Status Run(const PassKey& key, absl::Span<const PassPart> parts);

  int64_t launches() const { return launches_; }  // of graphs, so far

 private:
  // A run has fewer keys than this, unless every pass differs. For further keys no graphs are kept.
  static constexpr size_t kMaxKeys = 8;

  struct Passes {
    PassKey key;
    int64_t epoch = -1;  // of the memory, when a pass was last enqueued as it is
    std::vector<std::unique_ptr<OperationGraph>> graphs;  // of that epoch, by part
  };

  // Null if there are too many keys.
  Passes* Find(const PassKey& key);
  absl::Status RunCaptured(const PassPart& part, std::unique_ptr<OperationGraph>* graph);
  // The error of the device if it has failed.
  absl::Status DeviceStatus();
  void Refuse(const absl::Status& error);

  DeviceMemory* const memory_;
  bool enabled_;
  const OnRefusal on_refusal_;
  std::vector<Passes> passes_;
  int64_t launches_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_PASS_GRAPHS_H_
