// A device memory whose calls do nothing. Tests override the calls that they need.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_FAKE_DEVICE_MEMORY_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_FAKE_DEVICE_MEMORY_H_

#include <cstdint>
#include <memory>

#include "nn_worker/backend/device_memory.h"

namespace satrap {

class FakeDeviceMemory : public DeviceMemory {
 public:
  absl::StatusOr<void*> Allocate(int64_t) override { return NoMemory(); }
  absl::StatusOr<void*> AllocatePinned(int64_t) override { return NoMemory(); }
  std::shared_ptr<BufferAllocator> PinnedBuffers() override { return nullptr; }
  bool IsPinned(const void*, int64_t) const override { return false; }
  void CopyIn(absl::Span<const uint8_t>, Tensor) override {}
  void CopyOut(Tensor, absl::Span<uint8_t>) override {}
  void StartCopyIn(absl::Span<const uint8_t>, Tensor) override {}
  void StartCopyOut(Tensor, absl::Span<uint8_t>) override {}
  absl::StatusOr<std::unique_ptr<BackendEvent>> NewEvent() override {
    return std::make_unique<BackendEvent>();
  }
  void Record(DeviceQueue, BackendEvent*) override {}
  void WaitFor(DeviceQueue, BackendEvent*) override {}
  absl::StatusOr<bool> Poll(BackendEvent*) override { return true; }
  void Sync() override {}
  void* HostView(void*) override { return nullptr; }
  void* DeviceView(void*) override { return nullptr; }

 private:
  static absl::Status NoMemory() { return absl::ResourceExhaustedError("a fake has no memory"); }
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_FAKE_DEVICE_MEMORY_H_
