// Memory of a backend, or pinned memory of its host, for something whose size differs from part to
// part. It grows to the largest size that was asked for, and at least doubles each time if there is
// room. A backend frees nothing before its end, so doubling keeps the outgrown memory no larger
// than the memory in use.
//
// Not thread-safe.

#ifndef SATRAP_NN_WORKER_TRAINER_GROWING_MEMORY_H_
#define SATRAP_NN_WORKER_TRAINER_GROWING_MEMORY_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/device_memory.h"

namespace satrap {

class GrowingMemory {
 public:
  enum class Kind { kDevice, kPinned };
  explicit GrowingMemory(Kind kind = Kind::kDevice) : kind_(kind) {}

  // Returns memory of at least `bytes` bytes with unspecified contents. It may be the memory that
  // an earlier call returned. RESOURCE_EXHAUSTED.
  absl::StatusOr<void*> Get(DeviceMemory* device, int64_t bytes) {
    if (data_ == nullptr || bytes > bytes_) {
      const int64_t larger = std::max(bytes, 2 * bytes_);
      const absl::Status taken = Take(device, larger);
      // The larger size is optional: it only keeps the memory from growing again soon. So if there
      // is no room for the larger size, try the size that is needed now.
      if (absl::IsResourceExhausted(taken) && larger > bytes) {
        RETURN_IF_ERROR(Take(device, bytes));
      } else {
        RETURN_IF_ERROR(taken);
      }
    }
    return data_;
  }

 private:
  absl::Status Take(DeviceMemory* device, int64_t bytes) {
    ASSIGN_OR_RETURN(
        data_, kind_ == Kind::kDevice ? device->Allocate(bytes) : device->AllocatePinned(bytes));
    bytes_ = bytes;
    return absl::OkStatus();
  }

  const Kind kind_;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

// A copy on the device of values of the host, for operations that cannot read them in place.
class ValuesOnDevice {
 public:
  // The address at which operations find the values of `host`: `host` itself if they can read it,
  // else a copy that is enqueued in DeviceQueue::kCopiesIn. `host` must stay until the copy has
  // been made, and the values of the previous call must no longer be used. RESOURCE_EXHAUSTED.
  absl::StatusOr<void*> Put(DeviceMemory* device, absl::Span<const uint8_t> host) {
    // Operations only read the values.
    void* const view = device->DeviceView(const_cast<uint8_t*>(host.data()));
    if (view != nullptr) return view;
    const auto bytes = static_cast<int64_t>(host.size());
    ASSIGN_OR_RETURN(void* const copy, copy_.Get(device, bytes));
    if (!device->IsPinned(host.data(), bytes)) {
      ASSIGN_OR_RETURN(void* const pinned, staged_.Get(device, bytes));
      if (bytes > 0) std::memcpy(pinned, host.data(), host.size());
      host = {static_cast<const uint8_t*>(pinned), host.size()};
    }
    device->StartCopyIn(host, {DType::kU8, copy, 1, bytes, bytes});
    return copy;
  }

 private:
  GrowingMemory copy_;
  GrowingMemory staged_{GrowingMemory::Kind::kPinned};
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_GROWING_MEMORY_H_
