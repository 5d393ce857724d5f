#include "nn_worker/device/kernels/store_bytes.h"

#include <cstring>

#include "nn_worker/device/kernel.h"

namespace satrap {
namespace {

struct StoredBytes {
  uint8_t bytes[kMostStoredBytes];
};

SATRAP_KERNEL void StoreBytesKernel(StoredBytes from, int64_t bytes, uint8_t* to) {
  const int64_t i = ThreadInGrid();
  if (i < bytes) to[i] = from.bytes[i];
}

}  // namespace

void StoreBytes(DeviceStream* stream, const void* host, int64_t bytes, void* device) {
  StoredBytes stored = {};
  std::memcpy(stored.bytes, host, static_cast<size_t>(bytes));
  Launch<StoreBytesKernel>(stream, {1}, {static_cast<uint32_t>(kMostStoredBytes)}, 0, stored, bytes,
                           static_cast<uint8_t*>(device));
}

}  // namespace satrap
