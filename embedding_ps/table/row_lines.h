// How a shard brings memory into the cache before it needs it.
//
// Keys go through the stages of a call in blocks, and each stage is a short loop of its own. The
// first touch of a cache line is a load, because the CPU may drop a prefetch that misses the TLB.
// Loads wait for their data in the reorder buffer, so the fewer instructions lie between two of
// them, the more are under way at once.
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

// Calls visit(address) for an address in each cache line of `size` bytes.
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
