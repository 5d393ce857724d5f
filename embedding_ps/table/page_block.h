// A PageBlock is a range of zeroed memory that comes directly from the kernel, which commits each
// page when it is first touched.
//
// Blocks of 2 MiB or more are aligned to 2 MiB and ask for huge pages. With small pages, address
// translation dominates the cost of random access to millions of rows.
//
// Not thread-safe, but several threads may use its memory.

#ifndef SATRAP_EMBEDDING_PS_TABLE_PAGE_BLOCK_H_
#define SATRAP_EMBEDDING_PS_TABLE_PAGE_BLOCK_H_

#include <cstddef>
#include <cstdint>

namespace satrap {

inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

inline constexpr size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class PageBlock {
 public:
  PageBlock() = default;  // empty
  // Maps at least `size_bytes`. The first `small_bytes`, a multiple of 2 MiB, use small pages, so
  // that little memory is committed if the block is barely used. Ends the process if the address
  // space is exhausted, as `new` does.
  explicit PageBlock(size_t size_bytes, size_t small_bytes = 0);
  PageBlock(PageBlock&& other) noexcept;
  PageBlock& operator=(PageBlock&& other) noexcept;
  ~PageBlock();

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void Unmap();

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_PAGE_BLOCK_H_
