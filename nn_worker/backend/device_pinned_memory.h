// The pinned memory of a DeviceBackend: memory for Buffers, and blocks that exist until this object
// is destroyed.
//
// Allocating and freeing pinned memory is slow, and can block until the device has done all its
// work. So the memory of a destroyed Buffer is kept for the next Buffer of about the same size.
//
// Thread-safe. Buffers may outlive the backend: they keep this object, and so the device, alive.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_PINNED_MEMORY_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_PINNED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/thread/mutex.h"
#include "nn_worker/device/device.h"

namespace satrap {

class DevicePinnedMemory final : public BufferAllocator {
 public:
  explicit DevicePinnedMemory(std::shared_ptr<Device> device);
  ~DevicePinnedMemory() override;

  uint8_t* Allocate(size_t size_bytes) override;
  void Free(uint8_t* data, size_t size_bytes) override;

  // Allocates `bytes` bytes, not initialised, which are freed with this object. RESOURCE_EXHAUSTED.
  absl::StatusOr<uint8_t*> NewBlock(int64_t bytes);
  // Whether [data, data + bytes) is within one block.
  bool Holds(const void* data, int64_t bytes) const;

 private:
  const std::shared_ptr<Device> device_;
  mutable Mutex mutex_;
  std::map<const uint8_t*, std::unique_ptr<Memory>> blocks_ GUARDED_BY(mutex_);
  std::map<size_t, std::vector<uint8_t*>> idle_ GUARDED_BY(mutex_);  // by their size
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_PINNED_MEMORY_H_
