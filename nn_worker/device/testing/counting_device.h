// Counts the operations that are enqueued on a device.
//
// Thread-compatible, where a CountingDevice and all of its streams count as one object.

#ifndef SATRAP_NN_WORKER_DEVICE_TESTING_COUNTING_DEVICE_H_
#define SATRAP_NN_WORKER_DEVICE_TESTING_COUNTING_DEVICE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "nn_worker/device/delegating_device.h"
#include "nn_worker/device/device.h"
#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/host/host_device.h"

namespace satrap {

// The numbers of operations that were enqueued, on any stream.
struct DeviceCounts {
  int launches = 0;  // of kernels outside of captures
  int graphs = 0;
  int copies_in = 0, other_copies = 0;
  int events = 0;  // recorded or waited for
};

class CountingStream final : public DeviceStream {
 public:
  CountingStream(std::unique_ptr<DeviceStream> stream, DeviceCounts* counts)
      : stream_(std::move(stream)), counts_(*counts) {}
  DeviceStream* stream() const { return stream_.get(); }

  void CopyIn(const void* pinned, void* device, int64_t bytes) override {
    ++counts_.copies_in;
    stream_->CopyIn(pinned, device, bytes);
  }
  void CopyOut(const void* device, void* pinned, int64_t bytes) override {
    ++counts_.other_copies;
    stream_->CopyOut(device, pinned, bytes);
  }
  void CopyWithin(const void* from, void* to, int64_t bytes) override {
    ++counts_.other_copies;
    stream_->CopyWithin(from, to, bytes);
  }
  void Launch(const KernelLaunch& launch) override {
    ++counts_.launches;
    stream_->Launch(launch);
  }
  void Record(Event* event) override {
    ++counts_.events;
    stream_->Record(event);
  }
  void WaitFor(Event* event) override {
    ++counts_.events;
    stream_->WaitFor(event);
  }

 private:
  const std::unique_ptr<DeviceStream> stream_;
  DeviceCounts& counts_;
};

class CountingGraph final : public StreamGraph {
 public:
  CountingGraph(std::unique_ptr<StreamGraph> graph, DeviceCounts* counts)
      : graph_(std::move(graph)), counts_(*counts) {}
  void Launch(DeviceStream* stream) override {
    ++counts_.graphs;
    graph_->Launch(static_cast<CountingStream*>(stream)->stream());
  }

 private:
  const std::unique_ptr<StreamGraph> graph_;
  DeviceCounts& counts_;
};

// The host's device. `counts` outlives it.
class CountingDevice final : public DelegatingDevice {
 public:
  explicit CountingDevice(DeviceCounts* counts)
      : DelegatingDevice(NewHostDevice({})), counts_(*counts) {}
  absl::StatusOr<std::unique_ptr<DeviceStream>> NewStream() override {
    auto stream = DelegatingDevice::NewStream();
    if (!stream.ok()) return stream.status();
    return std::make_unique<CountingStream>(*std::move(stream), &counts_);
  }
  absl::StatusOr<std::unique_ptr<StreamGraph>> Capture(DeviceStream* stream,
                                                       absl::FunctionRef<void()> enqueue) override {
    const DeviceCounts before = counts_;
    auto graph = DelegatingDevice::Capture(static_cast<CountingStream*>(stream)->stream(), enqueue);
    counts_ = before;
    if (!graph.ok()) return graph.status();
    return std::make_unique<CountingGraph>(*std::move(graph), &counts_);
  }

 private:
  DeviceCounts& counts_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_TESTING_COUNTING_DEVICE_H_
