// How a shard brings memory into the cache before it is needed.
//
// A call handles its keys in blocks. Each block goes through several stages, and each stage is a
// separate short loop. The first access to a cache line is a load and not a prefetch, because the
// CPU may drop a prefetch that misses the TLB. Loads wait for their data in the reorder buffer: the
// fewer instructions there are between two loads, the more loads are in progress at the same time.
//
// Thread-safe: no state.

#ifndef SATRAP_EMBEDDING_PS_TABLE_ROW_LINES_H_
#define SATRAP_EMBEDDING_PS_TABLE_ROW_LINES_H_

#include <cstddef>
#include <cstdint>

namespace satrap {

inline constexpr size_t kBlock = 128;
inline constexpr size_t kCacheLineBytes = 64;

inline void Touch(const void* address) { (void)*static_cast<const volatile uint8_t*>(address); }

// Calls visit(address) once for each cache line of the `size` bytes at `floats`.
template <typename Visitor>
void ForEachLine(const float* floats, size_t size, Visitor visit) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(floats);
  visit(bytes);
  const size_t in_first_line =
      kCacheLineBytes - reinterpret_cast<uintptr_t>(bytes) % kCacheLineBytes;
  for (size_t at = in_first_line; at < size; at += kCacheLineBytes) visit(bytes + at);
}

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_ROW_LINES_H_
