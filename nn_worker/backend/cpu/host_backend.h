// The common base of backends that compute in host memory. An operation or copy has run when its
// call returns, all memory counts as pinned, and the host and the operations use the same
// addresses.
//
// Only such backends include this file; for others, see device_memory.h.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_HOST_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_HOST_BACKEND_H_

#include <cstdint>
#include <memory>

#include "nn_worker/backend/backend.h"

namespace satrap {

class HostBackend : public Backend {
 public:
  absl::StatusOr<void*> AllocatePinned(int64_t bytes) override { return Allocate(bytes); }
  std::shared_ptr<BufferAllocator> PinnedBuffers() override { return nullptr; }
  bool IsPinned(const void*, int64_t) const override { return true; }
  void StartCopyIn(absl::Span<const uint8_t> pinned, Tensor device) override {
    CopyIn(pinned, device);
  }
  void StartCopyOut(Tensor device, absl::Span<uint8_t> pinned) override { CopyOut(device, pinned); }
  absl::StatusOr<std::unique_ptr<BackendEvent>> NewEvent() override {
    return std::make_unique<BackendEvent>();
  }
  void Record(DeviceQueue, BackendEvent*) override {}
  void WaitFor(DeviceQueue, BackendEvent*) override {}
  absl::StatusOr<bool> Poll(BackendEvent*) override { return true; }
  void Sync() override {}
  void* HostView(void* device) override { return device; }
  void* DeviceView(void* host) override { return host; }
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_HOST_BACKEND_H_
