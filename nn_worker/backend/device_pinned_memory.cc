#include "nn_worker/backend/device_pinned_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/status_macros.h"

namespace satrap {
namespace {

// The size of the block for a Buffer. A block can be reused for later Buffers whose blocks have the
// same size.
size_t BlockBytes(size_t size_bytes) { return std::bit_ceil(std::max<size_t>(size_bytes, 4096)); }

}  // namespace

DevicePinnedMemory::DevicePinnedMemory(std::shared_ptr<Device> device)
    : device_(std::move(device)) {}
DevicePinnedMemory::~DevicePinnedMemory() = default;

uint8_t* DevicePinnedMemory::Allocate(size_t size_bytes) {
  const size_t bytes = BlockBytes(size_bytes);
  {
    MutexLock lock(&mutex_);
    std::vector<uint8_t*>& idle = idle_[bytes];
    if (!idle.empty()) {
      uint8_t* const data = idle.back();
      idle.pop_back();
      return data;
    }
  }
  const auto block = NewBlock(static_cast<int64_t>(bytes));
  return block.ok() ? *block : nullptr;
}

void DevicePinnedMemory::Free(uint8_t* data, size_t size_bytes) {
  MutexLock lock(&mutex_);
  idle_[BlockBytes(size_bytes)].push_back(data);
}

absl::StatusOr<uint8_t*> DevicePinnedMemory::NewBlock(int64_t bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<Memory> memory, device_->AllocatePinned(bytes));
  auto* const data = static_cast<uint8_t*>(memory->data());
  MutexLock lock(&mutex_);
  blocks_[data] = std::move(memory);
  return data;
}

bool DevicePinnedMemory::Holds(const void* data, int64_t bytes) const {
  const auto* const begin = static_cast<const uint8_t*>(data);
  MutexLock lock(&mutex_);
  auto after = blocks_.upper_bound(begin);
  if (after == blocks_.begin()) return false;
  --after;
  return begin + bytes <= after->first + after->second->bytes();
}

}  // namespace satrap
