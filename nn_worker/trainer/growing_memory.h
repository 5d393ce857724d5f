// Memory of a backend for something whose size differs from part to part. It grows to the largest
// size that was asked for, at least twofold each time: a backend frees nothing before its end, so
// what was outgrown is at most as much as what is used.
//
// Not thread-safe.

#ifndef SATRAP_NN_WORKER_TRAINER_GROWING_MEMORY_H_
#define SATRAP_NN_WORKER_TRAINER_GROWING_MEMORY_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/device_memory.h"

namespace satrap {

class GrowingMemory {
 public:
  // At least `bytes` bytes; what they hold is unspecified. Memory that was given before may be the
  // same. RESOURCE_EXHAUSTED.
  absl::StatusOr<void*> Get(DeviceMemory* device, int64_t bytes) {
    if (data_ == nullptr || bytes > bytes_) {
      const int64_t larger = std::max(bytes, 2 * bytes_);
      ASSIGN_OR_RETURN(data_, device->Allocate(larger));
      bytes_ = larger;
    }
    return data_;
  }

  // Where operations find the values of `host`: there, if they can, else in a copy.
  absl::StatusOr<void*> Hold(DeviceMemory* device, absl::Span<const uint8_t> host) {
    // They only read it.
    void* const view = device->DeviceView(const_cast<uint8_t*>(host.data()));
    if (view != nullptr) return view;
    const auto bytes = static_cast<int64_t>(host.size());
    ASSIGN_OR_RETURN(void* const copy, Get(device, bytes));
    device->CopyIn(host, {DType::kU8, copy, 1, bytes, bytes});
    return copy;
  }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_GROWING_MEMORY_H_
