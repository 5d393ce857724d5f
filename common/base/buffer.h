// A Buffer is a reference-counted block of bytes, aligned to 64. Copying a Buffer copies the
// reference. The creator fills in the bytes before it shares the buffer; from then on they are
// constant.
//
// The bytes are on the heap, or wherever a BufferAllocator puts them. From some kinds of memory a
// device can copy faster than from others (nn_worker/backend/device_memory.h).
//
// Copying and destroying are thread-safe, and so is reading a shared buffer.

#ifndef SATRAP_COMMON_BASE_BUFFER_H_
#define SATRAP_COMMON_BASE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/base/check.h"

namespace satrap {

inline constexpr size_t kBufferAlignment = 64;

// Allocates the bytes of Buffers. Thread-safe.
class BufferAllocator {
 public:
  virtual ~BufferAllocator() = default;
  // Returns `size_bytes` uninitialised bytes, aligned to kBufferAlignment, or null if no memory is
  // left. REQUIRES: size_bytes > 0
  virtual uint8_t* Allocate(size_t size_bytes) = 0;
  // `data` is what Allocate(size_bytes) returned.
  virtual void Free(uint8_t* data, size_t size_bytes) = 0;
};

class Buffer {
 public:
  Buffer() = default;  // empty
  // Makes a buffer of `size_bytes` uninitialised bytes, from `allocator` unless that is null. The
  // buffer and its copies keep the allocator alive.
  explicit Buffer(size_t size_bytes, std::shared_ptr<BufferAllocator> allocator = nullptr);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const uint8_t* data() const { return data_.get(); }
  // REQUIRES: the caller made this buffer and has not shared it yet
  uint8_t* mutable_data() { return data_.get(); }

  // The `count` values of T at `offset_bytes`. REQUIRES: aligned for T and within the buffer
  template <typename T>
  absl::Span<const T> View(size_t offset_bytes, size_t count) const {
    CheckRange(offset_bytes, count, sizeof(T), alignof(T));
    return absl::Span<const T>(reinterpret_cast<const T*>(data_.get() + offset_bytes), count);
  }
  template <typename T>
  absl::Span<T> MutableView(size_t offset_bytes, size_t count) {
    CheckRange(offset_bytes, count, sizeof(T), alignof(T));
    return absl::Span<T>(reinterpret_cast<T*>(data_.get() + offset_bytes), count);
  }

 private:
  void CheckRange(size_t offset_bytes, size_t count, size_t size, size_t alignment) const;

  std::shared_ptr<uint8_t> data_;
  size_t size_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_BASE_BUFFER_H_
