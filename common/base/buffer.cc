#include "common/base/buffer.h"

#include <cstdlib>
#include <utility>

namespace satrap {

Buffer::Buffer(size_t size_bytes, std::shared_ptr<BufferAllocator> allocator) : size_(size_bytes) {
  if (size_bytes == 0) return;
  if (allocator != nullptr) {
    uint8_t* const data = allocator->Allocate(size_bytes);
    CHECK(data != nullptr) << "out of memory: " << size_bytes << " bytes";
    data_ =
        std::shared_ptr<uint8_t>(data, [allocator = std::move(allocator), size_bytes](
                                           uint8_t* bytes) { allocator->Free(bytes, size_bytes); });
    return;
  }
  CHECK(size_bytes <= SIZE_MAX - kBufferAlignment) << size_bytes << " bytes";
  // std::aligned_alloc requires a multiple of the alignment.
  const size_t rounded_bytes =
      (size_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  auto* data = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, rounded_bytes));
  CHECK(data != nullptr) << "out of memory: " << size_bytes << " bytes";
  data_ = std::shared_ptr<uint8_t>(data, std::free);
}

void Buffer::CheckRange(size_t offset_bytes, size_t count, size_t size, size_t alignment) const {
  CHECK(alignment <= kBufferAlignment && offset_bytes % alignment == 0)
      << "offset " << offset_bytes << " is not aligned to " << alignment;
  // Divide instead of multiplying, because count * size could overflow.
  CHECK(offset_bytes <= size_ && count <= (size_ - offset_bytes) / size)
      << count << " values of " << size << " bytes at " << offset_bytes << " of " << size_;
}

}  // namespace satrap
