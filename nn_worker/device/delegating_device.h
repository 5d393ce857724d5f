// A Device that passes all calls on to another device. It is a base for devices that change some of
// the calls.

#ifndef SATRAP_NN_WORKER_DEVICE_DELEGATING_DEVICE_H_
#define SATRAP_NN_WORKER_DEVICE_DELEGATING_DEVICE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn_worker/device/device.h"

namespace satrap {

class DelegatingDevice : public Device {
 public:
  explicit DelegatingDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  absl::StatusOr<DeviceRoom> Room() override { return device_->Room(); }
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) override {
    return device_->Allocate(bytes);
  }
  absl::StatusOr<std::unique_ptr<Memory>> AllocatePinned(int64_t bytes) override {
    return device_->AllocatePinned(bytes);
  }
  absl::StatusOr<std::unique_ptr<DeviceStream>> NewStream() override {
    return device_->NewStream();
  }
  absl::StatusOr<std::unique_ptr<DeviceStream>> NewUrgentStream() override {
    return device_->NewUrgentStream();
  }
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override { return device_->NewEvent(); }
  // `stream` must be a stream of the other device itself: a subclass that wraps streams unwraps it
  // first.
  absl::StatusOr<std::unique_ptr<StreamGraph>> Capture(DeviceStream* stream,
                                                       absl::FunctionRef<void()> enqueue) override {
    return device_->Capture(stream, enqueue);
  }
  absl::Status BeginTrace() override { return device_->BeginTrace(); }
  absl::StatusOr<std::vector<TracedOperation>> EndTrace() override { return device_->EndTrace(); }
  void BeginRange(const char* name) override { device_->BeginRange(name); }
  void EndRange() override { device_->EndRange(); }

 private:
  const std::unique_ptr<Device> device_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_DELEGATING_DEVICE_H_
